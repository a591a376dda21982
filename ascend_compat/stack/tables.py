"""The version tables of the matrix, as the questions a stack asks of them."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ascend_compat.stack.versions import cann_name, release_of, version_key

if TYPE_CHECKING:
    import duckdb

Record = dict[str, Any]

_NAME = re.compile(r"[\s_]+")


class Tables:
    """Rows of ``stack_…`` tables, read when first needed."""

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        self._con = con
        self._rows: dict[str, list[Record]] = {}

    def rows(self, table: str) -> list[Record]:
        """All rows of ``stack_<table>`` as mappings; cells a document leaves out are absent."""
        if table not in self._rows:
            self._rows[table] = self._read(table)
        return self._rows[table]

    def _read(self, table: str) -> list[Record]:
        cursor = self._con.execute(f"SELECT * FROM stack_{table}")
        names = [column[0] for column in cursor.description or ()]
        return [{name: cell for name, cell in zip(names, row) if cell is not None} for row in cursor.fetchall()]

    @cached_property
    def builds(self) -> list[Record]:
        """torch_npu builds of the vendor's table, in its order."""
        return self.rows("torch_npu")

    @cached_property
    def pairs(self) -> list[Record]:
        """Every (torch_npu, torch, cann) that a source documents together, the vendor's table first, each with its source."""
        found = [{**row, "from": "torch_npu"} for row in self.builds]
        found += [{**row, "from": f"vllm-ascend {row['vllm_ascend']}"} for row in self.vllm_ascend]
        found += [{**row, "from": f"{row['product']} {row['release']}"} for row in self.sets if "slip" not in row]
        return [row for row in found if row.get("torch_npu", "unknown") != "unknown"]

    @cached_property
    def vllm_ascend(self) -> list[Record]:
        """vllm-ascend releases, newest first."""
        return self.rows("vllm_ascend")

    @cached_property
    def sets(self) -> list[Record]:
        """Documented sets of products and frameworks."""
        return self.rows("sets")

    @cached_property
    def hardware(self) -> dict[str, Record]:
        """Chips by every name in lower case without blanks, underscores or a leading ``ascend``."""
        found: dict[str, Record] = {}
        for row in self.rows("hardware"):
            for name in (row["soc"], *row["names"].split(",")):
                key = chip_key(name)
                if key not in ("unknown", "none", ""):
                    found.setdefault(key, row)
        # the first generation's SoC string reads like what people call the A2 family
        for row in self.rows("hardware"):
            for name in row["names"].split(","):
                if chip_key(name) not in ("unknown", "none", ""):
                    found[chip_key(name)] = row
        return found

    def chip(self, name: str, chips_per_card: int | None = None, memory: float | None = None) -> Record | None:
        """The row of a chip by any of its names; a bare ``Ascend910`` is told by its second chip on a card or its memory."""
        key = chip_key(name)
        if key == "910":
            return self.hardware.get("a3") if chips_per_card == 2 or (memory or 0) > 33 else None
        row = self.hardware.get(key)
        if row is None and key.startswith("950"):
            row = self.hardware.get(key[:5]) or self.hardware.get("950")
        return row

    @cached_property
    def official_cann(self) -> frozenset[tuple[int, ...]]:
        """CANN releases that the vendor's torch_npu table has a row for."""
        return frozenset(version_key(row["cann"]) for row in self.builds)

    def of_build(self, torch_npu: str) -> list[Record]:
        """Documented pairs of exactly this torch_npu build (local parts aside)."""
        key = version_key(torch_npu)
        return [row for row in self.pairs if version_key(row["torch_npu"]) == key]

    def is_official(self, torch_npu: str) -> bool:
        """Whether the vendor's table has a row for this build."""
        key = version_key(torch_npu)
        return any(version_key(row["torch_npu"]) == key for row in self.builds)

    def builds_for(self, torch: str | None, cann: str | None) -> list[Record]:
        """Documented pairs for a torch release and a CANN release (either may be open), without repeating a build."""
        seen: dict[tuple[tuple[int, ...], tuple[int, ...]], Record] = {}
        for row in self.pairs:
            if torch is not None and version_key(row["torch"]) != version_key(release_of(torch)):
                continue
            if cann is not None and version_key(row.get("cann", "")) != version_key(cann_name(cann)):
                continue
            seen.setdefault((version_key(row["torch_npu"]), version_key(row.get("cann", ""))), row)
        return list(seen.values())

    def pythons(self, torch: str) -> list[str]:
        """Python releases torch_npu is built for at a torch release; empty where the table does not list it."""
        key = version_key(release_of(torch))
        return [row["python"] for row in self.rows("torch_python") if version_key(row["torch"]) == key]

    def vllm_ascend_release(self, version: str) -> Record | None:
        """The row of a vllm-ascend release."""
        key = version_key(version)
        return next((row for row in self.vllm_ascend if version_key(row["vllm_ascend"]) == key), None)

    def documented(self, framework: str, version: str) -> list[Record]:
        """Documented sets of a framework's release."""
        key = version_key(version)
        return [row for row in self.sets if row["product"] == framework and version_key(row["release"]) == key]

    def source(self, table: str) -> str:
        """Address of the page or file that ``stack_<table>`` was taken from; empty where each row has its own."""
        import json

        row = self._con.execute("SELECT source FROM stack_table WHERE id = ?", [f"stack_{table}"]).fetchone()
        if row is None or not row[0]:
            return ""
        source = json.loads(row[0])
        if "url" in source:
            return str(source["url"])
        return f"{source['repo']}:{source['path']}@{source['commit'][:12]}"

    def bounds(self, framework: str, version: str) -> list[Record]:
        """Package bounds of exactly this framework release."""
        key = version_key(version)
        rows = self.rows("framework_bounds")
        return [row for row in rows if row["framework"] == framework and version_key(row["release"]) == key]


def chip_key(name: str) -> str:
    """A chip's name without case, blanks, underscores before its number, or ``Ascend``."""
    key = _NAME.sub("_", name.strip().lower()).replace("atlas_", "")
    return key.removeprefix("ascend").lstrip("_-").replace("910_pro", "910pro").replace("910_premium", "910premium")
