"""Renderers by name; each is imported when it is asked for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascend_compat.check.finding import Report

FORMATS = ("text", "json", "jsonl", "sarif", "junit", "github", "gitlab", "rdjson", "markdown")
_JSON = frozenset(("json", "jsonl", "sarif", "gitlab", "rdjson"))
_STEERING = re.compile(r"[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def render(form: str, reports: Sequence[Report], language: str, colour: bool = False) -> str:
    """All reports in one format of :data:`FORMATS`; what machines read is valid Unicode, whatever a file is called."""
    if form == "text":
        from ascend_compat.report.text import TextRenderer

        return "\n".join(TextRenderer(language, colour).render(reports))
    text = _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", _machine(form, reports, language))
    return escaped(text) if form in _JSON else text


def escaped(text: str) -> str:
    """JSON text with the characters written as escapes that steer a terminal, or end a line for some programs."""
    return _STEERING.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def _machine(form: str, reports: Sequence[Report], language: str) -> str:
    if form == "json":
        from ascend_compat.report import json_report

        return json_report.render(reports, language)
    if form == "sarif":
        from ascend_compat.report import sarif

        return sarif.render(reports, language)
    if form == "junit":
        from ascend_compat.report import junit

        return junit.render(reports, language)
    from ascend_compat.report import lines

    renderers = {
        "jsonl": lines.jsonl,
        "github": lines.github,
        "gitlab": lines.gitlab,
        "rdjson": lines.rdjson,
        "markdown": lines.markdown,
    }
    return renderers[form](reports, language)
