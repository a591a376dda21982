"""Line-wise outputs: JSON Lines, GitHub annotations, rdjson, GitLab code quality, a Markdown summary."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ascend_compat.report.fingerprint import numbered, path_of
from ascend_compat.report.json_report import job
from ascend_compat.report.text import safe

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ascend_compat.check.finding import Finding, Report
    from ascend_compat.jobs.model import Span

_GITHUB = {"error": "error", "warning": "warning", "note": "notice"}
_RDJSON = {"error": "ERROR", "warning": "WARNING", "note": "INFO"}
_GITLAB = {"error": "critical", "warning": "minor", "note": "info"}


def jsonl(reports: Iterable[Report], language: str) -> str:
    """One job a line, in the shape of the JSON report's ``jobs``."""
    return "\n".join(json.dumps(job(report, language), ensure_ascii=False) for report in reports)


def github(reports: Iterable[Report], language: str) -> str:
    """Workflow commands that annotate a pull request."""
    lines = []
    for report in reports:
        for finding in report.findings:
            where = {"file": path_of(report, finding), "title": finding.code}
            if finding.span:
                where |= {
                    "line": str(finding.span.line),
                    "col": str(finding.span.column),
                    "endColumn": str(finding.span.column + finding.span.length),
                }
            properties = ",".join(f"{name}={_property(value)}" for name, value in where.items())
            lines.append(f"::{_GITHUB[finding.severity]} {properties}::{_data(_sentence(finding, language))}")
    return "\n".join(lines)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(safe(text)).replace(":", "%3A").replace(",", "%2C")


def rdjson(reports: Iterable[Report], language: str) -> str:
    """Reviewdog's diagnostic format."""
    diagnostics = []
    for report in reports:
        for finding in report.findings:
            location: dict[str, Any] = {"path": path_of(report, finding)}
            if finding.span:
                start, end = _bytes(finding.span)
                location["range"] = {
                    "start": {"line": finding.span.line, "column": start},
                    "end": {"line": finding.span.line, "column": end},
                }
            diagnostics.append(
                {
                    "message": _sentence(finding, language),
                    "location": location,
                    "severity": _RDJSON[finding.severity],
                    "code": {"value": finding.code},
                }
            )
    source = {"name": "ascend-compat"}
    return json.dumps({"source": source, "diagnostics": diagnostics}, ensure_ascii=False, indent=2)


def _bytes(span: Span) -> tuple[int, int]:
    """Start and end column as rdjson counts them: bytes of UTF-8, from 1."""
    end = span.column - 1 + max(1, span.length)
    if not span.text:
        return span.column, end + 1
    line = span.text + " " * (end - len(span.text))
    start, stop = (len(line[:at].encode("utf-8", "replace")) for at in (span.column - 1, end))
    return start + 1, stop + 1


def gitlab(reports: Iterable[Report], language: str) -> str:
    """GitLab's code quality report."""
    issues = [
        {
            "description": _sentence(finding, language),
            "check_name": finding.code,
            "fingerprint": print_,
            "severity": _GITLAB[finding.severity],
            "location": {
                "path": path_of(report, finding),
                "lines": {"begin": finding.span.line if finding.span else 1},
            },
        }
        for report, finding, print_ in numbered(reports)
    ]
    return json.dumps(issues, ensure_ascii=False, indent=2)


def markdown(reports: Iterable[Report], language: str) -> str:
    """A table of jobs and, below it, what is wrong with each: for a step summary or a merge request."""
    reports = list(reports)
    heads = ("file", "verdict", "asked", "findings") if language == "en" else ("文件", "结论", "查询对象", "发现数")
    lines = [f"| {' | '.join(heads)} |", "|---|---|---|---|"]
    for report in reports:
        asked = f"{report.product or '-'} {report.release or '-'}"
        count = sum(finding.severity != "note" for finding in report.findings)
        lines.append(f"| {_cell(report.file)} | {report.verdict} | {_cell(asked)} | {count} |")
    for report in reports:
        for finding in report.findings:
            if finding.severity == "note":
                continue
            place = f":{finding.span.line}" if finding.span else ""
            lines += [
                "",
                f"- **{finding.code}** `{_code(report.file)}{place}` {_cell(finding.message.in_language(language))}",
            ]
            lines += [f"  - {_cell(way.text.in_language(language))}" for way in finding.ways_out]
    return "\n".join(lines)


def _sentence(finding: Finding, language: str) -> str:
    text = safe(finding.message.in_language(language))
    ways = "; ".join(safe(way.text.in_language(language)) for way in finding.ways_out)
    return f"{text} ({ways})" if ways else text


def _cell(text: str) -> str:
    escaped = safe(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return escaped.replace("|", "\\|").replace("`", "\\`").replace("\n", " ")


def _code(text: str) -> str:
    return safe(text).replace("`", "'")
