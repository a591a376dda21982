"""Legal parallel sizes of every model, as ``plan`` finds them with the rules."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from ascend_compat.check.engine import Engine
from ascend_compat.check.plan import Request, plan

if TYPE_CHECKING:
    from collections.abc import Collection

    import duckdb

# one method a framework: what differs between methods is memory, and `plan` answers for the others
METHODS = {"mindspeed-llm": "full", "llamafactory": "full", "verl": "grpo", "mindspeed-rl": "grpo"}
DEVICES = {
    "mindspeed-llm": (8, 16, 32, 64, 128),
    "llamafactory": (1, 8, 16, 32),
    "verl": (8, 16, 32),
    "mindspeed-rl": (8, 16, 32),
}
_SHORT = {
    "tensor_parallel": "TP",
    "pipeline_parallel": "PP",
    "context_parallel": "CP",
    "expert_parallel": "EP",
    "data_parallel": "DP",
    "zero_stage": "ZeRO-",
    "ulysses_sp": "Ulysses",
    "rollout_tensor_parallel": "rollout TP",
}
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Entry:
    """Layouts on one number of devices: how many are legal of those tried, the best, the rules that refuse the most."""

    devices: int
    tried: int
    legal: int
    shown: list[str]
    sizes: list[dict[str, Any]]
    refused: list[str]

    def record(self) -> dict[str, Any]:
        """The entry for machines; the text of the layouts is left out."""
        return {name: value for name, value in asdict(self).items() if name != "shown"}


@dataclass(slots=True)
class Planned:
    """What ``plan`` says of one model in one framework."""

    framework: str
    version: str
    method: str
    entries: list[Entry] = field(default_factory=list)


class Layouts:
    """Plans of every model (or of ``only`` some) in every framework that some source grants it; made once, for both languages."""

    def __init__(self, con: duckdb.DuckDBPyConnection, only: Collection[str] | None = None) -> None:
        engine = Engine(con)
        self._pages: dict[str, str] = {
            rule: f"rules/{framework}-{topic}"
            for rule, framework, topic in con.execute("SELECT DISTINCT id, framework, topic FROM rule").fetchall()
        }
        self._found: dict[str, list[Planned]] = {}
        pairs = con.execute(
            "SELECT DISTINCT model, framework FROM claim WHERE status IN ('supported', 'partial') ORDER BY model, framework"
        ).fetchall()
        templates = {row[0] for row in con.execute("SELECT framework FROM template").fetchall()}
        for model, framework in pairs:
            if framework in METHODS and framework in templates and (only is None or model in only):
                self._found.setdefault(model, []).append(_planned(engine, model, framework))

    def of(self, model: str) -> list[Planned]:
        """What is legal for a model, by framework."""
        return self._found.get(model, [])

    def page_of(self, rule: str) -> str | None:
        """The page of a rule; None for what is no rule (too little memory)."""
        return self._pages.get(rule)


def _planned(engine: Engine, model: str, framework: str) -> Planned:
    method = METHODS[framework]
    made: Planned | None = None
    for devices in DEVICES[framework]:
        result = plan(engine, Request(model, framework, devices, method), search=False)
        made = made or Planned(framework, result.version, method)
        sizes = [
            {name: layout.sizes[name] for name in _SHORT if name in layout.sizes} for layout in result.layouts[:_SHOWN]
        ]
        refused = [rule for rule, _, _ in result.reasons[:2]]
        made.entries.append(
            Entry(devices, result.tried, len(result.layouts), [_text(each) for each in sizes], sizes, refused)
        )
    assert made is not None
    return made


def _text(sizes: dict[str, Any]) -> str:
    """``TP 2 PP 4``; sizes of 1 are left out, ZeRO's stage is not."""
    said = []
    for name, value in sizes.items():
        if name == "zero_stage":
            said.append(f"{_SHORT[name]}{value}")
        elif value != 1:
            said.append(f"{_SHORT[name]} {value}")
    return " ".join(said) or "1"
