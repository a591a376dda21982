"""Proof records: each names a rule that is there, its own examples and the commit they were put to."""

from __future__ import annotations

import json
from typing import Any

import duckdb
import pytest
import yaml
from support import ROOT, Command

from ascend_compat.resources import matrix_dir

LEAST = {"llamafactory": 160, "mindspeed-llm": 180, "mindspeed-rl": 50, "verl": 60}
# refused by the framework, and a warning all the same (docs/decisions/save-interval.md)
WARNED = {"ML-BAT09"}
REPOSITORIES = {
    "llamafactory": "hiyouga/LLaMA-Factory",
    "mindspeed-llm": "Ascend/MindSpeed-LLM",
    "mindspeed-rl": "Ascend/MindSpeed-RL",
    "verl": "verl-project/verl",
}


def records(framework: str) -> list[dict[str, Any]]:
    body = yaml.safe_load((matrix_dir() / "rules" / framework / "proofs.yaml").read_text(encoding="utf-8"))
    assert body["framework"] == framework
    found: list[dict[str, Any]] = body["proofs"]
    return found


@pytest.mark.parametrize("framework", sorted(LEAST))
def test_each_record_is_of_a_rule_and_of_its_examples(framework: str, con: duckdb.DuckDBPyConnection) -> None:
    rows = con.execute(
        "SELECT id, any_value(severity), any_value(examples) FROM rule WHERE framework = ? GROUP BY id", [framework]
    ).fetchall()
    rules = {name: (severity, json.loads(examples)) for name, severity, examples in rows}
    found = records(framework)
    assert len(found) >= LEAST[framework]
    assert len({record["rule"] for record in found}) == len(found)
    for record in found:
        severity, examples = rules[record["rule"]]
        assert severity == "impossible" or record["rule"] in WARNED, record["rule"]
        assert record["accepted"] in examples["pass"], record["rule"]
        assert record["refused"] in examples["fail"], record["rule"]
        assert record["repo"] == REPOSITORIES[framework]
        assert len(record["commit"]) == 40
        assert record["said"]
    assert len({record["commit"] for record in found}) == 1


def test_the_number_proved_is_what_the_command_prints(command: Command) -> None:
    proved = sum(len(records(framework)) for framework in LEAST)
    assert proved >= 450
    done = command("rules", "test")
    assert done.returncode == 0, done.stdout
    assert f"({proved} proved against the framework's code)" in done.stdout


def test_a_disagreement_has_its_reason(con: duckdb.DuckDBPyConnection) -> None:
    """What is listed as answered otherwise by a framework is a rule, and is not called proved."""
    body = yaml.safe_load((ROOT / "tests" / "upstream" / "disagreements.yaml").read_text(encoding="utf-8"))
    listed = {entry["rule"]: entry["reason"] for entry in body["rules"]}
    assert len(listed) == len(body["rules"]) >= 20
    proved = {record["rule"] for framework in LEAST for record in records(framework)}
    known = {name for (name,) in con.execute("SELECT DISTINCT id FROM rule").fetchall()}
    assert listed.keys() <= known
    assert not listed.keys() & proved
    assert all(reason.strip().endswith(".") for reason in listed.values())
