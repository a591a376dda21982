"""SARIF 2.1.0, for code scanning and editors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ascend_compat._version import __version__
from ascend_compat.report.fingerprint import numbered, path_of
from ascend_compat.report.text import safe

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ascend_compat.check.finding import Finding, Report, Source

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
# GitHub takes at most 25,000 results a run (docs.github.com, SARIF support for code scanning).
MAX_RESULTS = 25_000
_LEVELS = {"error": "error", "warning": "warning", "note": "note"}


def render(reports: Iterable[Report], language: str) -> str:
    """One run; rules carry the sentence of their first finding and the address of its source."""
    rules: dict[str, dict[str, Any]] = {}
    places: dict[str, int] = {}
    results: list[dict[str, Any]] = []
    left_out = 0
    for report, finding, print_ in numbered(reports):
        if len(results) >= MAX_RESULTS:
            left_out += 1
            continue
        place = places.setdefault(finding.code, len(places))
        rules.setdefault(finding.code, _rule(finding))
        results.append(_result(report, finding, place, print_, language))
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": "ascend-compat",
                "version": __version__,
                "rules": list(rules.values()),
            }
        },
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    if left_out:
        run["properties"] = {"resultsLeftOut": left_out}
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, ensure_ascii=False, indent=2)


def _rule(finding: Finding) -> dict[str, Any]:
    rule: dict[str, Any] = {
        "id": finding.code,
        "shortDescription": {"text": finding.topic or finding.code},
        "fullDescription": {"text": safe(finding.message.en)},
        "help": {"text": f"ascend-compat explain {finding.code}"},
        "defaultConfiguration": {"level": _LEVELS[finding.severity]},
    }
    page = next((source.address for source in finding.sources if source.address.startswith("https://")), None)
    if page:
        rule["helpUri"] = page
    return rule


def _result(report: Report, finding: Finding, index: int, print_: str, language: str) -> dict[str, Any]:
    text = [safe(finding.message.in_language(language))]
    if finding.reason:
        text.append(safe(finding.reason.in_language(language)))
    text += [safe(way.text.in_language(language)) for way in finding.ways_out]
    text += [_source(source) for source in finding.sources]
    location: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": {"uri": quote(path_of(report, finding).encode("utf-8", "surrogateescape"))}
        }
    }
    if finding.span:
        location["physicalLocation"]["region"] = {
            "startLine": finding.span.line,
            "startColumn": finding.span.column,
            "endColumn": finding.span.column + max(1, finding.span.length),
        }
    return {
        "ruleId": finding.code,
        "ruleIndex": index,
        "level": _LEVELS[finding.severity],
        "message": {"text": "\n".join(text)},
        "locations": [location],
        "partialFingerprints": {"ascendCompat/v1": print_},
        "properties": {"topic": finding.topic, "verdict": report.verdict},
    }


def _source(source: Source) -> str:
    return safe(source.address)
