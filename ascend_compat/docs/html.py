"""Blocks of a page as HTML, for the site."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING
from urllib.parse import quote

from ascend_compat.docs.markdown import href
from ascend_compat.docs.page import (
    Bullets,
    Code,
    Embedded,
    Grid,
    Heading,
    Link,
    Outside,
    Paragraph,
    Picture,
    Preformatted,
    Status,
    Strong,
    Table,
    pieces,
    plain,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ascend_compat.docs.page import Block, GridRow, Line, Page, Piece


def render(block: Block, page: Page) -> str:
    """One block, links as seen from ``page``; a line a cell, so that words of neighbours stay apart for search."""
    return "\n".join(_block(block, page))


def line(value: Line, page: Page) -> str:
    """A line of text."""
    return "".join(_piece(piece, page) for piece in pieces(value))


def href_of(page: Page) -> str:
    """A page's address from the root of its language."""
    return quote(f"{page.id}.html", safe="/.:-_")


def name_of(page: Page) -> str:
    """A page's file name without an ending, for an address beside it."""
    return quote(page.id.rpartition("/")[2], safe=".:-_")


def _piece(piece: Piece, page: Page) -> str:
    if isinstance(piece, str):
        return escape(piece, quote=False)
    if isinstance(piece, Code):
        return f"<code>{escape(piece.text, quote=False)}</code>" if piece.text else ""
    if isinstance(piece, Strong):
        return f"<strong>{escape(piece.text, quote=False)}</strong>"
    if isinstance(piece, Outside):
        return f'<a class="outside" href="{escape(piece.href)}" rel="noopener">{escape(piece.text, quote=False)}</a>'
    if isinstance(piece, Link):
        return (
            f'<a href="{escape(href(page, piece.page, piece.anchor, ".html"))}">{escape(piece.text, quote=False)}</a>'
        )
    return _status(piece)


def _status(piece: Status) -> str:
    words = f'<span class="unseen"> {escape(piece.words, quote=False)}</span>' if piece.words else ""
    return f'<span class="status s-{piece.status}">{escape(piece.text, quote=False)}</span>{words}'


def _block(block: Block, page: Page) -> Iterator[str]:
    if isinstance(block, Heading):
        yield f'<h{block.level} id="{escape(block.anchor)}">{escape(block.text, quote=False)}</h{block.level}>'
    elif isinstance(block, Paragraph):
        role = f' class="{block.role}"' if block.role else ""
        yield f"<p{role}>{line(block.line, page)}</p>"
    elif isinstance(block, Bullets):
        yield "<ul>"
        yield from (f"<li>{line(item, page)}</li>" for item in block.items)
        yield "</ul>"
    elif isinstance(block, Preformatted):
        yield f'<pre tabindex="0">{escape(block.text, quote=False)}</pre>'
    elif isinstance(block, Table):
        yield from _table(block, page)
    elif isinstance(block, Grid):
        yield from _grid(block, page)
    elif isinstance(block, Picture):
        yield f'<figure role="img" aria-label="{escape(block.words)}">{block.svg}<figcaption>{escape(block.words, quote=False)}</figcaption></figure>'
    elif isinstance(block, Embedded):
        yield block.html


def _table(block: Table, page: Page) -> Iterator[str]:
    yield from _open(block.caption, "plain")
    yield "<thead><tr>"
    yield from (f'<th scope="col">{escape(text, quote=False)}</th>' for text in block.head)
    yield "</tr></thead>"
    yield "<tbody>"
    for number, row in enumerate(block.rows):
        anchor = f' id="{escape(block.anchors[number])}"' if block.anchors else ""
        yield f"<tr{anchor}>"
        yield from (
            f'<th scope="row">{line(cell, page)}</th>' if place == 0 else f"<td>{line(cell, page)}</td>"
            for place, cell in enumerate(row)
        )
        yield "</tr>"
    yield "</tbody></table></div>"


def _open(caption: str, kind: str) -> Iterator[str]:
    named = escape(caption)
    yield f'<div class="frame" role="region" aria-label="{named}" tabindex="0"><table class="{kind}">'
    yield f'<caption class="unseen">{escape(caption, quote=False)}</caption>'


def _grid(grid: Grid, page: Page) -> Iterator[str]:
    yield from _open(grid.caption, "grid")
    yield "<thead>"
    for number, level in enumerate(grid.head):
        yield f'<tr class="level-{number}">'
        if number == 0:
            down = len(grid.head)
            yield from (
                f'<th scope="col" rowspan="{down}" class="{_corner(place, len(grid.labels))}">{escape(text, quote=False)}</th>'
                for place, text in enumerate(grid.labels)
            )
        scope = "col" if number == len(grid.head) - 1 else "colgroup"
        yield from (
            f'<th scope="{scope}" colspan="{head.across}">{escape(head.text, quote=False)}</th>' for head in level
        )
        yield "</tr>"
    yield "</thead>"
    yield "<tbody>"
    for row in grid.rows:
        yield "<tr>"
        yield from _grid_row(grid, row, page)
        yield "</tr>"
    yield "</tbody></table></div>"


def _corner(place: int, labels: int) -> str:
    return "label" if place == labels - 1 else "series"


def _grid_row(grid: Grid, row: GridRow, page: Page) -> Iterator[str]:
    if row.series is not None and len(grid.labels) == 2:
        yield f'<th scope="rowgroup" rowspan="{row.down}" class="series">{escape(row.series, quote=False)}</th>'
    yield f'<th scope="row" class="label">{line(row.label, page)}</th>'
    for cell, path in zip(row.cells, grid.paths):
        hint = escape(f"{plain(row.label)} | {path}: {cell.words}")
        yield (
            f'<td class="s-{cell.status}"><a href="#{cell.note}" title="{hint}"><span class="said">{escape(cell.text, quote=False)}</span>'
            f'<span class="unseen"> {escape(cell.words, quote=False)}</span></a></td>'
        )
