"""A stable name for a finding: the same while the finding stays, whatever moves around it."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ascend_compat.check.finding import Finding, Report


def fingerprint(report: Report, finding: Finding) -> str:
    """Hex digest over file, code, key and the user's own line (not its number)."""
    line = finding.span.text.strip() if finding.span else ""
    parts = "\x1f".join(
        (path_of(report, finding), finding.code, finding.key or "", line, finding.message.en if not line else "")
    )
    return hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def numbered(reports: Iterable[Report]) -> Iterator[tuple[Report, Finding, str]]:
    """Every finding with a fingerprint of its own; equal ones are told apart by their order in the file."""
    seen: dict[str, int] = {}
    for report in reports:
        for finding in report.findings:
            print_ = fingerprint(report, finding)
            seen[print_] = seen.get(print_, 0) + 1
            yield report, finding, print_ if seen[print_] == 1 else f"{print_}-{seen[print_]}"


def path_of(report: Report, finding: Finding) -> str:
    """The file a finding is in, as given, without a leading ``./``."""
    path = finding.span.file if finding.span else report.file
    while path.startswith("./") and len(path) > 2:
        path = path[2:].lstrip("/")
    return path
