"""Names as people write them, for ids of products, frameworks, models and features."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascend_compat.check.finding import Text

if TYPE_CHECKING:
    import duckdb

_TABLES = ("product", "framework", "model", "feature")


class Labels:
    """Looks ids up once each; an id nobody knows is its own name."""

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        self._con = con
        self._known: dict[tuple[str, str], Text] = {}

    def name(self, table: str, identifier: str) -> Text:
        """The name in both languages of an id of ``product``, ``framework``, ``model`` or ``feature``."""
        assert table in _TABLES
        key = (table, identifier)
        if key not in self._known:
            row = self._con.execute(f"SELECT name_en, name_zh FROM {table} WHERE id = ?", [identifier]).fetchone()
            self._known[key] = Text(row[0], row[1]) if row else Text(identifier, identifier)
        return self._known[key]

    def words(self, **ids: str | None) -> tuple[dict[str, str | None], dict[str, str | None]]:
        """The words of a message in English and in Chinese; ``release`` and other plain words stay as they are."""
        english: dict[str, str | None] = {}
        chinese: dict[str, str | None] = {}
        for kind, identifier in ids.items():
            if kind in _TABLES and identifier is not None:
                name = self.name(kind, identifier)
                english[kind], chinese[kind] = name.en, name.zh
            else:
                english[kind] = chinese[kind] = identifier
        return english, chinese
