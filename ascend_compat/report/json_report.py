"""Reports as JSON; the shape is fixed by ``schema/report.schema.json``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ascend_compat.check.finding import Finding, Report

SCHEMA_VERSION = 1


def render(reports: Iterable[Report], language: str) -> str:
    """One JSON document over all reports; messages in both languages, ``message`` in the one asked for."""
    jobs = [job(report, language) for report in reports]
    return json.dumps({"schema_version": SCHEMA_VERSION, "jobs": jobs}, ensure_ascii=False, indent=2)


def job(report: Report, language: str) -> dict[str, Any]:
    """One report as plain data."""
    return {
        "file": report.file,
        "launch": report.launch,
        "framework": report.framework,
        "framework_version": report.version,
        "product": report.product,
        "release": report.release,
        "verdict": report.verdict,
        "findings": [_finding(finding, language) for finding in report.findings],
    }


def _finding(finding: Finding, language: str) -> dict[str, Any]:
    span = finding.span
    return {
        "code": finding.code,
        "topic": finding.topic,
        "severity": finding.severity,
        "verdict": finding.verdict,
        "message": finding.message.in_language(language),
        "file": span.file if span else None,
        "line": span.line if span else None,
        "column": span.column if span else None,
        "end_column": span.column + span.length if span else None,
        "key": finding.key,
        "reason": finding.reason.in_language(language) if finding.reason else None,
        "sources": [
            {"address": source.address, "date": source.date, "release": source.release, "note": source.note}
            for source in finding.sources
        ],
        "ways_out": [{"text": way.text.in_language(language), "edits": way.edits} for way in finding.ways_out],
        "facts": finding.facts,
    }
