"""verl and vLLM data: nothing lost, both languages, sources, examples, and the official jobs that must not be rejected."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from ascend_compat.jobs.spec import Base, Spec, make_spec
from ascend_compat.resources import matrix_dir

RELEASES = ["v0.2", "v0.3.0.post1", "v0.4.0", "v0.4.1", "v0.5.0", "v0.6.0", "v0.6.1", "v0.7.0", "v0.7.1", "v0.8.0"]
RELEASES += ["v0.9.0", "main"]
DP, MEGATRON = Base(frozenset({"dp"})), Base(frozenset({"megatron"}))


def document(*parts: str) -> Any:
    """One YAML document below ``matrix/``."""
    return yaml.load(matrix_dir().joinpath(*parts).read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)


def rules_of(framework: str) -> list[dict[str, Any]]:
    """Every rule of a framework."""
    folder = Path(matrix_dir() / "rules" / framework)
    return [rule for path in sorted(folder.glob("*.yaml")) for rule in document_at(path).get("rules", ())]


def document_at(path: Path) -> dict[str, Any]:
    """The YAML document of a file."""
    body: dict[str, Any] = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    return body


def fact_types() -> dict[str, str]:
    """Every declared fact with its type."""
    folder = matrix_dir() / "frameworks" / "facts"
    return {fact["name"]: fact["type"] for path in folder.glob("*.yaml") for fact in document_at(path)["facts"]}


@pytest.fixture(scope="module")
def spec() -> Spec:
    """verl's keys as the reader of job files sees them."""
    keys = document("frameworks", "keys", "verl.yaml")
    return make_spec({**document("frameworks", "verl.yaml"), **keys}, RELEASES, fact_types())


def test_releases_are_in_order() -> None:
    releases = document("products", "verl", "product.yaml")["releases"]
    assert [release["id"] for release in releases] == RELEASES
    dates = [str(release["date"]) for release in releases]
    assert dates == sorted(dates)


def test_keys_are_all_there_named_once_and_sourced() -> None:
    body = document("frameworks", "keys", "verl.yaml")
    names = [key["key"] for key in body["keys"]]
    assert len(names) == 1879
    assert len(set(names)) == len(names)
    assert sum("fact" in key for key in body["keys"]) == 223
    assert sum("windows" in key for key in body["keys"]) > 100
    for key in body["keys"]:
        assert key["source"].partition(":")[0] in body["sources"], key["key"]


@pytest.mark.parametrize(
    ("fact", "version", "base", "value"),
    [
        ("training_backend", "v0.9.0", DP, "fsdp"),
        ("training_backend", "v0.9.0", MEGATRON, "megatron"),
        ("training_backend", "v0.2", MEGATRON, "megatron"),
        ("tensor_parallel", "v0.2", MEGATRON, 4),
        ("tensor_parallel", "v0.9.0", MEGATRON, 1),
        ("tensor_parallel", "v0.9.0", DP, None),
        ("padding_free", "v0.6.1", DP, False),
        ("padding_free", "v0.7.0", DP, True),
        ("use_mbridge", "v0.6.1", MEGATRON, False),
        ("use_mbridge", "v0.7.0", MEGATRON, True),
        ("rollout_mode", "v0.6.1", DP, "sync"),
        ("rollout_mode", "v0.7.0", DP, "async"),
        ("device_type", "v0.2", DP, None),
        ("device_type", "v0.4.0", DP, "cuda"),
        ("rollout_backend", "v0.5.0", DP, "vllm"),
        ("rollout_backend", "v0.6.0", DP, None),
        ("train_batch_size", "main", DP, 1024),
        ("train_batch_size", "main", Base(frozenset({"sft-engine"}), True), 256),
        ("rollout_n", "main", Base(frozenset({"sft-engine"}), True), None),
        ("weight_sync_backend", "main", Base(frozenset({"dp", "one-step-off"})), "nccl"),
    ],
)
def test_defaults_follow_version_and_shipped_config(
    spec: Spec, fact: str, version: str, base: Base, value: object
) -> None:
    default = spec.defaults(version, base).get(fact)
    assert (default.value if default else None) == value


def test_rules_and_left_out_cover_every_candidate() -> None:
    rules = rules_of("verl")
    left = document("rules", "verl", "left-out.yaml")["left_out"]
    candidates = [name for rule in rules for name in rule.get("candidates", ())] + [row["candidate"] for row in left]
    assert len(rules) == 89
    assert len(candidates) == len(set(candidates)) == 83
    assert [row["candidate"] for row in left] == ["verl/verl-mcore-sp-tp1"]


@pytest.mark.parametrize(("framework", "count"), [("verl", 89), ("vllm", 9)])
def test_rules_are_complete(framework: str, count: int) -> None:
    types = fact_types()
    rules = rules_of(framework)
    assert len(rules) == len({rule["id"] for rule in rules}) == count
    for rule in rules:
        assert re.search(r"[一-鿿]", rule["message"]["zh"]), rule["id"]
        assert not re.search(r"[一-鿿]", rule["message"]["en"]), rule["id"]
        for text in rule["message"].values():
            assert set(re.findall(r"\{(\w+)\}", text)) <= types.keys(), rule["id"]
        assert rule["source"].get("url") or len(rule["source"]["commit"]) == 40, rule["id"]
        assert rule["examples"]["pass"], rule["id"]
        assert rule["examples"]["fail"], rule["id"]


def test_tables_cover_the_releases_with_a_support_page() -> None:
    cells = {}
    for path in sorted((matrix_dir() / "products" / "verl").glob("*.yaml")):
        body = document_at(path)
        if body["kind"] == "table":
            stated = [c for row in body["rows"] for c in row["verl"].values() if c != "unknown"]
            assert all(cell["status"] == "supported" and cell["source"]["commit"] for cell in stated)
            cells[body["release"]] = (len(body["rows"]), len(stated))
    assert cells == {
        "v0.4.0": (2, 3),
        "v0.5.0": (6, 17),
        "v0.6.0": (9, 35),
        "v0.6.1": (11, 43),
        "v0.7.0": (13, 48),
        "v0.7.1": (13, 49),
        "v0.8.0": (16, 67),
        "v0.9.0": (16, 66),
        "main": (19, 77),
    }
