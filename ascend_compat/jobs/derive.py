"""Derived facts of a job, with what they rest on; the values come from one SQL statement over many jobs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ascend_compat.jobs.model import Fact, Job, Unresolved
from ascend_compat.jobs.spec import Spec

_STRING = re.compile(r"'(?:[^']|'')*'")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ORIGIN = {
    "default": ("default", "默认值"),
    "model": ("from the model", "来自模型"),
    "derived": ("derived", "推导"),
}


def inputs(sql: str, types: Mapping[str, str]) -> list[str]:
    """Facts that an expression names, in order."""
    return [word for word in dict.fromkeys(_WORD.findall(_STRING.sub("''", sql))) if word in types]


def attach(job: Job, values: Mapping[str, Any], spec: Spec) -> None:
    """Adds derived values to a job's facts, in the framework's order.

    A fact that the job, its framework's default or its model gives is left as it is. One that stays NULL because something
    it is computed from is unknown becomes unknown too, and says which.
    """
    for name, sql in spec.derived:
        before = job.facts.get(name)
        if before is not None and (before.value is not None or before.origin == "unknown"):
            continue
        named = [word for word in inputs(sql, spec.types) if word != name]
        value = values.get(name)
        if value is not None:
            job.facts[name] = Fact(name, value, "derived", why=_because(job, named))
            continue
        missing = [word for word in named if word in job.facts and job.facts[word].origin == "unknown"]
        if missing and before is None:
            listed = ", ".join(missing)
            job.facts[name] = Fact(name, None, "unknown", why=Unresolved(f"needs {listed}", f"依赖未知的 {listed}"))


def _because(job: Job, named: list[str]) -> Unresolved | None:
    english, chinese = [], []
    for name in named:
        fact = job.facts.get(name)
        if fact is None or fact.value is None:
            continue
        if fact.origin == "stated" and fact.span is not None:
            english.append(f"{name} (line {fact.span.line})")
            chinese.append(f"{name}（第 {fact.span.line} 行）")
        elif fact.origin in _ORIGIN:
            english.append(f"{name} ({_ORIGIN[fact.origin][0]})")
            chinese.append(f"{name}（{_ORIGIN[fact.origin][1]}）")
    return Unresolved(f"from {', '.join(english)}", f"由 {'、'.join(chinese)} 得出") if english else None
