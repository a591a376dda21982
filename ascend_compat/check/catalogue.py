"""Findings from the catalogue of codes: the message is data, the words are put in here."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ascend_compat.check.finding import Finding, Text

if TYPE_CHECKING:
    import duckdb

    from ascend_compat.check.finding import Severity

_PLACE = re.compile(r"\{(\w+)\}")


def fill(template: str, words: dict[str, Any]) -> str:
    """Put words into ``{name}`` places; a place without a word shows a question mark."""
    return _PLACE.sub(lambda match: show(words.get(match.group(1))), template)


def show(value: Any) -> str:
    """A fact's value as a message shows it."""
    if value is None:
        return "?"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(show(item) for item in value)
    return str(value)


class Catalogue:
    """Codes of the matrix, read once when first needed."""

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        self._con = con
        self._codes: dict[str, tuple[Severity, str, str]] | None = None

    def finding(
        self, code: str, words_en: dict[str, Any], words_zh: dict[str, Any] | None = None, **rest: Any
    ) -> Finding:
        """A finding of a code; ``words_zh`` where words differ between the languages."""
        if self._codes is None:
            rows = self._con.execute("SELECT code, severity, message_en, message_zh FROM code").fetchall()
            self._codes = {row[0]: (row[1], row[2], row[3]) for row in rows}
        severity, english, chinese = self._codes[code]
        message = Text(fill(english, words_en), fill(chinese, words_zh if words_zh is not None else words_en))
        rest.setdefault("severity", severity)
        return Finding(code=code, message=message, **rest)
