"""Figures of the benchmarks become the table of ``docs/performance.md``, written when the last one has run."""

from __future__ import annotations

import os
import platform
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from measure import cpu_of

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "performance.md"
MARK = "<!-- below this line: written by make bench -->"


@dataclass
class Line:
    """One row of the table; ``met`` is None where there is no goal to meet or nothing to compare with."""

    work: str
    seen: str
    against: str
    goal: str
    met: bool | None


@dataclass
class Table:
    lines: list[Line] = field(default_factory=list)

    def add(self, work: str, seen: str, against: str, goal: str, met: bool | None) -> None:
        self.lines.append(Line(work, seen, against, goal, met))


TABLE = Table()


@pytest.fixture(scope="session")
def table() -> Table:
    return TABLE


@pytest.fixture(scope="session")
def in_turn() -> Callable[..., list[tuple[float, float]]]:
    """Median and spread (in percent) of each command, run in turn so that the machine's load meets all alike."""

    def measure(*commands: Sequence[str], times: int = 9) -> list[tuple[float, float]]:
        seen: list[list[float]] = [[] for _ in commands]
        for command in commands:
            cpu_of(command)
        for _ in range(times):
            for figures, command in zip(seen, commands):
                figures.append(cpu_of(command))
        return [(statistics.median(each), 100 * (max(each) - min(each)) / statistics.median(each)) for each in seen]

    return measure


def page() -> str:
    """The table as Markdown, below what a person has written."""
    words = {True: "met", False: "**missed**", None: "–"}
    lines = [
        "| work | seen | against | goal | |",
        "|---|---|---|---|---|",
        *(f"| {line.work} | {line.seen} | {line.against} | {line.goal} | {words[line.met]} |" for line in TABLE.lines),
    ]
    machine = f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} processors"
    return "\n".join(
        [MARK, "", machine + "; processor time (user and system) unless a row says otherwise.", "", *lines, ""]
    )


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if exitstatus == 0 and TABLE.lines:
        head = PAGE.read_text(encoding="utf-8").partition(MARK)[0] if PAGE.is_file() else "# Performance\n\n"
        PAGE.write_text(head + page(), encoding="utf-8")
        sys.stdout.write("\n" + page())
