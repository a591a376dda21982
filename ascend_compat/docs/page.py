"""A page as plain data: what every renderer is given. Nothing here knows Markdown, HTML or Sphinx."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Link:
    """Text that leads to another page of the site (its id), or with an empty ``page`` to a place on this one."""

    text: str
    page: str
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class Outside:
    """Text that leads to an address outside; followed only by a reader's click."""

    text: str
    href: str


@dataclass(frozen=True, slots=True)
class Code:
    """Words of a machine: a key, an id, an expression."""

    text: str


@dataclass(frozen=True, slots=True)
class Strong:
    """Emphasised words."""

    text: str


@dataclass(frozen=True, slots=True)
class Status:
    """A claim's status: ``text`` is what the page shows, ``words`` say it in full, ``note`` is a place on this page."""

    status: str
    text: str
    words: str
    note: str = ""


Piece = str | Link | Outside | Code | Strong | Status
Line = Piece | Sequence[Piece]


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of level 2 or 3, with the anchor that leads to it."""

    text: str
    anchor: str
    level: int = 2


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Running text. ``role`` is ``lead``, ``note`` or empty."""

    line: Line
    role: str = ""


@dataclass(frozen=True, slots=True)
class Bullets:
    """An unordered list."""

    items: Sequence[Line]


@dataclass(frozen=True, slots=True)
class Preformatted:
    """Text whose lines stay as they are."""

    text: str


@dataclass(frozen=True, slots=True)
class Table:
    """One header row and data rows; ``anchors`` names rows that others point at. The first column heads its row."""

    head: Sequence[str]
    rows: Sequence[Sequence[Line]]
    caption: str
    anchors: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Head:
    """One cell of a grid's header."""

    text: str
    across: int = 1
    down: int = 1


@dataclass(frozen=True, slots=True)
class GridRow:
    """One row of a grid: its series where that starts here (and over how many rows), its label, its cells."""

    series: str | None
    down: int
    label: Line
    cells: Sequence[Status]


@dataclass(frozen=True, slots=True)
class Grid:
    """A vendor's table: header rows of merged cells, series and models at the left."""

    caption: str
    head: Sequence[Sequence[Head]]
    paths: Sequence[str]
    rows: Sequence[GridRow]
    labels: Sequence[str]


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing as SVG text, and what it says in words."""

    svg: str
    words: str


@dataclass(frozen=True, slots=True)
class Embedded:
    """HTML of an interactive page, and what stands in its place where HTML is not shown."""

    html: str
    instead: Line


Block = Heading | Paragraph | Bullets | Preformatted | Table | Grid | Picture | Embedded


@dataclass(slots=True)
class Page:
    """One page in one language. ``id`` is its path without an ending; ``data`` is its JSON twin.

    ``parent`` is the page it is listed on; ``wide`` pages get the whole width.
    """

    id: str
    kind: str
    title: str
    parent: str
    data: dict[str, Any]
    blocks: list[Block] = field(default_factory=list)
    wide: bool = False

    def twin(self, language: str) -> dict[str, Any]:
        """The page for machines."""
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": self.kind,
            "id": self.id,
            "language": language,
            "title": self.title,
            "data": self.data,
        }


def pieces(line: Line) -> Sequence[Piece]:
    """A line as its pieces."""
    if isinstance(line, (str, Link, Outside, Code, Strong, Status)):
        return (line,)
    return line


def plain(line: Line) -> str:
    """A line's text without its links."""
    return "".join(piece if isinstance(piece, str) else piece.text for piece in pieces(line))


def joined(lines: Sequence[Line], between: str = ", ") -> list[Piece]:
    """Several lines as one, with text between them."""
    whole: list[Piece] = []
    for number, line in enumerate(lines):
        if number:
            whole.append(between)
        whole.extend(pieces(line))
    return whole
