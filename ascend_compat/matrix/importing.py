"""A vendor page's table into a table document, and what that changes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ascend_compat.errors import UsageError
from ascend_compat.matrix.importing_words import MARKS, Words, is_chinese, key, nearest, read_mark
from ascend_compat.matrix.tables import STATUSES, expand

if TYPE_CHECKING:
    from pathlib import Path

    from ascend_compat.matrix.importing_grid import Field, Grid

_KEPT = ("inferred", "source", "note")


@dataclass(slots=True)
class Imported:
    """A document made from a page; ``remarks`` are readings worth a look, in order of their place."""

    body: dict[str, Any]
    remarks: list[str] = field(default_factory=list)


def compose(
    grid: Grid, file: Path, release: str, words: Words, known: dict[str, Any] | None, framework: str | None = None
) -> Imported:
    """The table document of a page.

    ``known`` is the release's committed document, whose source and notes are kept. ``framework`` names the one a page
    with a table a framework is about. Raises :class:`UsageError` naming every unknown heading, model and word.
    """
    problems: list[str] = []
    remarks: list[str] = []
    placed = _columns(grid, file, words, framework, problems)
    columns = list(placed.values())
    rows, marks = _rows(grid, file, words, placed, problems, remarks)
    if problems:
        raise UsageError("\n".join([*problems, f"{file}: nothing was imported"]))
    body: dict[str, Any] = {"kind": "table", "product": words.product, "release": release}
    frameworks = {column["framework"] for column in columns}
    if (known and "framework" in known) or (not known and len(frameworks) == 1):
        body["framework"] = next(iter(frameworks))
    body |= {name: known[name] for name in _KEPT if known and name in known}
    body |= _surroundings(grid, known)
    if marks:
        body["marks"] = marks
    return Imported(body | {"columns": columns, "rows": rows}, remarks)


def _columns(grid: Grid, file: Path, words: Words, only: str | None, problems: list[str]) -> dict[int, dict[str, Any]]:
    """The known column of each data column of the page."""
    columns: dict[int, dict[str, Any]] = {}
    for number in grid.data_columns():
        path = [part for text in grid.path(number) for part in _parts(text, words)]
        at = grid.rows[max(grid.header - 1, 0)][number]
        framework = words.framework(path) or only
        heading = path[-1] if path else ""
        place = f"{file}:{at.line}:{at.column}"
        if framework is None:
            known = nearest(" ".join(path), list(words.frameworks.values()))
            hint = f"; the nearest known one is {known}" if known else ""
            problems.append(f"{place}: heading {' / '.join(path) or '(empty)'!r} stands under no known framework{hint}")
            continue
        column = words.column(framework, heading)
        if column is None:
            close = nearest(heading, words.headings(framework))
            hint = f"; the nearest known one is {close!r}" if close else ""
            problems.append(f"{place}: heading {heading!r} of {framework} is not known{hint}")
            continue
        column["heading"] = _reworded(column["heading"], heading)
        if len(path) > 1 and "head" in column:
            column["head"] = _reworded(column["head"], next((t for t in path if words.framework([t])), ""))
        column.pop("source", None)
        columns[number] = column
    return columns


def _parts(text: str, words: Words) -> list[str]:
    """Markdown writes a column's whole path into one heading."""
    parts = [part.strip() for part in text.split(" / ")]
    return parts if len(parts) > 1 and words.framework(parts) else [text]


def _reworded(names: dict[str, str], text: str) -> dict[str, str]:
    """The page's own spelling of a known name."""
    return {language: text if key(name) == key(text) and text else name for language, name in names.items()}


def _rows(
    grid: Grid, file: Path, words: Words, columns: dict[int, dict[str, Any]], problems: list[str], remarks: list[str]
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    usual = _usual_marks(grid, list(columns))
    rows = []
    for fields in grid.rows[grid.header :]:
        label = fields[grid.roles["model"]]
        if not label.text:
            continue
        models, missing = words.models(label.text)
        for name in missing:
            close = words.nearest_models(name)
            hint = f"; the nearest known one is {close[0]}" if close else ""
            problems.append(f"{file}:{label.line}:{label.column}: model {name!r} is not known{hint}")
        row: dict[str, Any] = {"label": label.text}
        if "series" in grid.roles and not (series := fields[grid.roles["series"]]).merged and series.text:
            row["series"] = words.series(series.text, models)
        row["models"] = models
        cells: dict[str, dict[str, Any]] = {}
        for number, column in columns.items():
            cells.setdefault(column["framework"], {})[column["id"]] = _cell(
                fields[number], file, column, usual, problems, remarks
            )
        rows.append(row | {framework: _short(stated) for framework, stated in cells.items()})
    return rows, {status: mark for status, mark in usual.items() if status != "unknown"}


def _usual_marks(grid: Grid, numbers: list[int]) -> dict[str, str]:
    """The mark the page uses for each status."""
    counts = Counter(row[number].text for row in grid.rows[grid.header :] for number in numbers)
    usual: dict[str, str] = {}
    for text, _ in counts.most_common():
        status = MARKS.get(text.casefold())
        if status:
            usual.setdefault(status, text)
    return {status: usual[status] for status in STATUSES if status in usual}


def _cell(
    cell: Field, file: Path, column: dict[str, Any], usual: dict[str, str], problems: list[str], remarks: list[str]
) -> Any:
    stated, footnote = read_mark(cell.text, column)
    place = f"{file}:{cell.line}:{cell.column}"
    if stated is None:
        known = sorted({*column.get("texts", {}), *usual.values()})
        problems.append(
            f"{place}: {cell.text!r} under {column['heading']['zh']} is not known; known are {', '.join(known)}"
        )
        return "unknown"
    if footnote:
        remarks.append(
            f"{place}: {cell.text!r} is read as {cell.text.removesuffix(footnote).strip()}; {footnote} is taken for a footnote mark"
        )
    if isinstance(stated, str) and stated in STATUSES and cell.text != usual.get(stated, "") and cell.text:
        return {"status": stated, "text": cell.text}
    return stated


def _short(stated: dict[str, Any]) -> Any:
    values = list(stated.values())
    uniform = isinstance(values[0], str) and values[0] in STATUSES and all(value == values[0] for value in values)
    return values[0] if uniform else stated


def _surroundings(grid: Grid, known: dict[str, Any] | None) -> dict[str, Any]:
    """Title, first sentence and corner of the page."""
    found: dict[str, Any] = {}
    for name, text in zip(("title", "lead"), grid.before, strict=False):
        found[name] = _both(text, known and known.get(name))
    corners = [role for role in ("series", "model") if role in grid.roles]
    texts = [grid.rows[0][grid.roles[role]].text for role in corners]
    kept = (known or {}).get("corner", [None] * len(texts))
    if len(texts) > 1:
        default = {"series": {"en": "Series", "zh": "模型系列"}, "model": {"en": "Model", "zh": "模型"}}
        found["corner"] = [
            _both(text, old or default[role]) for role, text, old in zip(corners, texts, kept, strict=False)
        ]
    return found


def _both(text: str, known: dict[str, str] | None) -> dict[str, str]:
    if known is None:
        return {"en": text, "zh": text}
    return {**known, "zh" if is_chinese(text) else "en": text}


def changes(before: list[dict[str, Any]], after: dict[str, Any]) -> list[str]:
    """What a new document says otherwise than older ones: rows, columns and cells, one line each."""
    frameworks = {column["framework"] for column in after["columns"]}
    old = {(c.model, c.framework, c.column): c for body in before for c in expand(body)[0] if c.framework in frameworks}
    new = {(c.model, c.framework, c.column): c for c in expand(after)[0]}
    lines = []
    for word, here, there in (("new", new, old), ("gone", old, new)):
        lines += [
            f"{word} column: {f} {c}"
            for f, c in _unique((f, c) for _, f, c in here)
            if (f, c) not in {(f, c) for _, f, c in there}
        ]
        lines += [f"{word} row: {m}" for m in _unique(m for m, _, _ in here) if m not in {m for m, _, _ in there}]
    for place, cell in new.items():
        earlier = old.get(place)
        if earlier and (earlier.status, earlier.text) != (cell.status, cell.text):
            lines.append(f"{cell.model}, {cell.framework}, {cell.column}: {_said(earlier)} -> {_said(cell)}")
    return lines


def _said(cell: Any) -> str:
    return f"{cell.status} ({cell.text})" if cell.text else str(cell.status)


def _unique(items: Any) -> list[Any]:
    return list(dict.fromkeys(items))
