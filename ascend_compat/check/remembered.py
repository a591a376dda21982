"""Answers of a read-only database, kept: many jobs ask the same few questions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb

_KEPT = 20_000


class Rows:
    """The rows of one answer."""

    def __init__(self, rows: list[tuple[Any, ...]]) -> None:
        self._rows = rows

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Every row."""
        return list(self._rows)

    def fetchone(self) -> tuple[Any, ...] | None:
        """The first row; None where there is none."""
        return self._rows[0] if self._rows else None


class Remembered:
    """Executes each statement once for the same parameters."""

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        self._con = con
        self._known: dict[tuple[str, str], Rows] = {}

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> Rows:
        """The rows of a SELECT."""
        key = (sql, repr(parameters))
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _KEPT:
                self._known.clear()
            found = self._known[key] = Rows(self._con.execute(sql, list(parameters)).fetchall())
        return found
