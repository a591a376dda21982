"""Rows as text or files: table, json, csv, markdown, parquet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ascend_compat.report.text import safe, width

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import polars

    from ascend_compat.matrix.query import Frame

FORMATS = ("table", "json", "csv", "markdown", "parquet")


def render(frame: Frame, form: str) -> str:
    """The rows in one of the text formats of :data:`FORMATS`, without a newline at the end."""
    return {"table": as_table, "json": as_json, "csv": as_csv, "markdown": as_markdown}[form](frame)


def as_table(frame: Frame) -> str:
    """Columns padded to their width in terminal cells; numbers to the right."""
    rows = [[_shown(value) for value in row] for row in frame.rows]
    widths = [max([width(name), *(width(row[at]) for row in rows)]) for at, name in enumerate(frame.columns)]
    right = [_numeric([row[at] for row in frame.rows]) for at in range(len(frame.columns))]
    lines = [_line(frame.columns, widths, right), "  ".join("-" * cells for cells in widths)]
    return "\n".join([*lines, *(_line(row, widths, right) for row in rows)])


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = []
    for text, cells_wide, to_right in zip(cells, widths, right):
        room = " " * (cells_wide - width(text))
        padded.append(room + text if to_right else text + room)
    return "  ".join(padded).rstrip()


def _numeric(values: Sequence[Any]) -> bool:
    stated = [value for value in values if value is not None]
    return bool(stated) and all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in stated)


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ", ".join(_shown(item) for item in value)
    return safe(str(value).replace("\n", " "))


def as_json(frame: Frame) -> str:
    """An array of objects, a row a line."""
    import json

    rows = (
        json.dumps(record, ensure_ascii=False, default=str, allow_nan=False) for record in map(_finite, frame.records())
    )
    lines = ",\n  ".join(rows)
    return f"[\n  {lines}\n]" if lines else "[]"


def _finite(record: dict[str, Any]) -> dict[str, Any]:
    """JSON has no infinity and no NaN: they become text."""
    import math

    return {
        name: str(value) if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in record.items()
    }


def as_csv(frame: Frame) -> str:
    """Comma-separated values with a header (RFC 4180); NULL is an empty field."""
    import csv
    import io

    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\r\n")
    writer.writerow(frame.columns)
    writer.writerows(["" if value is None else value for value in row] for row in frame.rows)
    return stream.getvalue().removesuffix("\r\n")


def as_markdown(frame: Frame) -> str:
    """A pipe table."""
    lines = [_pipes(frame.columns), _pipes(["---"] * len(frame.columns))]
    return "\n".join([*lines, *(_pipes([_shown(value) for value in row]) for row in frame.rows)])


def _pipes(cells: Sequence[str]) -> str:
    escaped = (cell.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;") for cell in cells)
    return "| " + " | ".join(escaped) + " |"


def as_polars(frame: Frame) -> polars.DataFrame:
    """The rows as a polars frame."""
    import polars

    columns: dict[str, Any] = {}
    for at, name in enumerate(frame.columns):
        columns[name] = polars.Series(name, [row[at] for row in frame.rows], strict=False)
    return polars.DataFrame(columns)


def write_parquet(frame: Frame, path: Path) -> None:
    """Write the rows as a Parquet file; raises OSError where it cannot be written."""
    as_polars(frame).write_parquet(path)
