"""Hydra's override words, and verl and MindSpeed-RL commands made of them."""

from __future__ import annotations

import pytest

from ascend_compat.jobs.bash import read_shell
from ascend_compat.jobs.hydra import Malformed, Override, parse
from ascend_compat.jobs.model import Launch, Unresolved

VALUES = [
    ("1", 1),
    ("-1", -1),
    ("1_000", 1000),
    ("007", "007"),
    ("1.5", 1.5),
    ("1e-6", 1e-6),
    (".5", 0.5),
    ("true", True),
    ("False", False),
    ("null", None),
    ("", ""),
    ("grpo", "grpo"),
    ("/m/Qwen3-8B", "/m/Qwen3-8B"),
    ("Qwen/Qwen2.5-7B", "Qwen/Qwen2.5-7B"),
    ("~/verl", "~/verl"),
    ("hdfs://a:9000/b", "hdfs://a:9000/b"),
    ("'8'", "8"),
    ('"a b"', "a b"),
    ("'it\\'s'", "it's"),
    ("[]", []),
    ("[a,b]", ["a", "b"]),
    ("['console','wandb']", ["console", "wandb"]),
    ('["console", "wandb"]', ["console", "wandb"]),
    ("[1,2.0,true,null]", [1, 2.0, True, None]),
    ("[[1,2],[3]]", [[1, 2], [3]]),
    ("{}", {}),
    ("{a:1,b:[x,y]}", {"a": 1, "b": ["x", "y"]}),
    ("{a: {b: c}}", {"a": {"b": "c"}}),
    ("a\\,b", "a,b"),
    ("a=b", "a=b"),
    ("${data.n}", "${data.n}"),
    ("uv run python", "uv run python"),
]


@pytest.mark.parametrize(("text", "expected"), VALUES)
def test_a_value_has_the_type_that_hydra_gives_it(text: str, expected: object) -> None:
    value = parse(f"a.b={text}").value
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize("prefix", ["", "+", "++", "~"])
def test_a_prefix_is_kept_apart_from_the_key(prefix: str) -> None:
    assert parse(f"{prefix}a.b_c=1") == Override(prefix, "a.b_c", 1, len(prefix) + 6)


def test_a_deletion_needs_no_value() -> None:
    assert parse("~a.b") == Override("~", "a.b", None, -1)


MALFORMED = [
    ("a.b", 3),
    ("a.b=c}", 5),
    ("a.b=[1,2", 4),
    ("a.b=[1,,2]", 7),
    ("a.b={a:1", 4),
    ("a.b={a}", 6),
    ("a.b='x", 4),
    ("a.b=${x", 4),
    ("a.b=x]", 5),
    ("=1", 0),
    ("a b=1", 1),
]


@pytest.mark.parametrize(("word", "at"), MALFORMED)
def test_a_malformed_word_is_refused_with_its_place(word: str, at: int) -> None:
    with pytest.raises(Malformed) as refused:
        parse(word)
    assert (refused.value.at, bool(refused.value.en), bool(refused.value.zh)) == (at, True, True)


def test_deep_brackets_are_refused() -> None:
    with pytest.raises(Malformed, match="nested too deep"):
        parse("a=" + "[" * 10_000 + "]" * 10_000)


def launch(script: str) -> Launch:
    (found,) = read_shell(script, "job.sh", root=None)
    return found


VERL = """n=5
gen_tp=${GEN_TP:-4}
DATA=(
    data.train_batch_size=64   # prompts
    data.train_files="['/d/a.parquet', '/d/b.parquet']"
)
ray job submit --address=x -- python3 -m verl.trainer.main_ppo \\
    --config-path=config --config-name='ppo_megatron_trainer.yaml' \\
    "${DATA[@]}" model_engine=megatron \\
    +actor.megatron.override_transformer_config.use_flash_attn=True ++a.b=null ~c.d \\
    rollout.n=$n rollout.tp=${gen_tp} ref.n='${rollout.n}' other.n='${x.y}' trainer.logger='["console"]' \\
    trainer.dir=$HOME/ckpt trainer.name=$NAME "$@" | tee log
"""


def test_a_verl_command_gives_its_overrides() -> None:
    found = launch(VERL)
    assert (found.framework, found.product, found.entry, found.line) == ("verl", "verl", "verl.trainer.main_ppo", 7)
    assert found.problems == []
    values = {s.prefix + s.key: s.value for s in found.settings}
    unknown = {key: values.pop(key) for key in ("other.n", "trainer.name")}
    assert values == {
        "--config-path": "config",
        "--config-name": "ppo_megatron_trainer.yaml",
        "data.train_batch_size": 64,
        "data.train_files": ["/d/a.parquet", "/d/b.parquet"],
        "model_engine": "megatron",
        "+actor.megatron.override_transformer_config.use_flash_attn": True,
        "++a.b": None,
        "~c.d": None,
        "rollout.n": 5,
        "rollout.tp": 4,
        "ref.n": 5,
        "trainer.logger": ["console"],
        "trainer.dir": "$HOME/ckpt",
    }
    assert all(isinstance(value, Unresolved) for value in unknown.values())
    places = {s.key: (s.span.line, s.span.column) for s in found.settings}
    assert places["rollout.n"] == (1, 3)
    assert places["rollout.tp"] == (2, 18)
    assert places["data.train_batch_size"] == (4, 27)


def test_a_malformed_override_is_a_problem_at_its_character() -> None:
    found = launch("X=8}\npython3 -m verl.trainer.main_ppo a.b=1 c.d=$X e.f=2")
    assert [(p.code, p.span.line, p.span.column) for p in found.problems] == [("AC2120", 1, 4)]
    assert found.problems[0].words["word"] == "c.d=8}"
    assert [s.key for s in found.settings] == ["a.b", "e.f"]


@pytest.mark.parametrize(
    ("command", "entry"),
    [
        ("python -m verl.trainer.main_ppo", "verl.trainer.main_ppo"),
        ("python3 -u -m recipe.dapo.main_dapo", "recipe.dapo.main_dapo"),
        ("torchrun --nnodes=1 --nproc_per_node=8 -m verl.trainer.sft_trainer", "verl.trainer.sft_trainer"),
        ("torchrun --standalone -m verl.trainer.fsdp_sft_trainer", "verl.trainer.fsdp_sft_trainer"),
        ("python verl/trainer/main_ppo.py", "main_ppo.py"),
        ("uv run --extra vllm python3 -m verl.trainer.main_generation_server", "verl.trainer.main_generation_server"),
        (
            "python -m verl.experimental.fully_async_policy.fully_async_main",
            "verl.experimental.fully_async_policy.fully_async_main",
        ),
    ],
)
def test_the_entries_of_verl_are_known(command: str, entry: str) -> None:
    found = launch(f"{command} trainer.nnodes=2")
    assert (found.framework, found.entry) == ("verl", entry)
    assert [(s.key, s.value) for s in found.settings if ":" not in s.key] == [("trainer.nnodes", 2)]


def test_mindspeed_rl_names_its_file() -> None:
    found = launch("Y=${1:-grpo_qwen}\npython cli/train_grpo.py --config-name $Y 2>&1 | tee log")
    assert (found.framework, found.entry) == ("mindspeed-rl", "train_grpo.py")
    assert [(s.key, s.value, s.span.line) for s in found.settings] == [("--config-name", "grpo_qwen", 1)]
