"""What a job leaves open: configs of its own, configs that are away, and what the bundle gives."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import Command

VERL = """\
data:
  train_batch_size: 64
  max_prompt_length: 512
  max_response_length: 1024
actor_rollout_ref:
  model:
    path: Qwen/Qwen2.5-7B-Instruct
  actor:
    ppo_mini_batch_size: 32
    ppo_micro_batch_size_per_gpu: 2
  rollout:
    name: vllm
    n: 8
    tensor_model_parallel_size: 2
algorithm:
  adv_estimator: grpo
trainer:
  n_gpus_per_node: 8
  nnodes: 2
"""
VERL_V07 = """\
python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=60 \\
    actor_rollout_ref.model.path=Qwen/Qwen3-8B actor_rollout_ref.actor.ppo_mini_batch_size=30 \\
    actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 actor_rollout_ref.rollout.log_prob_micro_batch_size=8 \\
    actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.n=4 trainer.nnodes=1 trainer.n_gpus_per_node=16 {more}
"""


def codes(command: Command, path: Path, text: str, version: str) -> set[str]:
    """Codes of the errors of a job at a framework version."""
    path.write_text(text)
    done = command("check", path.name, "--framework-version", version, "--format", "json", cwd=path.parent)
    (job,) = json.loads(done.stdout)["jobs"]
    return {finding["code"] for finding in job["findings"] if finding["severity"] == "error"}


def test_the_old_workers_of_verl_check_less(command: Command, tmp_path: Path) -> None:
    engine_only = {"VR-MINI-DP", "VR-ROLLOUT-MBS-PER-GPU"}
    old, new = VERL_V07.format(more=""), VERL_V07.format(more="trainer.use_legacy_worker_impl=disable")
    assert not codes(command, tmp_path / "a.sh", old, "v0.7.1") & engine_only
    assert codes(command, tmp_path / "a.sh", new, "v0.7.1") >= engine_only
    assert codes(command, tmp_path / "a.sh", old, "v0.9.0") >= engine_only


def test_a_config_leaves_to_its_command_what_it_does_not_set(command: Command, tmp_path: Path) -> None:
    bare = "python3 -m verl.trainer.main_ppo data.train_batch_size=64\n"
    assert "VR-ACTOR-MBS-NONE" in codes(command, tmp_path / "a.sh", bare, "v0.7.1")
    assert codes(command, tmp_path / "a.yaml", "defaults: [ppo_trainer, _self_]\n" + VERL, "v0.7.1") == set()
    open_config = 'python3 -m verl.trainer.main_ppo --config-name "$1" data.train_batch_size=64\n'
    assert codes(command, tmp_path / "a.sh", open_config, "v0.7.1") == set()


def test_keys_of_another_config_are_not_called_unknown(command: Command, tmp_path: Path) -> None:
    (tmp_path / "g.sh").write_text(
        "python3 -m verl.trainer.main_generation data.path=x rollout.top_p=0.9 model.path=y\n"
    )
    done = command("check", "g.sh", "--framework-version", "v0.7.0", "--format", "json", cwd=tmp_path)
    findings = json.loads(done.stdout)["jobs"][0]["findings"]
    assert [finding["code"] for finding in findings if finding["severity"] == "warning"] == []


def test_an_old_name_is_deprecated_from_its_release_on(command: Command, tmp_path: Path) -> None:
    text = VERL_V07.format(more="reward_model.rollout.name=vllm")
    (tmp_path / "r.sh").write_text(text)
    told = []
    for version in ("v0.7.0", "v0.7.1"):
        done = command("check", "r.sh", "--framework-version", version, "--format", "json", cwd=tmp_path)
        findings = json.loads(done.stdout)["jobs"][0]["findings"]
        told.append(
            any(
                finding["code"] == "AC2023" and "reward_model.rollout.name" in finding["message"]
                for finding in findings
            )
        )
    assert told == [False, True]


def test_a_config_that_is_not_here_leaves_everything_open(command: Command, tmp_path: Path) -> None:
    for name, text in {
        "a.sh": "llamafactory-cli train away.yaml\n",
        "b.sh": "llamafactory-cli train away.yaml stage=sft\n",
    }.items():
        assert codes(command, tmp_path / name, text, "0.9.4") == set()
    (tmp_path / "away.yaml").write_text("stage: sft\ndataset: d\noutput_dir: o\n")
    assert "LF-A01" in codes(command, tmp_path / "a.sh", "llamafactory-cli train away.yaml\n", "0.9.4")


BUNDLED = """\
af_output_dir: /o
backend_config:
  training:
    tokenizer-name-or-path: /data/Qwen3-8B
    stage: sft
    tensor-model-parallel-size: {tensor}
    micro-batch-size: 1
    seq-length: 4096
{more}"""


@pytest.mark.parametrize(
    ("tensor", "more", "broken"),
    [
        (4, "", set()),
        (3, "", {"ML-PAR12", "ML-PAR13"}),
        (3, "    num-layers: 36\n", {"ML-PAR12", "ML-PAR13"}),
        (16, "", {"ML-PAR13"}),
    ],
)
def test_the_bundle_takes_the_architecture_from_the_checkpoint(
    command: Command, tmp_path: Path, tensor: int, more: str, broken: set[str]
) -> None:
    found = codes(command, tmp_path / "a.yaml", BUNDLED.format(tensor=tensor, more=more), "2.2.0")
    assert found & {"ML-PAR12", "ML-PAR13"} == broken


def test_the_bundle_may_choose_the_algorithm(command: Command, tmp_path: Path) -> None:
    body = (
        "af_output_dir: /o\nbackend_config:\n  data: {train_batch_size: 64, train_files: /d}\n  trainer: {n_gpus_per_node: 8, nnodes: 1}\n"
        "  actor_rollout_ref:\n    model: {path: /data/Qwen2.5-7B-Instruct}\n    actor: {ppo_mini_batch_size: 32, ppo_micro_batch_size_per_gpu: 1}\n"
        "    rollout: {name: vllm, n: 8, tensor_model_parallel_size: 4}\n"
    )
    asked = body + "  algorithm: {adv_estimator: gae}\n"
    (tmp_path / "a.yaml").write_text(body)
    done = command("check", "a.yaml", "--product", "ascendfactory", "--release", "6.5.910", cwd=tmp_path)
    assert "PPO" not in done.stdout
    (tmp_path / "a.yaml").write_text(asked)
    done = command("check", "a.yaml", "--product", "ascendfactory", "--release", "6.5.910", cwd=tmp_path)
    assert "does not support PPO" in done.stdout
