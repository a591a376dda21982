"""Pages as plain Markdown: pipe tables and no HTML, so that they fit into another site."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING
from urllib.parse import quote

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
    from collections.abc import Iterator, Sequence

    from ascend_compat.docs.page import Block, Line, Page, Piece

_SPECIAL = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_[]<>|#~"})


def render(page: Page) -> str:
    """The page as one Markdown file."""
    parts = [f"# {_escaped(page.title)}"]
    for block in page.blocks:
        parts.append("\n".join(_block(block, page)))
    return "\n\n".join(part for part in parts if part) + "\n"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a pipe table; cells are Markdown already."""
    return [_row(head), _row(["---"] * len(head)), *(_row(row) for row in rows)]


def line(value: Line, page: Page) -> str:
    """A line of text as Markdown, with links as seen from ``page``."""
    return "".join(_piece(piece, page) for piece in pieces(value))


def href(page: Page, target: str, anchor: str, ending: str) -> str:
    """The relative address of another page's file, or of a place on this one."""
    place = f"#{quote(anchor, safe='.:-_')}" if anchor else ""
    if not target:
        return place
    path = posixpath.relpath(f"{target}{ending}", posixpath.dirname(page.id) or ".")
    return quote(path, safe="/.:-_") + place


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell or " " for cell in cells) + " |"


def _escaped(text: str) -> str:
    return " ".join(text.translate(_SPECIAL).split("\n"))


def _piece(piece: Piece, page: Page) -> str:
    if isinstance(piece, str):
        return _escaped(piece)
    if isinstance(piece, Code):
        fence = "``" if "`" in piece.text else "`"
        return fence + piece.text.replace("|", "\\|").replace("\n", " ") + fence if piece.text else ""
    if isinstance(piece, Strong):
        return f"**{_escaped(piece.text)}**"
    if isinstance(piece, Outside):
        return f"[{_escaped(piece.text)}](<{piece.href}>)"
    if isinstance(piece, Link):
        # Markdown has no anchors of its own, and every site makes others from headings: links lead to pages
        return f"[{_escaped(piece.text)}]({href(page, piece.page, '', '.md')})" if piece.page else _escaped(piece.text)
    return _escaped(piece.text if piece.note else f"{piece.text} {piece.words}".rstrip())


def _block(block: Block, page: Page) -> Iterator[str]:
    if isinstance(block, Heading):
        yield "#" * block.level + " " + _escaped(block.text)
    elif isinstance(block, Paragraph):
        yield ("> " if block.role == "note" else "") + line(block.line, page)
    elif isinstance(block, Bullets):
        yield from (f"- {line(item, page)}" for item in block.items)
    elif isinstance(block, Preformatted):
        yield "```text"
        yield block.text
        yield "```"
    elif isinstance(block, Table):
        yield from table(
            [_escaped(text) for text in block.head], [[line(cell, page) for cell in row] for row in block.rows]
        )
    elif isinstance(block, Grid):
        yield from _grid(block, page)
    elif isinstance(block, Picture):
        yield _escaped(block.words)
    elif isinstance(block, Embedded):
        yield line(block.instead, page)


def _grid(grid: Grid, page: Page) -> Iterator[str]:
    head = [_escaped(text) for text in [*grid.labels, *grid.paths]]
    rows = []
    for row in grid.rows:
        series = [_escaped(row.series or "")] if len(grid.labels) == 2 else []
        rows.append([*series, line(row.label, page), *(_noted(cell) for cell in row.cells)])
    yield from table(head, rows)


def _noted(cell: Status) -> str:
    """A cell's sign and the number of the note that explains it; Markdown has no title to hover over."""
    number = cell.note.rpartition("-")[2]
    return _escaped(plain(cell)) + (f" ({number})" if number else "")
