"""What a page's words mean: its headings, marks and model names, learned from the tables already in the matrix."""

from __future__ import annotations

import difflib
import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ascend_compat.matrix.tables import STATUSES

if TYPE_CHECKING:
    import duckdb

MARKS = {
    "✅": "supported", "√": "supported", "✓": "supported", "✔": "supported", "y": "supported", "yes": "supported", "支持": "supported",
    "❌": "unsupported", "×": "unsupported", "✗": "unsupported", "✘": "unsupported", "x": "unsupported", "n": "unsupported",
    "no": "unsupported", "不支持": "unsupported",
    "na": "not-applicable", "n/a": "not-applicable", "不涉及": "not-applicable",
    "": "unknown", "?": "unknown", "-": "unknown", "--": "unknown",
}  # fmt: skip
_FOOTNOTE = re.compile(r"(?P<mark>.*?[^\W\d_]|[✅❌√×])\s*(?P<note>\d{1,2}|[¹²³⁴⁵]|\[\d+\]|\(\d+\)|（\d+）)", re.DOTALL)
_SIZES = re.compile(r"(?P<base>.+?)[\s\-_]*(?P<sizes>\d+(?:\.\d+)?[bB](?:\s*/\s*\d+(?:\.\d+)?[bB])+)")


def key(text: str) -> str:
    """A heading without width, case, spacing and punctuation."""
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", text).casefold())


def is_chinese(text: str) -> bool:
    """Whether the text holds a Chinese character."""
    return any("\u4e00" <= character <= "\u9fff" for character in text)


@dataclass(slots=True)
class Words:
    """The vocabulary of one product's pages."""

    product: str
    tables: list[dict[str, Any]]
    frameworks: dict[str, str]
    con: duckdb.DuckDBPyConnection

    @classmethod
    def of(cls, product: str, release: str, bodies: list[dict[str, Any]], con: duckdb.DuckDBPyConnection) -> Words:
        """The words of a product: the release's own tables first, then the newest, so that the nearest wording wins."""
        tables = [body for body in bodies if body["product"] == product]
        order = {
            row[0]: row[1]
            for row in con.execute("SELECT release, ordinal FROM release WHERE product = ?", [product]).fetchall()
        }
        tables.sort(key=lambda body: (body["release"] == release, order.get(body["release"], -1)), reverse=True)
        frameworks: dict[str, str] = {}
        for body in tables:
            for column in body["columns"]:
                frameworks.setdefault(key(column["framework"]), column["framework"])
                for text in column.get("head", {}).values():
                    frameworks.setdefault(key(text), column["framework"])
        return cls(product, tables, frameworks, con)

    def framework(self, path: list[str]) -> str | None:
        """The framework a column stands under."""
        found = [self.frameworks[key(text)] for text in path if key(text) in self.frameworks]
        return found[-1] if found else None

    def column(self, framework: str, heading: str) -> dict[str, Any] | None:
        """The known column of a framework with this heading."""
        wanted = key(heading)
        for body in self.tables:
            for column in body["columns"]:
                if column["framework"] == framework and wanted in {key(text) for text in column["heading"].values()}:
                    return dict(column)
        return None

    def headings(self, framework: str | None) -> list[str]:
        """Every known heading, of one framework or of all."""
        return sorted(
            {
                text
                for body in self.tables
                for column in body["columns"]
                if framework in (None, column["framework"])
                for text in column["heading"].values()
            }
        )

    def models(self, label: str) -> tuple[list[str], list[str]]:
        """Models a row label names, and the parts of it that name none."""
        for body in self.tables:
            for row in body["rows"]:
                if row["label"] == label:
                    return list(row["models"]), []
        parts = [label]
        if sizes := _SIZES.fullmatch(label.strip()):
            parts = [f"{sizes['base']}-{size.strip()}" for size in sizes["sizes"].split("/")]
        found: list[str] = []
        missing: list[str] = []
        for part in parts:
            match = self._names().model(part)
            (found if match else missing).append(match.id if match else part)
        return found, missing

    def nearest_models(self, name: str) -> list[str]:
        """Models with the nearest names."""
        nearest_ids: list[str] = self._names().suggest_models(name)
        return nearest_ids

    def _names(self) -> Any:
        from ascend_compat.matrix.names import Names

        return Names(self.con)

    def series(self, text: str, models: list[str]) -> dict[str, str]:
        """Both names of the series a row starts; a new one takes the model's own series for the other language."""
        for body in self.tables:
            for row in body["rows"]:
                series: dict[str, str] = row.get("series", {})
                if key(text) in {key(known) for known in series.values()}:
                    return {**series, "zh" if is_chinese(text) else _language(series, text): text}
        first = models[0] if models else None
        row = self.con.execute("SELECT series_en, series_zh FROM model WHERE id = ?", [first]).fetchone()
        row = row or (text, text)
        return {"en": row[0] or text, "zh": text} if is_chinese(text) else {"en": text, "zh": row[1] or text}


def _language(series: dict[str, str], text: str) -> str:
    return next((language for language, known in series.items() if key(known) == key(text)), "zh")


def nearest(text: str, known: list[str]) -> str | None:
    """The known text most like this one, if any is alike."""
    by_key = {key(item): item for item in known}
    close = difflib.get_close_matches(key(text), list(by_key), n=1, cutoff=0.4)
    return by_key[close[0]] if close else None


def read_mark(text: str, column: dict[str, Any]) -> tuple[Any, str | None]:
    """How a table document states a cell's text, and the footnote mark that was set aside; None for words not known."""
    stated = _stated(text, column)
    if stated is not None:
        return stated, None
    if footnote := _FOOTNOTE.fullmatch(text):
        stated = _stated(footnote["mark"].strip(), column)
        if stated is not None:
            return stated, footnote["note"]
    return None, None


def _stated(text: str, column: dict[str, Any]) -> Any:
    texts = column.get("texts", {})
    if text in texts:
        return [text] if texts[text].get("features") else text
    status = MARKS.get(text.casefold(), text if text in STATUSES else None)
    if status:
        return status
    words = [word.strip() for word in re.split(r"[,，、;；]", text) if word.strip()]
    return words if words and all(word in texts for word in words) else None
