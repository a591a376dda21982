"""What is settled without DuckDB is what DuckDB says: the same rules break, the same features are asked for."""

from __future__ import annotations

import dataclasses
import random
import re
from typing import TYPE_CHECKING, Any

import pytest

from ascend_compat.check.engine import Engine
from ascend_compat.check.rules import Row, Vocabulary, evaluate, load_rules
from ascend_compat.check.wayout import Broken, ways_out
from ascend_compat.matrix.store import connect

if TYPE_CHECKING:
    from ascend_compat.check.rules import Rule

FRAMEWORKS = {"mindspeed-llm": 200, "llamafactory": 200, "verl": 80, "mindspeed-rl": 60, "stack": 20}
ROWS = 60
WAYS = 2
# functions whose work and memory grow with a number that a job file states
GROWING = re.compile(
    r"\b(range|generate_series|repeat|lpad|rpad|list_resize|array_resize|factorial)\s*\(", re.IGNORECASE
)
NUMBERS = (0, 1, 2, 3, 4, 7, 8, 28, 64, 128, 4096, 2**31, 2**40)


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(connect())


def literals(texts: list[str]) -> dict[str, list[str]]:
    """Words that the rules themselves compare, so that random rows reach their branches."""
    found: dict[str, list[str]] = {}
    for text in texts:
        words = [word for word in re.findall(r"'((?:[^']|'')*)'", text) if word]
        for name in set(re.findall(r"[a-z_]\w*", text)):
            found.setdefault(name, []).extend(words)
    return found


def value(draw: random.Random, kind: str, words: list[str]) -> Any:
    if draw.random() < 0.3:
        return None
    if kind == "integer":
        return draw.choice(NUMBERS) if draw.random() < 0.95 else -draw.choice(NUMBERS)
    if kind == "number":
        return draw.choice((0.0, 0.1, 0.5, 1.0, 2.0, 10.0, 1e-5, 64.0))
    if kind == "boolean":
        return draw.random() < 0.5
    text = draw.choice(words or ["x"]) if draw.random() < 0.8 else draw.choice(("", "other", "1.2.3", "%", "é"))
    if kind == "text":
        return text.strip("%") if draw.random() < 0.5 else f"a{text}b"
    if kind == "texts":
        return draw.sample([*words[:9], "p", "q"], k=draw.randint(0, 2))
    return [draw.choice(NUMBERS[:8]) for _ in range(draw.randint(0, 4))]


def plain(rules: list[Rule]) -> list[Rule]:
    """The same rules without their trees: DuckDB decides each."""
    return [dataclasses.replace(rule, trees=(["?"], ["?"])) for rule in rules]


def rows_of(draw: random.Random, rules: list[Rule], vocabulary: Vocabulary) -> list[Row]:
    texts = [f"{rule.when or ''} {rule.requires}" for rule in rules]
    texts += [sql for _, sql in (*vocabulary.derived, *vocabulary.features)]
    words = literals(texts)
    derived = {name for name, _ in vocabulary.derived}
    names = sorted({fact for rule in rules for fact in rule.facts} | derived)
    rows = []
    for _ in range(ROWS):
        facts = {name: value(draw, vocabulary.types[name], words.get(name, [])) for name in names}
        for name in derived:
            if draw.random() < 0.8:
                facts.pop(name, None)
        unknown = frozenset(draw.sample(names, k=draw.randint(0, 4)))
        rows.append(Row({name: said for name, said in facts.items() if name not in unknown}, unknown))
    return rows


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_one_row_settled_is_one_row_computed(engine: Engine, framework: str) -> None:
    rules = load_rules(engine.con, [framework], None, engine.types)
    assert len(rules) >= FRAMEWORKS[framework]
    whole = engine.vocabulary(framework)
    draw = random.Random(f"screening {framework}")
    rows = rows_of(draw, rules, whole)
    computed = evaluate(engine.con, rows, plain(rules), Vocabulary(whole.types, whole.derived, whole.features))
    broken = 0
    for row, expected in zip(rows, computed, strict=True):
        (settled,) = evaluate(engine.con, [row], rules, whole)
        assert [rule.id for rule in settled.broken] == [rule.id for rule in expected.broken]
        assert settled.features == expected.features
        assert settled.derived == expected.derived
        broken += len(expected.broken)
    assert broken > ROWS


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_batch_settled_is_a_batch_computed(engine: Engine, framework: str) -> None:
    """Rows that share most facts: those alone settle nothing for a fact that differs."""
    rules = load_rules(engine.con, [framework], None, engine.types)
    whole = engine.vocabulary(framework)
    draw = random.Random(f"batch {framework}")
    first, *others = rows_of(draw, rules, whole)
    rows = [first]
    for other in others[:20]:
        changed = draw.sample(sorted(other.facts), k=min(6, len(other.facts)))
        rows.append(Row({**first.facts, **{name: other.facts[name] for name in changed}}, first.unknown - set(changed)))
    computed = evaluate(engine.con, rows, plain(rules), Vocabulary(whole.types, whole.derived, whole.features))
    settled = evaluate(engine.con, rows, rules, whole)
    for one, other_ in zip(settled, computed, strict=True):
        assert [rule.id for rule in one.broken] == [rule.id for rule in other_.broken]
        assert (one.features, one.derived) == (other_.features, other_.derived)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_no_number_of_a_job_file_decides_how_much_is_computed(engine: Engine, framework: str) -> None:
    whole = engine.vocabulary(framework)
    rules = load_rules(engine.con, [framework], None, engine.types)
    pieces = [sql for rule in rules for sql in (rule.when or "", rule.requires)]
    pieces += [sql for _, sql in (*whole.derived, *whole.features)]
    assert len(pieces) >= 2 * FRAMEWORKS[framework]
    assert [sql for sql in pieces if GROWING.search(sql)] == []
    assert GROWING.search("list_max(range(0, num_layers))")


@pytest.mark.parametrize("number", [1, 2])
def test_a_division_by_zero_is_null_in_any_company(engine: Engine, number: int) -> None:
    """One row or several, folded or not: ``%`` by zero is NULL and what stands beside it still decides."""
    rules = load_rules(engine.con, ["mindspeed-llm"], None, engine.types)
    rule = next(each for each in rules if each.id == "ML-MOE28")
    row = Row({"num_experts": 2, "moe_router_num_groups": 0, "moe_router_group_topk": 7})
    fine = Row({"num_experts": 8, "moe_router_num_groups": 4, "moe_router_group_topk": 2})
    whole = engine.vocabulary("mindspeed-llm")
    for form in ([rule], plain([rule])):
        first, *others = evaluate(engine.con, [row, fine][:number], form, whole)
        assert [broken.id for broken in first.broken] == ["ML-MOE28"]
        assert all(not other.broken for other in others)


@pytest.mark.parametrize("framework", ["verl", "mindspeed-rl"])
def test_ways_out_settled_are_ways_out_computed(engine: Engine, framework: str) -> None:
    rules = load_rules(engine.con, [framework], None, engine.types)
    whole = engine.vocabulary(framework)
    spec = engine.spec(framework)
    assert spec is not None
    draw = random.Random(f"ways {framework}")
    rows = rows_of(draw, rules, whole)
    outcomes = evaluate(engine.con, rows, rules, whole)
    few = sorted(range(ROWS), key=lambda at: len(outcomes[at].broken))[:WAYS]
    blind = plain(rules)
    by_id = {rule.id: rule for rule in blind}
    settled = ways_out(engine.con, [Broken(rows[at], outcomes[at].broken) for at in few], rules, whole, spec.switch_of)
    computed = ways_out(
        engine.con,
        [Broken(rows[at], tuple(by_id[rule.id] for rule in outcomes[at].broken)) for at in few],
        blind,
        dataclasses.replace(whole, trees={}),
        spec.switch_of,
    )
    assert settled == computed
    assert sum(bool(way.edits) for ways in settled for each in ways.values() for way in each) >= 1
