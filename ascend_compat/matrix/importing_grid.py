"""A vendor page's table as a grid of cells, whatever the page is written in: tab-separated text, HTML or Markdown."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import TYPE_CHECKING

from ascend_compat.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MAX_BYTES = 8_000_000
MAX_CELLS = 200_000

SERIES_WORDS = {"模型系列", "系列", "series", "model series"}
MODEL_WORDS = {"模型", "模型名称", "支持模型", "支持的模型", "model", "models", "model name", "supported model"}
TYPE_WORDS = {"类型", "模型类型", "支持模型类型", "type", "model type"}

_RULE = re.compile(r"\s*\|?\s*:?-{2,}:?\s*(\|\s*:?-{2,}:?\s*)*\|?\s*")


@dataclass(frozen=True, slots=True)
class Field:
    """One cell: its text and place. ``merged`` cells repeat the text of the cell that covers them."""

    text: str
    line: int
    column: int
    merged: bool = False


@dataclass(slots=True)
class Grid:
    """A table with every merged cell spread out; ``before`` is the text above it."""

    rows: list[list[Field]]
    before: list[str] = field(default_factory=list)
    header: int = 0
    roles: dict[str, int] = field(default_factory=dict)

    def path(self, column: int) -> list[str]:
        """The headings over a column, outermost first, each once."""
        texts: list[str] = []
        for row in self.rows[: self.header]:
            text = row[column].text
            if text and text not in texts[-1:]:
                texts.append(text)
        return texts

    def data_columns(self) -> list[int]:
        """The columns that hold claims."""
        return [number for number in range(len(self.rows[0])) if number not in self.roles.values()]


def read_grid(path: Path) -> Grid:
    """The table of a file. Raises :class:`UsageError` when the file cannot be read or holds no table of models."""
    try:
        if path.exists() and not path.is_file():
            raise UsageError(f"{path}: not a regular file")
        if path.stat().st_size > MAX_BYTES:
            raise UsageError(f"{path}: larger than {MAX_BYTES // 1_000_000} MB, not the page of one table")
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8 text") from error
    if re.search(r"<table\b", text, re.IGNORECASE):
        grids = _html(text)
    elif any(_RULE.fullmatch(line) and "|" in line for line in text.splitlines()):
        grids = _plain(text, _markdown_row)
    else:
        grids = _plain(text, _tabbed_row)
    for grid in grids:
        if _find_roles(grid):
            _find_header(grid)
            return grid
    raise UsageError(f"{path}: no table with a column headed 模型 or Model")


def _find_roles(grid: Grid) -> bool:
    for number, row in enumerate(grid.rows):
        roles: dict[str, int] = {}
        for column, cell in enumerate(row):
            word = cell.text.casefold().strip()
            for role, words in (("series", SERIES_WORDS), ("model", MODEL_WORDS), ("type", TYPE_WORDS)):
                if word in words and role not in roles:
                    roles[role] = column
        if "model" in roles:
            grid.before += [cell.text for above in grid.rows[:number] for cell in above if cell.text]
            del grid.rows[:number]
            grid.roles = roles
            return True
    return False


def _find_header(grid: Grid) -> None:
    """The header reaches to the first row that names a model of its own."""
    model = grid.roles["model"]
    grid.header = next(
        (
            number
            for number, row in enumerate(grid.rows)
            if number and row[model].text and not row[model].merged and row[model].text != grid.rows[0][model].text
        ),
        len(grid.rows),
    )
    labels = set(grid.roles.values())
    for number, row in enumerate(grid.rows):
        for column, cell in enumerate(row):
            if cell.text or cell.merged:
                continue
            if number < grid.header:
                sideways = number < grid.header - 1 and column and column not in labels and column - 1 not in labels
                source = row[column - 1] if sideways else grid.rows[number - 1][column] if number else cell
            elif column in labels:
                source = grid.rows[number - 1][column] if number > grid.header else cell
            else:
                continue
            row[column] = Field(source.text, cell.line, cell.column, merged=True)


def _plain(text: str, split: Callable[[str, int], list[Field] | None]) -> list[Grid]:
    grids: list[Grid] = []
    before: list[str] = []
    rows: list[list[Field]] = []
    for number, line in enumerate([*text.splitlines(), ""], 1):
        fields = split(line, number)
        if fields is not None:
            rows.append(fields)
        elif rows and not _RULE.fullmatch(line):
            grids.append(Grid(_padded(rows), before))
            before, rows = [], []
        elif line.strip() and not rows:
            before.append(line.strip())
    return grids


def _padded(rows: list[list[Field]]) -> list[list[Field]]:
    width = max(map(len, rows))
    for row in rows:
        end = row[-1].column + len(row[-1].text)
        row += [Field("", row[0].line, end) for _ in range(width - len(row))]
    return rows


def _tabbed_row(line: str, number: int) -> list[Field] | None:
    if "\t" not in line:
        return None
    fields, column = [], 1
    for part in line.split("\t"):
        fields.append(Field(part.strip(), number, column))
        column += len(part) + 1
    return fields


def _markdown_row(line: str, number: int) -> list[Field] | None:
    if "|" not in line or _RULE.fullmatch(line):
        return None
    start = len(line) - len(line.lstrip())
    start += line.lstrip().startswith("|")
    fields, column = [], start + 1
    for part in re.split(r"(?<!\\)\|", line[start:].rstrip().removesuffix("|")):
        fields.append(Field(re.sub(r"\s*<br\s*/?>\s*", " / ", part).replace("\\|", "|").strip(), number, column))
        column += len(part) + 1
    return fields


class _Tables(HTMLParser):
    """Collects tables; spans are spread out as a browser does."""

    def __init__(self) -> None:
        super().__init__()
        self.grids: list[Grid] = []
        self._before: list[str] = []
        self._rows: list[list[Field]] | None = None
        self._below: dict[int, tuple[int, Field]] = {}
        self._cell: tuple[int, int, int, int] | None = None
        self._text: list[str] = []
        self._cells = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self._rows, self._below = [], {}
        elif tag == "tr" and self._rows is not None:
            self._end_cell()
            self._rows.append([])
            self._fill()
        elif tag in ("td", "th") and self._rows:
            self._end_cell()
            spans = dict(attrs)
            line, offset = self.getpos()
            self._cell = (_span(spans.get("rowspan")), _span(spans.get("colspan")), line, offset + 1)
            self._text = []

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th", "tr"):
            self._end_cell()
        elif tag == "table" and self._rows is not None:
            self._end_cell()
            rows = [row for row in self._rows if row]
            if rows:
                self.grids.append(Grid(_padded(rows), self._before))
            self._rows, self._before = None, []

    def handle_data(self, data: str) -> None:
        if self._cell is not None:
            self._text.append(data)
        elif self._rows is None and data.strip():
            self._before.append(" ".join(data.split()))

    def _end_cell(self) -> None:
        if self._cell is None or not self._rows:
            return
        down, across, line, column = self._cell
        text = " ".join("".join(self._text).split())
        row = self._rows[-1]
        self._cells += across * down
        if self._cells > MAX_CELLS:
            raise UsageError(f"line {line}: the table's spans make it larger than {MAX_CELLS} cells")
        for number in range(across):
            if down > 1:
                self._below[len(row)] = (down - 1, Field(text, line, column, merged=True))
            row.append(Field(text, line, column, merged=number > 0))
        self._cell = None
        self._fill()

    def _fill(self) -> None:
        """Take over what cells of the rows above reach down into, as far as the row has come."""
        assert self._rows is not None
        row = self._rows[-1]
        while len(row) in self._below:
            rest, cell = self._below.pop(len(row))
            if rest > 1:
                self._below[len(row)] = (rest - 1, cell)
            row.append(cell)


def _span(value: str | None) -> int:
    return min(max(int(value), 1), 1000) if value and re.fullmatch(r"\s*[0-9]{1,9}\s*", value) else 1


def _html(text: str) -> list[Grid]:
    parser = _Tables()
    parser.feed(text)
    parser.close()
    return parser.grids
