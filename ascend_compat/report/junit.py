"""JUnit XML: one case a job; a rejected job fails, an unverified one is skipped with the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as Xml

from ascend_compat.report.text import safe

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ascend_compat.check.finding import Report


def render(reports: Iterable[Report], language: str) -> str:
    """One suite; counts of tests, failures, errors and skipped."""
    reports = list(reports)
    failed = sum(report.verdict in ("unsupported", "impossible") for report in reports)
    unread = sum(report.verdict == "unreadable" for report in reports)
    skipped = sum(report.verdict == "unverified" for report in reports)
    counts = {"tests": len(reports), "failures": failed, "errors": unread, "skipped": skipped}
    suites = Xml.Element("testsuites", {name: str(count) for name, count in counts.items()})
    suite = Xml.SubElement(suites, "testsuite", {"name": "ascend-compat", **suites.attrib})
    for report in reports:
        suite.append(_case(report, language))
    Xml.indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Xml.tostring(suites, encoding="unicode")


def _case(report: Report, language: str) -> Xml.Element:
    name = safe(report.file) + (f":{report.launch}" if report.launch else "")
    case = Xml.Element("testcase", {"classname": f"ascend-compat.{report.framework or 'file'}", "name": name})
    kind = {"unsupported": "failure", "impossible": "failure", "unreadable": "error", "unverified": "skipped"}.get(
        report.verdict
    )
    if kind is None:
        return case
    lines = []
    for finding in report.findings:
        place = f"{finding.span.line}:{finding.span.column}: " if finding.span else ""
        lines.append(f"{place}{finding.severity}[{finding.code}] {safe(finding.message.in_language(language))}")
        lines += [f"  = {safe(way.text.in_language(language))}" for way in finding.ways_out]
    element = Xml.SubElement(case, kind, {"message": lines[0] if lines else report.verdict})
    if kind != "skipped":
        element.set("type", report.verdict)
    element.text = "\n".join(lines)
    return case
