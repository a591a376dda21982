"""Everything the version tables say of one version: ``show torch-npu 2.7.1.post2``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ascend_compat.stack.model import package_name
from ascend_compat.stack.tables import Tables
from ascend_compat.stack.versions import cann_name, version_key

if TYPE_CHECKING:
    from collections.abc import Iterable

    import duckdb

    from ascend_compat.stack.tables import Record

# what may be shown, and the column that holds its version
COMPONENTS = {
    "torch-npu": "torch_npu", "torch": "torch", "cann": "cann", "vllm-ascend": "vllm_ascend", "vllm": "vllm", "python": "python",
    "chip": "chip",
}  # fmt: skip
_HIDDEN = ("note_en", "note_zh", "from", "source")


def page(con: duckdb.DuckDBPyConnection, component: str, version: str) -> dict[str, Any] | None:
    """Rows of every table that name a version of a component, by table; None when no table does.

    Each row carries its source's address; ``component`` is one of :data:`COMPONENTS` in any spelling.
    """
    column = COMPONENTS.get(package_name(component))
    if column is None:
        return None
    tables = Tables(con)
    if column == "chip":
        chip = tables.chip(version)
        return None if chip is None else {"hardware": _known("hardware", tables, [chip])}
    wanted = version_key(cann_name(version) if column == "cann" else version)
    if column == "python" and len(wanted) > 3:
        wanted = version_key(".".join(version.split(".")[:2]))
    found: dict[str, Any] = {}
    for name in ("torch_npu", "vllm_ascend", "sets", "torch_python", "torch_npu_lifecycle"):
        rows = [row for row in tables.rows(name) if column in row and wanted and version_key(row[column]) == wanted]
        if rows:
            found[name] = _known(name, tables, rows)
    if column == "torch_npu" and found:
        torches = {version_key(row["torch"]) for rows in found.values() for row in rows}
        for name in ("torch_python", "torch_npu_lifecycle"):
            rows = [row for row in tables.rows(name) if version_key(row["torch"]) in torches]
            if rows:
                found[name] = _known(name, tables, rows)
    return found or None


def _known(table: str, tables: Tables, rows: Iterable[Record]) -> list[Record]:
    source = tables.source(table)
    return [{**row, "source": row.get("source") or source} for row in rows]


def page_text(found: dict[str, Any], component: str, version: str, language: str) -> str:
    """A page as lines of text; notes in the language asked for."""
    lines = [f"{component} {version}"]
    for table, rows in found.items():
        lines += ["", table]
        for row in rows:
            shown = ", ".join(f"{name} {value}" for name, value in row.items() if name not in _HIDDEN)
            lines.append(f"  {shown}")
            if f"note_{language}" in row:
                lines.append(f"    {row[f'note_{language}']}")
        addresses = dict.fromkeys(row["source"] for row in rows)
        lines += [f"  {'来源' if language == 'zh' else 'source'}: {address}" for address in addresses]
    return "\n".join(lines)
