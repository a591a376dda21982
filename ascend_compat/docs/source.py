"""What the pages are made of: the built database, read through SQL, in one language."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ascend_compat.check.sources import address
from ascend_compat.docs.page import Code, Link, Outside, Status
from ascend_compat.matrix.query import fetch

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb

    from ascend_compat.docs.page import Piece

SIGNS = {
    "supported": "✅",
    "partial": "◐",
    "unsupported": "❌",
    "not-applicable": "NA",
    "withdrawn": "⊘",
    "unknown": "?",
}
_STATUS_WORDS = {
    "en": dict(
        zip(SIGNS, ("supported", "partly supported", "not supported", "not applicable", "withdrawn", "unknown"))
    ),
    "zh": dict(zip(SIGNS, ("支持", "有条件支持", "不支持", "不适用", "已下线", "未知"))),
}
RUNGS = ("claimed", "smoke", "verified", "contradicted", "stale")
_RUNG_WORDS = {
    "en": dict(zip(RUNGS, ("claimed", "ran on CPU", "verified on NPU", "contradicted", "stale"))),
    "zh": dict(zip(RUNGS, ("仅声明", "CPU 冒烟通过", "NPU 已验证", "与实测矛盾", "已过期"))),
}
GRANTED = ("supported", "partial")


class Source:
    """The database in one language: rows, names, words and places to point at."""

    def __init__(self, con: duckdb.DuckDBPyConnection, language: str) -> None:
        self.con = con
        self.language = language
        self.models = self._names("model")
        self.frameworks = self._names("framework")
        self.features = self._names("feature")
        self.products = self._names("product")
        tables = "SELECT table_name FROM information_schema.tables"
        self.tables = {row[0] for row in con.execute(tables).fetchall()}

    def _names(self, table: str) -> dict[str, str]:
        return dict(self.con.execute(f"SELECT id, name_{self.language} FROM {table} ORDER BY id").fetchall())

    def t(self, english: str, chinese: str) -> str:
        """One of two wordings, as the language asks."""
        return chinese if self.language == "zh" else english

    def rows(self, sql: str, *parameters: Any) -> list[dict[str, Any]]:
        """Rows of a query; ``{l}`` in it stands for the language."""
        return fetch(self.con, sql.replace("{l}", self.language), list(parameters)).records()

    def both(self, row: dict[str, Any], name: str) -> Any:
        """The value of ``<name>_en`` or ``<name>_zh``."""
        return row.get(f"{name}_{self.language}")

    def condition(self, row: dict[str, Any]) -> str | None:
        """A claim's condition in the language."""
        found = row["condition_zh"] if self.language == "zh" else row["condition"]
        return str(found) if found else None

    def status_words(self, status: str) -> str:
        """A status in words."""
        return _STATUS_WORDS[self.language][status]

    def rung_words(self, rung: str) -> str:
        """A rung of the evidence ladder in words."""
        return _RUNG_WORDS[self.language].get(rung, rung)

    def status(self, status: str, text: str | None = None, words: str | None = None, note: str = "") -> Status:
        """A status as a piece: its sign, and its words for those who do not see the sign."""
        return Status(status, text or SIGNS[status], words or self.status_words(status), note)

    def spelled(self, status: str) -> Status:
        """A status as sign and words, both to be seen."""
        return Status(status, f"{SIGNS[status]} {self.status_words(status)}", "")

    def place(self, source: str | None) -> Piece:
        """Where something is written: an address to follow, or a file of a repository."""
        said = json.loads(source) if source else {}
        if not said:
            return self.t("not stated", "未注明")
        text = address(said)
        if "url" in said:
            parts = urlsplit(text)
            short = parts.path.rsplit("/", 1)[-1] or parts.netloc
            return Outside(short + (f" ({said['date']})" if said.get("date", "unknown") != "unknown" else ""), text)
        return Code(text)

    def age(self, source: str | None, dated: str | None = None) -> str | None:
        """The date of a source, where one is known: of its page, else of the release."""
        said = json.loads(source) if source else {}
        date = said.get("date") or dated
        return str(date) if date and date != "unknown" else None

    def model(self, identifier: str) -> Link:
        """A model's name, leading to its page."""
        return Link(self.models.get(identifier, identifier), f"models/{identifier}")

    def framework(self, identifier: str) -> Link:
        """A framework's name, leading to its page."""
        return Link(self.frameworks.get(identifier, identifier), f"frameworks/{identifier}")

    def feature(self, identifier: str) -> Link:
        """A feature's name, leading to its page."""
        return Link(self.features.get(identifier, identifier), f"features/{identifier}")

    def release(self, product: str, release: str) -> Link:
        """A release's name, leading to its page."""
        return Link(f"{self.products.get(product, product)} {release}", f"releases/{product}-{release}")

    def features_of(self, identifiers: Sequence[str]) -> list[Piece]:
        """Several features, each leading to its page."""
        from ascend_compat.docs.page import joined

        return joined([self.feature(each) for each in identifiers], self.t(", ", "、"))
