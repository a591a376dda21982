"""Planned layouts: official sizes first, every one read back as it was written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

MOST = {"deepseek-v3-671b": 512, "qwen3-235b-a22b": 256, "qwen3-30b-a3b": 16, "qwen2.5-72b": 32, "qwen2.5-32b": 32}
REQUESTS = [
    *[
        (model, "mindspeed-llm", method)
        for model in ("qwen2.5-7b", "qwen3-8b", *MOST)
        for method in ("pretrain", "full", "lora")
    ],
    *[
        (model, "llamafactory", method)
        for model in ("qwen2.5-7b", "qwen2.5-72b")
        for method in ("pretrain", "full", "lora")
    ],
    *[
        (model, framework, "grpo")
        for model in ("qwen2.5-7b", "qwen3-8b", "qwen2.5-32b")
        for framework in ("verl", "mindspeed-rl")
    ],
]
SIZES = (
    "tensor_parallel",
    "pipeline_parallel",
    "context_parallel",
    "expert_parallel",
    "ulysses_sp",
    "rollout_tensor_parallel",
)


def ask(command: Callable[..., Any], *arguments: str, cwd: Path | None = None) -> dict[str, Any]:
    done = command("plan", *arguments, "--format", "json", cwd=cwd)
    assert done.returncode in (0, 1), done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.parametrize(("model", "framework", "method"), REQUESTS)
def test_a_written_layout_reads_back_as_itself(
    command: Callable[..., Any], tmp_path: Path, model: str, framework: str, method: str
) -> None:
    devices = str(MOST.get(model, 8))
    plan = ask(
        command,
        model,
        "--framework",
        framework,
        "--method",
        method,
        "--devices",
        devices,
        "--write",
        "out.job",
        cwd=tmp_path,
    )
    sizes = plan["layouts"][0]["sizes"]
    done = command("facts", "out.job", "--format", "jsonl", cwd=tmp_path)
    facts = {name: fact["value"] for name, fact in json.loads(done.stdout.splitlines()[0])["facts"].items()}
    assert {name: facts.get(name) for name in SIZES if name in sizes} == {
        name: sizes[name] for name in SIZES if name in sizes
    }
    assert facts.get("world_size", facts.get("actor_devices")) == int(devices)
    checked = json.loads(command("check", "out.job", "--format", "json", cwd=tmp_path).stdout)
    assert {job["verdict"] for job in checked["jobs"]} <= {"supported", "unverified"}


@pytest.mark.parametrize(
    ("arguments", "sizes"),
    [
        (("deepseek-v3", "--devices", "512"), {"tensor_parallel": 1, "pipeline_parallel": 8, "expert_parallel": 64}),
        (
            ("qwen3-235b-a22b", "--devices", "256", "--chip", "a3"),
            {"tensor_parallel": 2, "pipeline_parallel": 4, "expert_parallel": 32},
        ),
    ],
)
def test_official_sizes_come_first(
    command: Callable[..., Any], arguments: tuple[str, ...], sizes: dict[str, int]
) -> None:
    first = ask(command, *arguments, "--framework", "mindspeed-llm")["layouts"][0]
    assert first["official"].startswith("Ascend/MindSpeed-LLM:examples/mcore/")
    assert {name: first["sizes"][name] for name in sizes} == sizes


def test_without_a_legal_layout_the_reasons_and_the_least_devices_are_told(command: Callable[..., Any]) -> None:
    plan = ask(command, "qwen2.5-72b", "--framework", "mindspeed-llm", "--devices", "4")
    assert plan["legal"] == 0 and plan["smallest_devices"] == 32
    assert plan["refused_by"][0]["rule"] == "memory-floor"
    assert ask(command, "qwen2.5-72b", "--framework", "mindspeed-llm", "--devices", "32")["legal"] > 0


@pytest.mark.parametrize(
    "arguments", [("qwen99",), ("qwen2.5-7b", "--method", "dance"), ("qwen2.5-7b", "--devices", "12")]
)
def test_a_wrong_request_is_one_sentence(command: Callable[..., Any], arguments: tuple[str, ...]) -> None:
    done = command("plan", "--framework", "mindspeed-llm", "--devices", "8", *arguments)
    assert done.returncode == 2 and len(done.stderr.strip().splitlines()) == 1
