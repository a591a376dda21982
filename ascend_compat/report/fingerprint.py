"""A stable name for a finding: the same while the finding stays, whatever moves around it."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ascend_compat.check.finding import Finding, Report


def fingerprint(report: Report, finding: Finding) -> str:
    """Hex digest over file, code, key and the user's own line (not its number)."""
    line = finding.span.text.strip() if finding.span else ""
    file = finding.span.file if finding.span else report.file
    parts = "\x1f".join((file, finding.code, finding.key or "", line, finding.message.en if not line else ""))
    return hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()[:32]
