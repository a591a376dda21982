"""The plan of one run (``plan.json``), and whether what a run showed is what its recipe expects."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

EXPECTATIONS = ("finite_loss", "falling_loss", "throughput", "memory", "metrics")


class PlanError(Exception):
    """A plan that cannot be run, in one sentence."""


@dataclass
class Measured:
    """What a run has shown so far."""

    losses: list[tuple[int, float]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    tokens_per_second: list[float] = field(default_factory=list)
    memory_bytes: list[float] = field(default_factory=list)
    metrics: dict[str, float] = field(default_factory=dict)
    steps: int = 0
    finished: bool = False


def load(path: Path) -> dict[str, Any]:
    """The plan at ``path``. Raises :class:`PlanError`."""
    try:
        plan = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise PlanError(f"{path}: {error}") from None
    if not isinstance(plan, dict):
        raise PlanError(f"{path}: a plan is a mapping")
    command = plan.get("command")
    if isinstance(command, dict):
        if not isinstance(command.get("main"), str):
            raise PlanError(f"{path}: command.main names the script to start")
    elif not (isinstance(command, list) and command and all(isinstance(word, str) for word in command)):
        raise PlanError(f"{path}: command is a list of words or {{main: script}}")
    unknown = set(plan.get("expect") or {}) - set(EXPECTATIONS)
    if unknown:
        raise PlanError(f"{path}: no runner can judge the expectation {', '.join(sorted(unknown))}")
    return plan


def judge(plan: dict[str, Any], measured: Measured) -> tuple[str, str, str]:
    """Result, kind and reason of a run whose processes ended well."""
    expect = plan.get("expect") or {}
    losses = [loss for _, loss in measured.losses]
    wanted = plan.get("steps")
    bad = next(((step, loss) for step, loss in measured.losses if not math.isfinite(loss)), None)
    if bad and expect.get("finite_loss", True):
        return "fail", "nan-loss", f"the loss of step {bad[0]} is {bad[1]}"
    if wanted and measured.steps < wanted:
        return "error", "framework", f"the log ends after {measured.steps} of {wanted} steps"
    if not losses and (expect.get("finite_loss") or expect.get("falling_loss")):
        return "error", "framework", "the log holds no loss"
    if expect.get("falling_loss"):
        half = len(losses) // 2
        if not half:
            return "error", "framework", "one loss cannot show whether it falls"
        first, last = sum(losses[:half]) / half, sum(losses[-half:]) / half
        if not last < first:
            return (
                "fail",
                "loss-not-falling",
                f"the mean loss of the last {half} steps is {last:.4f}, of the first {first:.4f}",
            )
    # the first step includes compilation and warm-up
    speed = measured.tokens_per_second[1:] or measured.tokens_per_second
    values = dict(measured.metrics)
    if speed:
        values["throughput"] = sum(speed) / len(speed)
    if measured.memory_bytes:
        values["memory"] = max(measured.memory_bytes)
    windows = {name: expect[name] for name in ("throughput", "memory") if expect.get(name)}
    windows.update(expect.get("metrics") or {})
    for name, window in windows.items():
        value = values.get(name)
        if value is None:
            return "error", "not-measured", f"{name} was not measured"
        for bound, holds in (("lower", lambda v, b: v >= b), ("upper", lambda v, b: v <= b)):
            limit = window.get(bound)
            if limit is not None and not holds(value, limit):
                return "fail", "out-of-window", f"{name} is {value:g}, its {bound} bound {limit:g}"
    return "pass", "", ""
