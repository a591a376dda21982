"""LLaMA-Factory and AscendFactory data: nothing lost, both languages, every source, every example, official floors."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml

from ascend_compat.check import examples as rule_examples
from ascend_compat.check.engine import Engine
from ascend_compat.check.rules import Row, evaluate, names_in
from ascend_compat.resources import matrix_dir

FRAMEWORKS = ("llamafactory", "ascendfactory")
RULES = {"llamafactory": 286, "ascendfactory": 35}
CANDIDATES = {"llamafactory": (222, 11), "ascendfactory-yaml": (39, 10)}
RELEASES = [
    "0.6.3",
    "0.7.0",
    "0.7.1",
    "0.8.0",
    "0.8.1",
    "0.8.2",
    "0.8.3",
    "0.9.0",
    "0.9.1",
    "0.9.2",
    "0.9.3",
    "0.9.4",
    "0.9.5",
    "main",
]


def document(*parts: str) -> Any:
    """One YAML document below ``matrix/``."""
    return yaml.load(matrix_dir().joinpath(*parts).read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)


def rule_documents(framework: str) -> list[tuple[Path, dict[str, Any]]]:
    """Every rule of a framework with its file."""
    found = []
    for path in sorted((matrix_dir() / "rules" / framework).glob("*.yaml")):
        body = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
        found += [(path, rule) for rule in body.get("rules", ())]
    return found


def test_keys_are_all_there_and_named_once() -> None:
    keys = document("frameworks", "keys", "llamafactory.yaml")["keys"]
    names = [key["key"] for key in keys]
    assert len(keys) == 699
    assert len(set(names)) == 699
    groups = Counter(name.partition(":")[0] if ":" in name else "job" for name in names)
    assert groups["job"] == 447
    assert groups["v1"] == 63
    assert groups["env"] == 44
    assert sum("fact" in key for key in keys) == 252
    assert all(key.get("source") for key in keys)
    assert len(document("frameworks", "keys", "ascendfactory.yaml")["keys"]) == 48


def test_windows_and_changed_defaults_of_keys() -> None:
    keys = {key["key"]: key for key in document("frameworks", "keys", "llamafactory.yaml")["keys"]}
    assert keys["cutoff_len"]["default"] == 2048
    assert keys["cutoff_len"]["defaults"] == [{"since": "0.6.3", "until": "0.9.0", "value": 1024}]
    assert keys["use_v1_kernels"]["since"] == "0.9.4"
    assert keys["use_cache"]["until"] == "0.9.3"
    assert keys["use_cache"]["deprecated"] == "use_kv_cache"
    assert keys["tensor_model_parallel_size"]["since"] == "main"
    renamed = [key for key in keys.values() if "deprecated" in key]
    assert len(renamed) == 24
    assert all(key["deprecated"] in keys for key in renamed)


def test_keys_name_known_sources() -> None:
    body = document("frameworks", "keys", "llamafactory.yaml")
    for key in body["keys"]:
        assert key["source"].partition(":")[0] in body["sources"], key["key"]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_rule_is_complete(framework: str, con: duckdb.DuckDBPyConnection) -> None:
    types = dict(con.execute("SELECT name, type FROM fact").fetchall())
    rules = rule_documents(framework)
    assert len(rules) == RULES[framework]
    assert len({rule["id"] for _, rule in rules}) == len(rules)
    for path, rule in rules:
        place = f"{path.name} {rule['id']}"
        assert re.search(r"[\u4e00-\u9fff]", rule["message"]["zh"]), place
        assert not re.search(r"[\u4e00-\u9fff]", rule["message"]["en"]), place
        for language in ("en", "zh"):
            holes = re.findall(r"{(\w+)}", rule["message"][language])
            assert set(holes) <= types.keys(), place
        assert set(re.findall(r"{(\w+)}", rule["message"]["en"])) == set(
            re.findall(r"{(\w+)}", rule["message"]["zh"])
        ), place
        assert names_in(f"{rule.get('when', '')} {rule['requires']}") & types.keys(), place
        source = rule["source"]
        assert source.get("url") or (
            source["repo"] and source["path"] and re.fullmatch(r"[0-9a-f]{40}", source["commit"])
        ), place
        for way in rule.get("ways_out", ()):
            named = way.get("set", {}).keys() | ({way["change"]} if "change" in way else set())
            assert named <= types.keys(), place
            assert way.get("say", {}).keys() in ({"en", "zh"}, set()), place


@pytest.mark.parametrize(
    ("origin", "folder"), [("llamafactory", "llamafactory"), ("ascendfactory-yaml", "ascendfactory")]
)
def test_every_candidate_ends_somewhere(origin: str, folder: str) -> None:
    total, left = CANDIDATES[origin]
    body = document("rules", folder, "left-out.yaml")
    out = {entry["candidate"] for entry in body["left_out"]}
    assert len(out) == left
    assert all(entry["reason"]["en"] and entry["reason"]["zh"] for entry in body["left_out"])
    used = {candidate for _, rule in rule_documents(folder) for candidate in rule.get("candidates", ())}
    assert all(candidate.startswith(f"{origin}/") for candidate in used | out)
    assert not used & out
    assert len(used | out) == total


def test_examples_of_every_rule_hold(con: duckdb.DuckDBPyConnection) -> None:
    engine = Engine(con)
    chosen = [example for example in rule_examples.examples(engine) if example.framework in FRAMEWORKS]
    assert len(chosen) == 647
    wrong = [result for result in rule_examples.run(engine, chosen) if result.problem]
    assert [(result.example.rule, result.example.kind, result.problem) for result in wrong] == []


def test_tables_state_the_same_models_in_every_release() -> None:
    listed = {}
    for release in RELEASES:
        table = document("products", "llamafactory", f"{release}.yaml")
        assert len(table["rows"]) == 65
        assert {row["models"][0] for row in table["rows"]} < {
            model["id"]
            for path in (matrix_dir() / "models").glob("*.yaml")
            for model in yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)["models"]
        }
        listed[release] = {row["models"][0] for row in table["rows"] if row["llamafactory"] != "unknown"}
    assert [len(listed[release]) for release in RELEASES] == [1, 1, 2, 8, 8, 8, 8, 12, 22, 34, 51, 60, 60, 60]
    assert "qwen3-8b" in listed["0.9.3"] - listed["0.9.2"]
    assert "internvl2.5-38b" not in listed["main"]


# memory floors: model parameters, settings, whether the floor refuses 64 GiB
Q7, Q14, Q32, Q72, L70, M30, Q8 = (
    7615616512,
    14770033664,
    32763876352,
    72706203648,
    70553706496,
    30532122624,
    8190735360,
)
FLOORS = [
    ("full ddp", Q7, {"deepspeed_stage": 0, "world_size": 8}, True),
    ("full zero-2", Q7, {"deepspeed_stage": 2, "world_size": 8}, False),
    ("full zero-2 14b", Q14, {"deepspeed_stage": 2, "world_size": 8}, False),
    ("full zero-2 32b", Q32, {"deepspeed_stage": 2, "world_size": 64}, True),
    ("full zero-3 32b", Q32, {"deepspeed_stage": 3, "world_size": 8}, False),
    ("full zero-3 72b on 16", Q72, {"deepspeed_stage": 3, "world_size": 16}, True),
    ("full zero-3 72b on 32", Q72, {"deepspeed_stage": 3, "world_size": 32}, False),
    (
        "full zero-3 offload",
        Q32,
        {"deepspeed_stage": 3, "world_size": 8, "offload_optimizer": "cpu", "offload_param": "cpu"},
        False,
    ),
    ("lora zero-2 70b", L70, {"deepspeed_stage": 2, "world_size": 8, "finetuning_type": "lora"}, True),
    ("lora zero-3 70b", L70, {"deepspeed_stage": 3, "world_size": 8, "finetuning_type": "lora"}, False),
    ("fsdp placeholder", M30, {"fsdp": True, "world_size": 2}, True),
    ("fsdp2 8b on 2", Q8, {"fsdp": True, "fsdp_version": 2, "world_size": 2}, False),
    ("fsdp not known", M30, {"fsdp": None, "world_size": 2}, False),
]


@pytest.mark.parametrize(("name", "params", "settings", "refused"), FLOORS, ids=[floor[0] for floor in FLOORS])
@pytest.mark.parametrize("memory", [64, 60.96])
def test_memory_floors(
    con: duckdb.DuckDBPyConnection, name: str, params: int, settings: dict[str, Any], refused: bool, memory: float
) -> None:
    engine = Engine(con)
    facts = {
        "finetuning_type": "full",
        "do_train": True,
        "bf16": True,
        "pure_bf16": False,
        "use_badam": False,
        "fsdp": False,
        "deepspeed_stage": 0,
        "modality": "text",
        "total_params": params,
        "device_memory_gib": memory,
        **settings,
    }
    rules = [rule for rule in rule_examples.all_rules(engine, "llamafactory") if rule.id.startswith("LF-M")]
    assert len(rules) == 29
    (outcome,) = evaluate(con, [Row(facts)], rules, engine.vocabulary("llamafactory"))
    assert any(rule.severity == "impossible" for rule in outcome.broken) is refused, name


def test_a_floor_without_known_memory_only_warns(con: duckdb.DuckDBPyConnection) -> None:
    engine = Engine(con)
    facts = {"finetuning_type": "full", "do_train": True, "bf16": True, "pure_bf16": False, "fsdp": False}
    row = Row({**facts, "deepspeed_stage": 0, "modality": "text", "total_params": Q7, "use_badam": False})
    rules = [rule for rule in rule_examples.all_rules(engine, "llamafactory") if rule.id.startswith("LF-M")]
    (outcome,) = evaluate(con, [row], rules, engine.vocabulary("llamafactory"))
    assert [(rule.id, rule.severity) for rule in outcome.broken] == [("LF-M03W", "warning")]
