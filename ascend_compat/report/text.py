"""Findings for a terminal: the user's own line with a caret, the reason, its source, the ways out."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ascend_compat.check.finding import Finding, Report, Source
    from ascend_compat.jobs.model import Span

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff]")
_COLOURS = {"error": "31", "warning": "33", "note": "36", "bold": "1", "dim": "2", "good": "32"}
_LABELS = {
    "en": {
        "error": "error", "warning": "warning", "note": "note", "because": "because", "source": "source", "help": "help",
        "supported": "supported", "unverified": "unverified", "unsupported": "unsupported", "impossible": "impossible",
        "unreadable": "unreadable", "launch": "line {line}", "asked": "{product} {release}", "version": "{framework} {version}",
        "none": "no release", "total": "{jobs} checked: {counts}",
    },
    "zh": {
        "error": "错误", "warning": "警告", "note": "说明", "because": "原因", "source": "来源", "help": "可改为",
        "supported": "支持", "unverified": "未验证", "unsupported": "不支持", "impossible": "不可能", "unreadable": "无法读取",
        "launch": "第 {line} 行", "asked": "{product} {release}", "version": "{framework} {version}",
        "none": "无版本", "total": "共检查 {jobs} 个作业：{counts}",
    },
}  # fmt: skip
_MAX_LINE = 400


def safe(text: str) -> str:
    """Text from a user's file on one line, without anything that steers a terminal."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text.replace("\t", " ").replace("\n", " "))


def width(text: str) -> int:
    """Cells a terminal gives to a text: wide characters take two, combining ones none."""
    cells = 0
    for character in text:
        if unicodedata.combining(character):
            continue
        cells += 2 if unicodedata.east_asian_width(character) in "WF" else 1
    return cells


def label(verdict: str, language: str) -> str:
    """A verdict's name as a person reads it."""
    return _LABELS[language][verdict]


class TextRenderer:
    """Renders reports as lines of text in one language."""

    def __init__(self, language: str, colour: bool, notes: bool = True) -> None:
        self.language = language
        self.colour = colour
        self.notes = notes
        self.words = _LABELS[language]

    def render(self, reports: Iterable[Report]) -> Iterator[str]:
        """Lines without their ends; the last one counts the verdicts."""
        counts: dict[str, int] = {}
        for report in reports:
            counts[report.verdict] = counts.get(report.verdict, 0) + 1
            for finding in report.findings:
                if finding.severity != "note" or self.notes:
                    yield from self._finding(finding)
                    yield ""
            yield self._verdict(report)
        if sum(counts.values()) > 1:
            listed = ", ".join(f"{self.words[verdict]} {counts[verdict]}" for verdict in sorted(counts))
            yield self.words["total"].format(jobs=sum(counts.values()), counts=listed)

    def _verdict(self, report: Report) -> str:
        place = safe(report.file)
        if report.launch:
            place += f" ({self.words['launch'].format(line=report.launch)})"
        asked = []
        if report.product:
            release = report.release or self.words["none"]
            asked.append(self.words["asked"].format(product=report.product, release=release))
        if report.framework and report.version:
            asked.append(self.words["version"].format(framework=report.framework, version=report.version))
        colour = {"supported": "good", "unverified": "warning"}.get(report.verdict, "error")
        verdict = self._paint(self.words[report.verdict], colour, "bold")
        return f"{place}: {verdict}" + (f" [{'; '.join(asked)}]" if asked else "")

    def _finding(self, finding: Finding) -> Iterator[str]:
        code = finding.code if not finding.topic else f"{finding.code} {finding.topic}"
        head = self._paint(f"{self.words[finding.severity]}[{code}]", finding.severity, "bold")
        yield f"{head}: {safe(finding.message.in_language(self.language))}"
        gutter = 2
        if finding.span is not None:
            gutter = max(2, len(str(finding.span.line)))
            yield from self._frame(finding.span, gutter, finding.severity)
        lead = " " * gutter + self._paint(" = ", "dim")
        if finding.reason is not None:
            yield f"{lead}{self.words['because']}: {safe(finding.reason.in_language(self.language))}"
        for source in finding.sources:
            yield f"{lead}{self.words['source']}: {safe(_source(source))}"
        for way in finding.ways_out:
            yield f"{lead}{self._paint(self.words['help'], 'good')}: {safe(way.text.in_language(self.language))}"

    def _frame(self, span: Span, gutter: int, severity: str) -> Iterator[str]:
        bar = self._paint("|", "dim")
        arrow = self._paint("-->", "dim")
        yield f"{' ' * gutter}{arrow} {safe(span.file)}:{span.line}:{span.column}"
        if not span.text:
            return
        line = safe(span.text)
        start = span.column - 1
        shift = max(0, start - _MAX_LINE // 2)
        shown = line[shift : shift + _MAX_LINE]
        before = shown[: start - shift]
        marked = shown[start - shift : start - shift + max(1, span.length)] or "^"
        yield f"{' ' * gutter} {bar}"
        yield f"{span.line:>{gutter}} {bar} {shown}"
        yield f"{' ' * gutter} {bar} {' ' * width(before)}{self._paint('^' * max(1, width(marked)), severity)}"

    def _paint(self, text: str, *styles: str) -> str:
        if not self.colour:
            return text
        return f"\x1b[{';'.join(_COLOURS[style] for style in styles)}m{text}\x1b[0m"


def _source(source: Source) -> str:
    extra = ", ".join(part for part in (source.release, source.date, source.note) if part)
    return f"{source.address} ({extra})" if extra else source.address
