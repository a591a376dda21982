"""Names as people write them, for ids of products, frameworks, models and features."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascend_compat.check.finding import Text

if TYPE_CHECKING:
    import duckdb

_TABLES = ("product", "framework", "model", "feature")


class Labels:
    """All names, read when the first is asked for; an id nobody knows is its own name."""

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        self._con = con
        self._known: dict[tuple[str, str], Text] | None = None
        self._variant_of: dict[str, str] = {}

    def _names(self) -> dict[tuple[str, str], Text]:
        if self._known is None:
            rows = self._con.execute("SELECT kind, id, name_en, name_zh, variant_of FROM label").fetchall()
            self._known = {(row[0], row[1]): Text(row[2], row[3]) for row in rows}
            self._variant_of = {row[1]: row[4] for row in rows if row[4]}
        return self._known

    def name(self, table: str, identifier: str) -> Text:
        """The name in both languages of an id of ``product``, ``framework``, ``model`` or ``feature``."""
        return self._names().get((table, identifier)) or Text(identifier, identifier)

    def variant_of(self, model: str) -> str | None:
        """The model whose tensors this one has, where it is a variant."""
        self._names()
        return self._variant_of.get(model)

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
