"""Saved output of ``npu-smi info``: the chip, how many devices there are, their memory, the driver's version.

Each device is two lines of the table: its card and name, then its chip on the card with bus and memory. A card of the A3
generation has two chips, printed as a bare ``Ascend910``; each counts as one device (DIE).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ascend_compat.jobs.model import Span
from ascend_compat.stack.model import Stated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascend_compat.stack.model import Stack

_VERSION = re.compile(r"\bnpu-smi\s+(\S+)\s+Version:\s*(\S+)")
_CARD = re.compile(r"\|\s*(\d+)\s+((?:Ascend)?\s?(?:910|310|950)[\w-]*)\s*\|\s*[A-Za-z]+\s*\|")
_CHIP = re.compile(
    r"\|\s*(\d+)(?:\s+\d+)?\s*\|\s*(?:[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]|NA|N/A)\s*\|(.*)\|"
)
_USAGE = re.compile(r"\d+\s*/\s*(\d+)")


def read_table(stack: Stack, lines: Sequence[str], source: str) -> frozenset[int]:
    """Add what the tables among the lines say; gives the numbers (from 1) of the lines that belong to them."""
    taken = set()
    names: list[tuple[str, Span]] = []
    chips_on: dict[str, int] = {}
    memory: list[int] = []
    card = ""
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text.startswith(("|", "+")) or len(text) > 1000:
            continue
        taken.add(number)
        version = _VERSION.search(text)
        if version:
            stack.state("driver", version.group(2), _span(source, number, line))
            continue
        named = _CARD.match(text)
        if named:
            card = named.group(1)
            names.append((named.group(2), _span(source, number, line)))
            continue
        chip = _CHIP.match(text)
        if chip and card:
            chips_on[card] = chips_on.get(card, 0) + 1
            totals = [int(total) for total in _USAGE.findall(chip.group(2)) if len(total) < 12]
            memory += [total for total in totals[-1:] if total]
            # a table of dual-chip cards repeats the card's line before each chip
    if names:
        _state(stack, names, chips_on, memory)
    return frozenset(taken)


def _state(stack: Stack, names: list[tuple[str, Span]], chips_on: dict[str, int], memory: list[int]) -> None:
    name, span = names[0]
    stack.state("chip", name if name.startswith("Ascend") else f"Ascend{name}", span)
    stack.values["npu_count"] = Stated(str(sum(chips_on.values()) or len(names)), span)
    if chips_on:
        stack.values["chips_per_card"] = Stated(str(max(chips_on.values())), span)
    if memory:
        stack.values["npu_memory_gib"] = Stated(f"{round(min(memory) / 1024, 1):g}", span)


def _span(source: str, number: int, line: str) -> Span:
    text = line.rstrip()
    return Span(source, number, 1, max(1, len(text)), text)
