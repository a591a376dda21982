"""Settings under a small framework's keys: types, windows, names, defaults, the model."""

from __future__ import annotations

from typing import Any

import pytest

from ascend_compat.jobs.architecture import Architecture
from ascend_compat.jobs.derive import attach
from ascend_compat.jobs.interpret import interpret
from ascend_compat.jobs.model import Job, Launch, Setting, Span, Unresolved, Value
from ascend_compat.jobs.spec import Spec, make_spec
from ascend_compat.jobs.suggest import nearest
from ascend_compat.jobs.values import hydra_value

TYPES = {
    "seq_length": "integer",
    "learning_rate": "number",
    "tensor_parallel": "integer",
    "bf16": "boolean",
    "bias": "boolean",
    "layers": "integers",
    "dataset": "texts",
    "attention": "text",
    "num_layers": "integer",
    "hidden_size": "integer",
    "num_attention_heads": "integer",
    "model": "text",
    "devices": "integer",
    "world_size": "integer",
    "unknown_key_count": "integer",
}
KEYS: list[dict[str, Any]] = [
    {
        "key": "--seq-length",
        "fact": "seq_length",
        "type": "integer",
        "default": 2048,
        "defaults": [{"until": "1.0", "value": 1024}],
    },
    {"key": "--lr", "fact": "learning_rate", "type": "number"},
    {"key": "--tensor-model-parallel-size", "fact": "tensor_parallel", "type": "integer", "default": 1},
    {"key": "--tp", "alias_of": "--tensor-model-parallel-size"},
    {"key": "--bf16", "fact": "bf16", "type": "flag", "default": False},
    {"key": "--disable-bias", "fact": "bias", "type": "flag", "no": True, "default": True},
    {"key": "--layer-list", "fact": "layers", "type": "integers"},
    {"key": "--data", "fact": "dataset", "type": "texts"},
    {"key": "--attention", "fact": "attention", "type": "text", "values": {"true": "fa2"}, "choices": ["fa2", "sdpa"]},
    {"key": "--old-name", "fact": "attention", "type": "text", "until": "2.0", "deprecated": "--attention"},
    {"key": "--new", "type": "integer", "since": "v2.0"},
    {"key": "--gone", "type": "integer", "until": "1.0"},
    {"key": "--num-layers", "fact": "num_layers", "type": "integer"},
    {"key": "--hidden-size", "fact": "hidden_size", "type": "integer"},
    {"key": "--num-attention-heads", "fact": "num_attention_heads", "type": "integer"},
    {"key": "torchrun:--nproc_per_node", "fact": "devices", "type": "integer", "default": 1},
    {"key": "extra", "open": True},
]
MODELS = {
    "small-1b": {"id": "small-1b", "num_layers": 4, "hidden_size": 64, "num_attention_heads": 8},
    "big-9b": {"id": "big-9b", "num_layers": 40, "hidden_size": 4096, "num_attention_heads": 32},
}


def spec(framework: str = "mindspeed-llm", **more: Any) -> Spec:
    derived = [{"fact": "world_size", "sql": "devices * 2"}]
    body = {"id": framework, "keys": KEYS, "derived": derived, **more}
    return make_spec(body, ["1.0", "v2.0", "v3.0", "master"], TYPES)


def job(
    *settings: tuple[str, Value], version: str = "v3.0", product: str = "mindspeed-llm", of: Spec | None = None
) -> Job:
    launch = Launch("run.sh", 1, "bash", "mindspeed-llm", product, "pretrain_gpt.py")
    launch.settings = [Setting(key, value, Span("run.sh", line, 5)) for line, (key, value) in enumerate(settings, 1)]
    return interpret(launch, of or spec(), version, architecture=Architecture(MODELS))


def codes(found: Job) -> list[str]:
    return [problem.code for problem in found.problems]


@pytest.mark.parametrize(
    ("key", "written", "fact", "value"),
    [
        ("--seq-length", "4096", "seq_length", 4096),
        ("--seq-length", 4096, "seq_length", 4096),
        ("--seq-length", 4096.0, "seq_length", 4096),
        ("--lr", "1e-5", "learning_rate", 1e-5),
        ("--lr", 1e-5, "learning_rate", 1e-5),
        ("--tp", "4", "tensor_parallel", 4),
        ("--bf16", True, "bf16", True),
        ("--disable-bias", True, "bias", False),
        ("--layer-list", "17,20,22", "layers", [17, 20, 22]),
        ("--layer-list", [1, 2], "layers", [1, 2]),
        ("--data", "a, b", "dataset", ["a", "b"]),
        ("--attention", True, "attention", "fa2"),
        ("--attention", "sdpa", "attention", "sdpa"),
    ],
)
def test_values_by_type(key: str, written: Value, fact: str, value: object) -> None:
    found = job((key, written))
    assert (found.facts[fact].value, found.facts[fact].origin, codes(found)) == (value, "stated", [])
    assert found.facts[fact].span == Span("run.sh", 1, 5)


@pytest.mark.parametrize(
    ("key", "written"),
    [
        ("--seq-length", "abc"),
        ("--seq-length", 1.5),
        ("--seq-length", True),
        ("--lr", "fast"),
        ("--layer-list", "1,x"),
        ("--bf16", "often"),
    ],
)
def test_wrong_type_is_a_problem_and_the_fact_unknown(key: str, written: Value) -> None:
    found = job((key, written))
    assert codes(found) == ["AC2024"]
    fact = next(fact for fact in found.facts.values() if fact.key == key)
    assert (fact.value, fact.origin) == (None, "unknown")


def test_later_setting_wins_and_null_is_stated_unset() -> None:
    assert job(("--seq-length", "1"), ("--seq-length", "2")).facts["seq_length"].value == 2
    unset = job(("--seq-length", None)).facts["seq_length"]
    assert (unset.value, unset.origin) == (None, "stated")


def test_default_by_version() -> None:
    assert job(version="1.0").facts["seq_length"].value == 1024
    newer = job(version="v2.0").facts["seq_length"]
    assert (newer.value, newer.origin, newer.key) == (2048, "default", "--seq-length")
    assert job(version="3.0.dev0").facts["seq_length"].value == 2048
    assert spec().newest == "v3.0"


def test_launcher_default_only_where_the_launcher_is_used() -> None:
    assert "devices" not in job().facts
    assert job(("torchrun:--nnodes", "1")).facts["devices"].value == 1
    assert job(("torchrun:--nproc-per-node", "8")).facts["devices"].value == 8


def test_unresolved_is_unknown_with_its_reason() -> None:
    why = Unresolved("set from the environment", "由环境变量给出")
    fact = job(("--seq-length", why)).facts["seq_length"]
    assert (fact.value, fact.origin, fact.why) == (None, "unknown", why)


def test_missing_job_file_makes_defaults_unknown() -> None:
    found = job(("file:config", Unresolved("x.yaml is not here", "找不到 x.yaml")))
    assert found.facts["seq_length"].origin == "unknown"
    assert found.facts["seq_length"].why == Unresolved("x.yaml is not here", "找不到 x.yaml")


def test_names_out_of_their_window() -> None:
    found = job(("--new", "1"), ("--gone", "1"), ("--old-name", "sdpa"), version="1.0")
    assert codes(found) == ["AC2021", "AC2023"]
    assert found.problems[0].words["since"] == "v2.0"
    found = job(("--new", "1"), ("--gone", "1"), ("--old-name", "sdpa"))
    assert codes(found) == ["AC2022", "AC2036"]
    assert (found.problems[0].words["until"], found.problems[1].words["new"]) == ("1.0", "--attention")
    assert found.facts["unknown_key_count"].value == 2


def test_misspelt_name_gets_the_nearest() -> None:
    found = job(("--tensor-model-parallel", "4"), ("--zzz", "1"), ("extra.anything", "1"))
    assert codes(found) == ["AC2020", "AC2037"]
    assert found.problems[0].words["nearest"] == "--tensor-model-parallel-size"
    assert found.problems[0].span.line == 1
    assert found.facts["unknown_key_count"].value == 2


def test_bundled_copy_may_know_more() -> None:
    found = job(("--seq-lenght", "4"), ("--zzz", "1"), product="ascendfactory")
    assert codes(found) == ["AC2033", "AC2038"]
    assert found.facts["unknown_key_count"].origin == "unknown"


def test_value_outside_its_choices() -> None:
    assert codes(job(("--attention", "ring"))) == ["AC2025"]


def test_derived_facts_and_what_they_need() -> None:
    known = job(("torchrun:--nproc_per_node", "8"))
    attach(known, {"world_size": 16}, spec())
    fact = known.facts["world_size"]
    assert (fact.value, fact.origin, fact.why) == (
        16,
        "derived",
        Unresolved("from devices (line 1)", "由 devices（第 1 行） 得出"),
    )
    unknown = job(("torchrun:--nproc_per_node", Unresolved("?", "?")))
    attach(unknown, {"world_size": None}, spec())
    fact = unknown.facts["world_size"]
    assert (fact.value, fact.origin, fact.why) == (None, "unknown", Unresolved("needs devices", "依赖未知的 devices"))


def test_model_recognised_by_its_numbers() -> None:
    found = job(("--num-layers", "4"), ("--hidden-size", "64"), ("--num-attention-heads", "8"))
    assert (found.model, found.facts["model"].origin) == ("small-1b", "derived")
    assert job(("--num-layers", "5"), ("--hidden-size", "64"), ("--num-attention-heads", "8")).model is None


STRICT = {
    "strict": {"unknown": "unknown_key_count"},
    "configs": [[{"config": "megatron", "key": "engine", "like": "megatron"}, {"config": "dp"}]],
    "keys": [
        {"key": "engine", "fact": "attention", "type": "text"},
        {"key": "a.b", "fact": "seq_length", "type": "integer", "config": ["dp"], "default": 7},
        {"key": "a.m", "fact": "tensor_parallel", "type": "integer", "config": ["megatron"], "default": 2},
        {"key": "a.plus", "type": "integer", "appended": True},
    ],
}


def test_shipped_config_decides_which_keys_hold() -> None:
    of = spec("verl", **STRICT)
    plain = job(("a.b", "1"), ("a.m", "4"), of=of)
    assert codes(plain) == ["AC2039"]
    assert (plain.problems[0].words["config"], plain.problems[0].words["owners"]) == ("dp", "megatron")
    assert plain.facts["unknown_key_count"].value == 1
    megatron = job(("engine", "megatron"), ("a.m", "4"), of=of)
    assert (codes(megatron), megatron.facts["tensor_parallel"].value) == ([], 4)
    assert "seq_length" not in megatron.facts


def test_hydra_prefixes() -> None:
    of = spec("verl", **{**STRICT, "strict": {"unknown": "unknown_key_count", "appended": "devices"}})
    launch = Launch("run.sh", 1, "bash", "verl", "verl", "main_ppo")
    at = Span("run.sh", 1)
    launch.settings = [
        Setting("a.b", "3", at, prefix="+"),
        Setting("a.plus", "1", at, prefix="+"),
        Setting("x.y", "1", at, prefix="+"),
    ]
    found = interpret(launch, of, "v3.0")
    assert codes(found) == ["AC2034"]
    assert (found.facts["devices"].value, found.facts["unknown_key_count"].value) == (1, 0)
    launch.settings = [Setting("a.b", None, at, prefix="~"), Setting("a.plus", "1", at)]
    found = interpret(launch, of, "v3.0")
    assert codes(found) == ["AC2040"]
    assert (found.facts["seq_length"].value, found.facts["unknown_key_count"].value) == (None, 1)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[a, 'b,c', [1,2]]", ["a", "b,c", [1, 2]]),
        ("'null'", "null"),
        ("null", None),
        ("True", True),
        ("1e-6", 1e-6),
        ("x=y", "x=y"),
    ],
)
def test_hydra_values(text: str, value: object) -> None:
    assert hydra_value(text) == value


@pytest.mark.parametrize(
    ("name", "known", "found"),
    [
        ("--tensor-model-parallel", ["--tensor-model-parallel-size", "--tensor-model"], "--tensor-model-parallel-size"),
        ("cutof_len", ["cutoff_len", "template"], "cutoff_len"),
        ("seq-length", ["seq_length"], "seq_length"),
        ("a.rollout.mini", ["a.actor.mini", "b.mini"], "a.actor.mini"),
        ("zzz", ["cutoff_len"], None),
    ],
)
def test_nearest_key(name: str, known: list[str], found: str | None) -> None:
    assert nearest(name, known) == found


def test_exchanged_hydra_group_and_foreign_config_are_not_judged() -> None:
    of = spec("verl", **STRICT)
    exchanged = job(("a", "other"), ("a.nobody", "1"), of=of)
    assert (codes(exchanged), exchanged.facts["unknown_key_count"].value) == ([], 0)
    foreign = job(("hydra.searchpath", "[x]"), ("b.nobody", "1"), of=of)
    assert (codes(foreign), foreign.facts["unknown_key_count"].origin) == ([], "unknown")
    assert codes(job(("b.nobody", "1"), of=of)) == ["AC2037"]


def test_fallback_of_a_script_is_stated_and_a_guess_is_derived() -> None:
    note = Unresolved("unless the environment says otherwise", "除非环境变量另有设定")
    launch = Launch("run.sh", 1, "bash", "mindspeed-llm", "mindspeed-llm", "pretrain_gpt.py")
    launch.settings = [Setting("--seq-length", "4096", Span("run.sh", 3), guess=note)]
    fact = interpret(launch, spec(), "v3.0").facts["seq_length"]
    assert (fact.value, fact.origin, fact.why) == (4096, "stated", note)
    launch.format = "llamafactory-yaml"
    assert interpret(launch, spec(), "v3.0").facts["seq_length"].origin == "derived"
