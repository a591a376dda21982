"""Ways out of a broken rule: values that hold, nearest to the user's first, checked against every other rule."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ascend_compat.check.catalogue import fill, show
from ascend_compat.check.finding import Text, WayOut
from ascend_compat.check.rules import (
    Row,
    Rule,
    Vocabulary,
    evaluate,
    typed_fact,
    typed_value,
    unknown_closure,
    verdict_of,
)
from ascend_compat.matrix.predicates import names_in
from ascend_compat.matrix.settle import UNSURE, settle

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import duckdb

_SHOWN = 4
_LISTED = 8
_RANGE = 128
# A job of a given model cannot change these; they are never offered as a way out.
_ARCHITECTURE = frozenset(
    (
        *(
            "num_layers",
            "hidden_size",
            "ffn_hidden_size",
            "num_attention_heads",
            "num_key_value_heads",
            "num_query_groups",
        ),
        *("num_experts", "moe_ffn_hidden_size", "moe_router_topk", "vocab_size"),
    )
)


@dataclass(frozen=True, slots=True)
class Broken:
    """One job's row and the rules it breaks."""

    row: Row
    rules: tuple[Rule, ...]


def ways_out(
    con: duckdb.DuckDBPyConnection,
    broken: Sequence[Broken],
    rules: Sequence[Rule],
    vocabulary: Vocabulary,
    key_of: Callable[[str], tuple[str, bool]],
) -> list[dict[str, tuple[WayOut, ...]]]:
    """For each job, by rule id, its ways out. ``key_of`` names the key that sets a fact, and whether that key turns it off."""
    left: list[_Trial] = []
    held: dict[tuple[int, str], list[_Trial]] = {}
    reach = _Reach(rules, vocabulary)
    for number, job in enumerate(broken):
        base = _Base(job, vocabulary)
        for rule in job.rules:
            for trial in _trials(number, rule, job.row):
                holds = _holds(trial, base, reach)
                if holds is UNSURE:
                    left.append(trial)
                if holds is not False:
                    held.setdefault((number, rule.id), []).append(trial)
    refused = _refused(con, left, broken, rules, vocabulary)
    for key, trials in held.items():
        held[key] = [trial for trial in trials if id(trial) not in refused]
    return [
        {rule.id: _worded(rule, held.get((number, rule.id), []), job.row, key_of) for rule in job.rules}
        for number, job in enumerate(broken)
    ]


@dataclass(frozen=True, slots=True)
class _Trial:
    job: int
    rule: Rule
    edits: dict[str, Any]
    searched: bool


def _trials(job: int, rule: Rule, row: Row) -> list[_Trial]:
    trials = []
    for way in rule.ways_out:
        if "set" in way:
            trials.append(_Trial(job, rule, dict(way["set"]), searched=False))
        elif "unset" in way:
            names = way["unset"] if isinstance(way["unset"], list) else [way["unset"]]
            trials.append(_Trial(job, rule, dict.fromkeys(names), searched=False))
        elif "change" in way and way["change"] not in _ARCHITECTURE:
            name = way["change"]
            values = way.get("values") or _candidates(row.facts.get(name), [row.facts.get(fact) for fact in rule.facts])
            trials.extend(
                _Trial(job, rule, {name: value}, searched=True) for value in values if value != row.facts.get(name)
            )
    return trials


class _Reach:
    """Which rules an edit of some facts can turn: those that name one, or a fact derived from one."""

    def __init__(self, rules: Sequence[Rule], vocabulary: Vocabulary) -> None:
        self._rules = rules
        self._derived = vocabulary.derived
        self._known: dict[frozenset[str], list[Rule]] = {}

    def of(self, names: frozenset[str]) -> list[Rule]:
        """Rules of severity ``impossible`` within reach of the facts of these names."""
        if names not in self._known:
            reached, size = set(names), 0
            while len(reached) > size:
                size = len(reached)
                reached.update(name for name, sql in self._derived if not reached.isdisjoint(names_in(sql)))
            self._known[names] = [
                rule for rule in self._rules if rule.severity == "impossible" and not reached.isdisjoint(rule.facts)
            ]
        return self._known[names]


class _Base:
    """What all trials of one job start from."""

    def __init__(self, job: Broken, vocabulary: Vocabulary) -> None:
        self.row = job.row
        self.broken = {rule.id for rule in job.rules}
        self.vocabulary = vocabulary
        types = vocabulary.types
        self.facts = {name: typed_fact(value, types[name]) for name, value in job.row.facts.items() if name in types}
        self.derived = {name: sql for name, sql in vocabulary.derived if self.facts.get(name) is None}
        self.sql = dict(vocabulary.derived)


class _Facts(dict[str, Any]):
    """Facts of one trial, each derived one worked out when a rule asks for it; unknown ones are NULL."""

    def __init__(self, base: _Base, edits: Mapping[str, Any]) -> None:
        super().__init__(base.facts)
        self._vocabulary = base.vocabulary
        self._derived = dict(base.derived)
        types = base.vocabulary.types
        for name, value in edits.items():
            if name in types:
                self[name] = typed_fact(value, types[name])
                if self[name] is not None:
                    self._derived.pop(name, None)
                elif name in base.sql:
                    self._derived[name] = base.sql[name]
        self.unknown: frozenset[str] = frozenset()
        if base.row.unknown:
            self.unknown = frozenset(unknown_closure(_changed(base.row, edits), base.vocabulary.derived))

    def get(self, name: str, default: Any = None) -> Any:
        """A fact's value, None for NULL, ``UNSURE`` where only DuckDB can tell."""
        sql = self._derived.pop(name, None)
        if sql is not None and name not in self.unknown:
            made = settle(self._vocabulary.trees.get(sql, ["?"]), self)
            self[name] = typed_value(made, self._vocabulary.types[name])
        return super().get(name, default)


def _holds(trial: _Trial, base: _Base, reach: _Reach) -> Any:
    """Whether a trial keeps its own rule and turns no other against the job; ``UNSURE`` where only DuckDB can tell."""
    facts = _Facts(base, trial.edits)
    own = verdict_of(trial.rule, facts, facts.unknown, facts.unknown)
    if own is True:
        return False
    sure = own is not UNSURE
    for rule in reach.of(frozenset(trial.edits)):
        if rule.id not in base.broken:
            verdict = verdict_of(rule, facts, facts.unknown, facts.unknown)
            if verdict is True:
                return False
            sure = sure and verdict is not UNSURE
    return True if sure else UNSURE


def _refused(
    con: duckdb.DuckDBPyConnection,
    trials: Sequence[_Trial],
    broken: Sequence[Broken],
    rules: Sequence[Rule],
    vocabulary: Vocabulary,
) -> set[int]:
    """Those trials (by identity) that DuckDB finds to break their own rule or another one."""
    rows = [_changed(broken[trial.job].row, trial.edits) for trial in trials]
    refused = set()
    for trial, outcome in zip(trials, evaluate(con, rows, rules, vocabulary, wild=True)):
        before = {rule.id for rule in broken[trial.job].rules}
        after = {rule.id for rule in outcome.broken if rule.severity == "impossible"}
        if trial.rule.id in {rule.id for rule in outcome.broken} or not after <= before:
            refused.add(id(trial))
    return refused


def _candidates(now: Any, others: Sequence[Any]) -> list[int]:
    """Whole numbers worth trying: small ones, divisors of the rule's other facts, and what lies near today's value."""
    values = set(range(1, 33)) | {2**power for power in range(6, 13)}
    for other in others:
        if isinstance(other, int) and not isinstance(other, bool) and 0 < other <= 1_000_000:
            values.update(part for part in range(1, _RANGE) if other % part == 0)
            values.update(other * part for part in range(1, 9))
    if isinstance(now, int) and not isinstance(now, bool):
        values.update(range(max(1, now - _RANGE), now + _RANGE))
        values = {value for value in values if value <= max(64, now * 8)}
    return sorted(values)


def _changed(row: Row, edits: Mapping[str, Any]) -> Row:
    return Row({**row.facts, **edits}, row.unknown - edits.keys())


def _distance(value: Any, now: Any) -> float:
    if isinstance(value, (int, float)) and isinstance(now, (int, float)) and value > 0 and now > 0:
        return abs(math.log(value / now))
    return 0.0


def _worded(
    rule: Rule, held: Sequence[_Trial], row: Row, key_of: Callable[[str], tuple[str, bool]]
) -> tuple[WayOut, ...]:
    ways = []
    by_fact: dict[str, list[Any]] = {}
    for trial in held:
        if trial.searched:
            ((name, value),) = trial.edits.items()
            by_fact.setdefault(name, []).append(value)
        else:
            english = ", ".join(_assign(*key_of(name), value, "en") for name, value in trial.edits.items())
            chinese = "，".join(_assign(*key_of(name), value, "zh") for name, value in trial.edits.items())
            ways.append(WayOut(Text(english, chinese), dict(trial.edits)))
    for name, values in by_fact.items():
        ways.append(_choice(key_of(name)[0], name, values, row.facts.get(name)))
    for way in rule.ways_out:
        if "say" in way:
            words = dict(row.facts)
            ways.append(WayOut(Text(fill(way["say"]["en"], words), fill(way["say"]["zh"], words))))
    return tuple(ways)


def _shown(key: str) -> str:
    """A key as a user types it: without the word for where it stands (``torchrun:--nnodes``, ``env:NNODES``)."""
    place, colon, rest = key.partition(":")
    return rest if colon and place in ("torchrun", "env", "deepspeed", "accelerate", "msrun") else key


def _assign(key: str, turns_off: bool, value: Any, language: str) -> str:
    key = _shown(key)
    if turns_off and isinstance(value, bool):
        value = not value
    if value is None or value is False:
        return f"leave out {key}" if language == "en" else f"去掉 {key}"
    if value is True:
        return f"turn on {key}" if language == "en" else f"开启 {key}"
    return f"set {key} to {show(value)}" if language == "en" else f"将 {key} 设为 {show(value)}"


def _choice(key: str, name: str, values: Sequence[Any], now: Any) -> WayOut:
    key = _shown(key)
    # of equally near ones the larger; of a setting that is not there yet the smallest
    upwards = 1 if now is None else -1
    nearest = sorted(
        values, key=lambda value: (_distance(value, now), upwards * value if isinstance(value, int) else 0)
    )
    first = sorted(nearest[:_SHOWN]) if isinstance(now, int) else list(nearest[:_SHOWN])
    english = f"set {key} to {' or '.join(show(value) for value in first)}"
    chinese = f"将 {key} 设为 {' 或 '.join(show(value) for value in first)}"
    if isinstance(now, int):
        listed = sorted(values)
        tail = "" if len(listed) <= _LISTED else ", …"
        legal = ", ".join(show(value) for value in listed[:_LISTED]) + tail
        english += f" (nearest to {show(now)}; legal here: {legal})"
        chinese += f"（最接近 {show(now)}；此处合法取值：{legal}）"
    return WayOut(Text(english, chinese), {name: nearest[0]})
