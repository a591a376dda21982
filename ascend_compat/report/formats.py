"""Renderers by name; each is imported when it is asked for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascend_compat.check.finding import Report

FORMATS = ("text", "json", "jsonl", "sarif", "junit", "github", "gitlab", "rdjson", "markdown")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def render(form: str, reports: Sequence[Report], language: str, colour: bool = False) -> str:
    """All reports in one format of :data:`FORMATS`; what machines read is valid Unicode, whatever a file is called."""
    if form == "text":
        from ascend_compat.report.text import TextRenderer

        return "\n".join(TextRenderer(language, colour).render(reports))
    return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", _machine(form, reports, language))


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
