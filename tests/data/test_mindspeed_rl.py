"""MindSpeed-RL data: nothing lost, both languages, sources, windows, and what older branches did differently."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from ascend_compat.jobs.spec import Spec, make_spec
from ascend_compat.resources import matrix_dir

RELEASES = ["2.0.0", "2.1.0", "2.2.0", "2.3.0", "master"]


def document_at(path: Path) -> dict[str, Any]:
    """The YAML document of a file."""
    body: dict[str, Any] = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    return body


def document(*parts: str) -> dict[str, Any]:
    """One YAML document below ``matrix/``."""
    return document_at(matrix_dir().joinpath(*parts))


def rules() -> list[dict[str, Any]]:
    """Every rule of MindSpeed-RL."""
    folder = matrix_dir() / "rules" / "mindspeed-rl"
    return [rule for path in sorted(folder.glob("*.yaml")) for rule in document_at(path).get("rules", ())]


def fact_types() -> dict[str, str]:
    """Every declared fact with its type."""
    folder = matrix_dir() / "frameworks" / "facts"
    return {fact["name"]: fact["type"] for path in folder.glob("*.yaml") for fact in document_at(path)["facts"]}


@pytest.fixture(scope="module")
def spec() -> Spec:
    """The keys as the reader of job files sees them."""
    body = {**document("frameworks", "mindspeed-rl.yaml"), **document("frameworks", "keys", "mindspeed-rl.yaml")}
    return make_spec(body, RELEASES, fact_types())


def test_releases_are_in_order() -> None:
    releases = document("products", "mindspeed-rl", "product.yaml")["releases"]
    assert [release["id"] for release in releases] == RELEASES
    assert [release["frameworks"]["mindspeed-rl"]["table"] for release in releases] == ["full"] * 5


def test_keys_are_all_there_named_once_and_sourced() -> None:
    body = document("frameworks", "keys", "mindspeed-rl.yaml")
    names = [key["key"] for key in body["keys"]]
    assert len(names) == len(set(names)) == 522
    assert sum(bool(key.get("present")) for key in body["keys"]) == 8
    for key in body["keys"]:
        assert key["source"].partition(":")[0] in body["sources"], key["key"]


@pytest.mark.parametrize(
    ("name", "version", "there"),
    [
        ("rl_config.filter_groups_enable", "2.1.0", False),
        ("rl_config.filter_groups_enable", "2.2.0", True),
        ("megatron_training.no_pad_to_seq_lengths", "2.2.0", False),
        ("megatron_training.no_pad_to_seq_lengths", "2.3.0", True),
        ("megatron_training.moe_intermediate_size", "2.2.0", True),
        ("megatron_training.moe_intermediate_size", "2.3.0", False),
        ("rl_config.multi_turn_enable", "2.3.0", False),
        ("rl_config.multi_turn_enable", "master", True),
    ],
)
def test_a_key_exists_in_its_window(spec: Spec, name: str, version: str, there: bool) -> None:
    key = spec.find(name)
    assert key is not None
    assert spec.holds(key, version) is there


def test_rules_and_left_out_cover_every_candidate() -> None:
    left = document("rules", "mindspeed-rl", "left-out.yaml")["left_out"]
    candidates = [name for rule in rules() for name in rule.get("candidates", ())] + [row["candidate"] for row in left]
    assert len(rules()) == 68
    assert len(left) == 5
    assert len(candidates) == len(set(candidates)) == 70


def test_rules_are_complete() -> None:
    types = fact_types()
    assert len({rule["id"] for rule in rules()}) == 68
    for rule in rules():
        assert re.search(r"[一-鿿]", rule["message"]["zh"]), rule["id"]
        assert not re.search(r"[一-鿿]", rule["message"]["en"]), rule["id"]
        for text in rule["message"].values():
            assert set(re.findall(r"\{(\w+)\}", text)) <= types.keys(), rule["id"]
        assert rule["source"].get("url") or len(rule["source"]["commit"]) == 40, rule["id"]
        assert rule["examples"]["pass"], rule["id"]
        assert rule["examples"]["fail"], rule["id"]


def test_an_unknown_key_stops_a_job_since_2_1_0_only() -> None:
    by_id = {rule["id"]: rule for rule in rules()}
    assert by_id["RL-UNKNOWN-KEY"]["since"] == "2.1.0"
    assert by_id["RL-IGNORED-KEY"]["until"] == "2.0.0"
    assert by_id["RL-IGNORED-KEY"]["severity"] == "warning"


def test_tables_state_each_release() -> None:
    cells = {}
    for path in sorted((matrix_dir() / "products" / "mindspeed-rl").glob("*.yaml")):
        body = document_at(path)
        if body["kind"] == "table":
            stated = [c for row in body["rows"] for c in row["mindspeed-rl"].values() if c != "unknown"]
            assert all(cell["source"]["commit"] for cell in stated)
            cells[body["release"]] = (len(body["rows"]), len(stated))
    assert cells == {"2.0.0": (2, 6), "2.1.0": (6, 30), "2.2.0": (10, 53), "2.3.0": (10, 53), "master": (10, 56)}
