"""The one finding model; every renderer reads this and nothing else."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Literal

from ascend_compat.jobs.model import Span

Severity = Literal["error", "warning", "note"]
Verdict = Literal["supported", "unverified", "unsupported", "impossible", "unreadable"]
VERDICTS: tuple[Verdict, ...] = ("supported", "unverified", "unsupported", "impossible", "unreadable")


_BETWEEN = re.compile(r"(?<=[\u4e00-\u9fff])(?=[A-Za-z0-9])|(?<=[A-Za-z0-9%])(?=[\u4e00-\u9fff])")


@dataclass(frozen=True, slots=True)
class Text:
    """One sentence in both languages; Chinese gets a space where it meets Latin letters and digits."""

    en: str
    zh: str

    def in_language(self, language: str) -> str:
        """The sentence in ``en`` or ``zh``."""
        return _BETWEEN.sub(" ", self.zh) if language == "zh" else self.en


@dataclass(frozen=True, slots=True)
class Source:
    """Where a claim or a rule is written: a page, or a path in a repository at a commit."""

    address: str
    date: str | None = None
    release: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class WayOut:
    """One way out. ``edits`` are fact values that make it hold, where the tool could check them."""

    text: Text
    edits: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Finding:
    """One diagnostic. ``verdict`` is what it makes of the job; None where it changes nothing."""

    code: str
    severity: Severity
    message: Text
    topic: str = ""
    verdict: Verdict | None = None
    span: Span | None = None
    key: str | None = None
    reason: Text | None = None
    sources: tuple[Source, ...] = ()
    ways_out: tuple[WayOut, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Report:
    """Everything said of one launch (or of one unreadable file)."""

    file: str
    launch: int | None
    product: str | None
    release: str | None
    framework: str | None
    version: str | None
    verdict: Verdict
    findings: list[Finding] = field(default_factory=list)
