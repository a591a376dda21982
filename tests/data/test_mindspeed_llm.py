"""MindSpeed-LLM data: nothing lost, both languages, every source, every example, and the rules that must stay silent."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import duckdb
import pytest
import yaml

from ascend_compat.check import examples as rule_examples
from ascend_compat.check.engine import Engine
from ascend_compat.check.rules import Row, evaluate, names_in
from ascend_compat.resources import matrix_dir

FRAMEWORK = "mindspeed-llm"
RELEASES = ["1.0.0", "2.0.0", "2.1.0", "2.2.0", "2.3.0", "26.0.0", "26.1.0", "master"]
TABLES = {"2.0.0": 26, "2.1.0": 35, "2.2.0": 35, "2.3.0": 36, "26.0.0": 38, "26.1.0": 38, "master": 23}
CANDIDATES = {
    "PAR": 31, "DPV": 8, "BAT": 9, "SEQ": 3, "SHP": 5, "PRC": 6, "OPT": 11, "FSD": 12, "CPX": 15, "PCK": 6,
    "CKP": 4, "LOR": 6, "MOE": 44, "REC": 10, "TPO": 8, "MLA": 5, "DSA": 3, "MHC": 2, "MTP": 2, "ATT": 5,
    "MIS": 9, "CVT": 10, "DAT": 4, "WRD": 1, "FX": 10,
}  # fmt: skip
FOUR_LAYOUTS = {"tensor_parallel": 1, "pipeline_parallel": 1, "context_parallel": 1, "expert_parallel": 1}


def document(*parts: str) -> Any:
    """One YAML document below ``matrix/``."""
    return yaml.load(matrix_dir().joinpath(*parts).read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)


def all_rules() -> list[dict[str, Any]]:
    """Every rule of the framework as written."""
    paths = sorted((matrix_dir() / "rules" / FRAMEWORK).glob("*.yaml"))
    return [rule for path in paths for rule in document("rules", FRAMEWORK, path.name).get("rules", ())]


def declared() -> dict[str, str]:
    """Types of all declared facts."""
    paths = sorted((matrix_dir() / "frameworks" / "facts").glob("*.yaml"))
    return {f["name"]: f["type"] for path in paths for f in document("frameworks", "facts", path.name)["facts"]}


def test_every_candidate_is_a_rule_or_left_out_with_a_reason() -> None:
    rules = all_rules()
    left = document("rules", FRAMEWORK, "left-out.yaml")["left_out"]
    named = {name for rule in rules for name in rule.get("candidates", ())}
    gone = {entry["candidate"] for entry in left}
    expected = {
        f"{FRAMEWORK}/{letters}{number:02d}" for letters, last in CANDIDATES.items() for number in range(1, last + 1)
    }
    assert (len(rules), len(named), len(gone), len(expected)) == (212, 210, 19, 229)
    assert named | gone == expected
    assert not named & gone
    assert all(len(entry["reason"]["en"]) > 20 and len(entry["reason"]["zh"]) > 10 for entry in left)
    assert Counter(rule["severity"] for rule in rules) == {"impossible": 199, "warning": 13}
    assert Counter(rule["rests_on"] for rule in rules) == {"proof": 184, "reading": 28}
    assert len({rule["id"] for rule in rules}) == 212


def test_messages_name_declared_facts_in_both_languages() -> None:
    types = declared()
    for rule in all_rules():
        english, chinese = (set(re.findall(r"{(\w+)}", rule["message"][language])) for language in ("en", "zh"))
        assert english == chinese, rule["id"]
        assert english <= types.keys(), rule["id"]
        assert re.search("[一-鿿]", rule["message"]["zh"]), rule["id"]
        words = names_in(f"{rule.get('when', '')} {rule['requires']}")
        assert words & types.keys(), rule["id"]
        assert english <= words, rule["id"]
        for way in rule.get("ways_out", ()):
            change, unset = way.get("change", []), way.get("unset", [])
            asked = {
                *([change] if isinstance(change, str) else change),
                *([unset] if isinstance(unset, str) else unset),
            }
            assert asked | way.get("set", {}).keys() <= types.keys(), rule["id"]


def test_sources_are_complete() -> None:
    for rule in all_rules():
        source = rule["source"]
        assert source.get("url") or re.fullmatch("[0-9a-f]{40}", source["commit"]), rule["id"]
        assert source.get("url") or (source["repo"] and source["path"]), rule["id"]
        assert rule.get("since", RELEASES[0]) in RELEASES
    for key in document("frameworks", "keys", "mindspeed-llm.yaml")["keys"]:
        if ":" not in key["key"]:
            assert re.fullmatch(r"[\w.-]+:\S+", key["source"]), key["key"]


def test_keys_are_all_there_and_mean_facts_of_their_type() -> None:
    body = document("frameworks", "keys", "mindspeed-llm.yaml")
    keys = {key["key"]: key for key in body["keys"]}
    assert len(body["keys"]) == len(keys) == 1034
    assert sum("fact" in key for key in keys.values()) == 222
    assert sum(name.startswith("--") for name in keys) == 998
    types = declared()
    for name, key in keys.items():
        if "fact" in key:
            assert types[key["fact"]] == {"flag": "boolean"}.get(key["type"], key["type"]), name
        for other in {key.get("alias_of"), key.get("deprecated")} - {None}:
            assert other in keys, name
        for window in (key, *key.get("windows", ()), *key.get("defaults", ())):
            assert window.get("since", "master") in RELEASES, name
            assert window.get("until", "master") in RELEASES, name
        if key.get("source"):
            assert key["source"].partition(":")[0] in body["sources"], name


@pytest.mark.parametrize(
    ("name", "version", "known"),
    [
        ("--qlora", "26.0.0", True),
        ("--qlora", "master", False),
        ("--expert-tensor-parallel-size", "2.1.0", False),
        ("--expert-tensor-parallel-size", "2.2.0", True),
        ("--pipeline-model-parallel-layout", "26.0.0", False),
        ("--pipeline-model-parallel-layout", "26.1.0", True),
        ("--no-pad-to-seq-lengths", "2.2.0", False),
        ("--no-pad-to-seq-lengths", "2.3.0", True),
    ],
)
def test_flags_come_and_go(con: duckdb.DuckDBPyConnection, name: str, version: str, known: bool) -> None:
    spec = Engine(con).spec(FRAMEWORK)
    assert spec is not None
    key = spec.find(name)
    assert key is not None
    assert spec.holds(key, version) is known


def test_releases_and_tables() -> None:
    product = document("products", FRAMEWORK, "product.yaml")
    assert [release["id"] for release in product["releases"]] == RELEASES
    models = {
        model["id"]
        for path in (matrix_dir() / "models").glob("*.yaml")
        for model in document("models", path.name)["models"]
    }
    for release, rows in TABLES.items():
        table = document("products", FRAMEWORK, f"{release}.yaml")
        assert len(table["rows"]) == rows, release
        columns = {column["id"] for column in table["columns"]}
        for row in table["rows"]:
            assert set(row["models"]) <= models
            assert row[FRAMEWORK].keys() == columns
            for cell in row[FRAMEWORK].values():
                if isinstance(cell, dict) and cell["status"] == "supported":
                    assert {"repo", "path", "commit"} <= cell["source"].keys()


def test_every_example_does_what_it_should(con: duckdb.DuckDBPyConnection) -> None:
    engine = Engine(con)
    chosen = [example for example in rule_examples.examples(engine) if example.framework == FRAMEWORK]
    results = rule_examples.run(engine, chosen)
    assert len(results) == 428
    assert [(r.example.rule, r.example.kind, r.problem) for r in results if r.problem] == []


@pytest.mark.parametrize(
    "facts",
    [
        # experts over the tensor ranks as well: EP above DP x CP
        {
            "world_size": 64,
            "tensor_parallel": 16,
            "expert_parallel": 64,
            "expert_tensor_parallel": 1,
            "num_experts": 256,
        },
        # 61 layers listed stage by stage
        {"num_layers": 61, "pipeline_parallel": 4, "num_layer_list": [15, 15, 16, 15]},
        # layers padded with empty ones, the first among them
        {"num_layers": 64, "pipeline_parallel": 8, "noop_layers": [0, 63], "virtual_pipeline_layers": 2},
        # one micro batch on eight stages, without virtual pipeline
        {"world_size": 8, "pipeline_parallel": 8, "micro_batch_size": 1, "global_batch_size": 1, "num_layers": 64},
        # ulysses with fewer key-value groups than ranks
        {
            "context_parallel": 8,
            "context_parallel_algo": "ulysses_cp_algo",
            "num_attention_heads": 64,
            "num_query_groups": 4,
            "group_query_attention": True,
            "seq_length": 32768,
        },
        # an algorithm named while context parallel is off
        {"context_parallel_algo": "hybrid_cp_algo", "num_attention_heads": 28, "seq_length": 4097},
        # nothing known at all
        {},
    ],
)
def test_naive_rules_stay_silent(con: duckdb.DuckDBPyConnection, facts: dict[str, Any]) -> None:
    engine = Engine(con)
    rules = engine.rules(FRAMEWORK, "26.1.0")
    assert len(rules) > 200
    (outcome,) = evaluate(con, [Row({**FOUR_LAYOUTS, **facts})], rules, engine.vocabulary(FRAMEWORK))
    assert [rule.id for rule in outcome.broken if rule.severity == "impossible"] == []


def test_a_dense_model_has_no_experts_to_split(con: duckdb.DuckDBPyConnection) -> None:
    engine = Engine(con)
    facts = {**FOUR_LAYOUTS, "expert_parallel": 8, "world_size": 8}
    rules = engine.rules(FRAMEWORK, "26.1.0")
    (outcome,) = evaluate(con, [Row(facts)], rules, engine.vocabulary(FRAMEWORK))
    assert "ML-MOE01" in {rule.id for rule in outcome.broken}
    (silent,) = evaluate(con, [Row(facts, frozenset({"num_experts"}))], rules, engine.vocabulary(FRAMEWORK))
    assert "ML-MOE01" not in {rule.id for rule in silent.broken}
