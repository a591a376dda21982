"""The rule engine: three values, derived facts, features, ways out."""

from __future__ import annotations

import duckdb
import pytest

from ascend_compat.check.rules import Row, Rule, Vocabulary, Worded, evaluate
from ascend_compat.check.wayout import Broken, ways_out
from ascend_compat.matrix.predicates import names_in, null_tested

TYPES = {
    "world_size": "integer",
    "nnodes": "integer",
    "devices_per_node": "integer",
    "tensor_parallel": "integer",
    "pipeline_parallel": "integer",
    "data_parallel": "integer",
    "num_attention_heads": "integer",
    "layout": "text",
    "precision": "text",
}
VOCABULARY = Vocabulary(
    TYPES,
    [
        ("world_size", "nnodes * devices_per_node"),
        ("data_parallel", "world_size // (tensor_parallel * pipeline_parallel)"),
    ],
    [("tensor-parallel", "tensor_parallel > 1")],
)


def rule(identifier: str, requires: str, when: str | None = None, ways: list[dict[str, object]] | None = None) -> Rule:
    sql = f"{when or ''} {requires}"
    facts = tuple(sorted(names_in(sql) & TYPES.keys()))
    tested = tuple(sorted(null_tested(sql) & set(facts)))
    return Rule(identifier, "x", "t", "impossible", when, requires, facts, tested, Worded(ways or []))


@pytest.fixture
def con() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()


def broken(con: duckdb.DuckDBPyConnection, row: Row, *rules: Rule) -> list[str]:
    (outcome,) = evaluate(con, [row], rules, VOCABULARY)
    return [item.id for item in outcome.broken]


WORLD = rule("world", "world_size % (tensor_parallel * pipeline_parallel) = 0", ways=[{"change": "tensor_parallel"}])
HEADS = rule("heads", "num_attention_heads % tensor_parallel = 0", ways=[{"change": "tensor_parallel"}])
LAYOUT = rule("layout", "layout IS NULL", "tensor_parallel > 1")


def test_derived_facts_feed_rules(con: duckdb.DuckDBPyConnection) -> None:
    row = Row({"nnodes": 1, "devices_per_node": 8, "tensor_parallel": 3, "pipeline_parallel": 1})
    assert broken(con, row, WORLD) == ["world"]
    assert broken(con, Row({**row.facts, "tensor_parallel": 4}), WORLD) == []


def test_a_stated_fact_wins_over_its_derivation(con: duckdb.DuckDBPyConnection) -> None:
    row = Row({"nnodes": 1, "devices_per_node": 8, "world_size": 6, "tensor_parallel": 3, "pipeline_parallel": 1})
    assert broken(con, row, WORLD) == []


def test_an_unknown_fact_breaks_nothing(con: duckdb.DuckDBPyConnection) -> None:
    row = Row({"nnodes": 1, "tensor_parallel": 3, "pipeline_parallel": 1}, frozenset({"devices_per_node"}))
    (outcome,) = evaluate(con, [row], [WORLD], VOCABULARY)
    assert outcome.broken == () and [item.id for item in outcome.undecided] == ["world"]


def test_unset_is_not_unknown(con: duckdb.DuckDBPyConnection) -> None:
    needs_layout = rule("needs", "layout IS NOT NULL", "tensor_parallel > 1")
    assert broken(con, Row({"tensor_parallel": 2}), needs_layout) == ["needs"]
    assert broken(con, Row({"tensor_parallel": 2}, frozenset({"layout"})), needs_layout) == []
    assert broken(con, Row({"tensor_parallel": 2, "layout": "Et|L"}), LAYOUT) == ["layout"]


def test_text_is_never_sql(con: duckdb.DuckDBPyConnection) -> None:
    hostile = "'); ATTACH 'x.db'; --"
    precise = rule("precise", "precision IN ('bf16', 'fp16')")
    assert broken(con, Row({"precision": hostile}), precise) == ["precise"]


def test_an_overflow_leaves_only_its_own_rule_undecided(con: duckdb.DuckDBPyConnection) -> None:
    row = Row({"world_size": 8, "tensor_parallel": 2**62, "pipeline_parallel": 2**62, "layout": "x"})
    assert broken(con, row, WORLD, LAYOUT) == ["layout"]


def test_features_are_conditions_over_facts(con: duckdb.DuckDBPyConnection) -> None:
    first, second = evaluate(con, [Row({"tensor_parallel": 2}), Row({"tensor_parallel": 1})], [], VOCABULARY)
    assert first.features == ("tensor-parallel",) and second.features == ()


def test_ways_out_hold_under_every_rule_and_nearest_comes_first(con: duckdb.DuckDBPyConnection) -> None:
    row = Row(
        {"nnodes": 1, "devices_per_node": 8, "tensor_parallel": 8, "pipeline_parallel": 1, "num_attention_heads": 28}
    )
    (found,) = ways_out(con, [Broken(row, (HEADS,))], [HEADS, WORLD], VOCABULARY, lambda fact: ("--tp", False))
    (way,) = found["heads"]
    assert way.edits == {"tensor_parallel": 4}
    assert "legal here: 1, 2, 4)" in way.text.en
