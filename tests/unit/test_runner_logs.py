"""What the runners read out of the frameworks' logs. The lines are ours, in the form the frameworks' sources print."""

from __future__ import annotations

import importlib.util
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import ROOT

RUNNERS = ROOT / "runners"
MEGATRON = (
    " [2026-12-01 10:00:0{n}] iteration        {n}/       3 | consumed samples:           16 | "
    "elapsed time per iteration (ms): 2000.0 | throughput per GPU (TFLOP/s/GPU): 88.1 | learning rate: 1.000000E-05 | "
    "global batch size:     8 | lm loss: {loss} | loss scale: 1.0 | grad norm: 1.250 | "
    "number of skipped iterations:   0 | number of nan iterations:   {nan} |"
)
VERL = (
    "\x1b[36m(TaskRunner pid=77)\x1b[0m step:{n} - actor/pg_loss:np.float64({loss}) - actor/grad_norm:0.5 - critic/score/mean:0.25 - "
    "perf/throughput:410.5 - perf/time_per_step:12.5 - perf/max_memory_allocated_gb:20.0 - response_length/mean:200.0"
)
RL = (
    "2026-12-01 10:00:00,123 - INFO - [2026-12-01 10:00:00 UTC] iteration: {n} / 3 | timing/all : 30.5000 | "
    "e2e_tps : 220.1000 | actor/pg_loss : {loss} | grpo/score : 0.5000 | response_length/mean : 512.0000"
)


class Heard:
    """Keeps what a runner says."""

    def __init__(self) -> None:
        self.steps: list[dict[str, Any]] = []

    def write(self, _event: str, **fields: Any) -> None:
        """One event."""
        self.steps.append(fields)


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Loads a runner's module as its own process would."""
    monkeypatch.syspath_prepend(str(RUNNERS))

    def load(name: str, kind: str, tmp_path: Path, **plan: Any) -> Any:
        spec = importlib.util.spec_from_file_location(f"runner_{name}", RUNNERS / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        before = list(sys.path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.path[:] = before
        from common.plan import Measured

        job = getattr(module, kind)({"command": {"main": "job.sh"}, "devices": 8, **plan}, tmp_path, "npu")
        job.events, job.measured = Heard(), Measured()
        return job

    yield load
    for name in [name for name in sys.modules if name == "common" or name.startswith("common.")]:
        del sys.modules[name]


def test_megatron_lines(runner: Any, tmp_path: Path) -> None:
    job = runner("mindspeed_llm", "MindSpeedLlm", tmp_path, steps=2, facts={"seq_length": 4096})
    job.line("using world size: 16, data-parallel size: 8, context-parallel size: 1")
    job.line(MEGATRON.format(n=1, loss="2.500000E+00", nan=0))
    job.line(
        "[Rank 0] (after 1 iterations) memory (MB) | allocated: 100.0 | max allocated: 2048.0 | reserved: 1 | max reserved: 1"
    )
    job.line("an unrelated line | with : bars |")
    job.line(MEGATRON.format(n=2, loss="2.250000E+00", nan=0))
    first, second = job.events.steps
    assert (first["step"], first["loss"], first["seconds"]) == (1, 2.5, 2.0)
    assert first["tokens_per_second"] == pytest.approx(8 * 4096 / 2.0 / 16)
    assert "memory_bytes" not in first
    assert second["memory_bytes"] == 2048 * 1024**2
    assert second["tflops_per_device"] == 88.1
    assert job.died([]) is None


def test_a_megatron_script_that_ends_well_without_training_failed(runner: Any, tmp_path: Path) -> None:
    job = runner("mindspeed_llm", "MindSpeedLlm", tmp_path, steps=3)
    job.line(MEGATRON.format(n=1, loss="2.500000E+00", nan=1))
    assert math.isnan(job.measured.losses[0][1])
    assert job.died(["AssertionError: world size 8 is not divisible by 3"]) == (
        "framework",
        "AssertionError: world size 8 is not divisible by 3",
    )
    assert job.died(["RuntimeError: NPU out of memory. Tried to allocate 2 GiB"])[0] == "oom"
    job.line("[after training is done] datetime: 2026-12-01 10:01:00")
    assert job.died([]) is None


def test_verl_lines(runner: Any, tmp_path: Path) -> None:
    job = runner("verl", "Verl", tmp_path)
    job.line("(TaskRunner pid=77) step:0 - val-core/gsm8k/acc/mean@1:0.1")
    job.line(VERL.format(n=1, loss="-0.0125"))
    (step,) = job.events.steps
    assert step == {
        "step": 1, "loss": -0.0125, "seconds": 12.5, "tokens_per_second": 410.5, "memory_bytes": 20.0 * 1024**3,
        "score": 0.25, "response_length": 200.0, "grad_norm": 0.5,
    }  # fmt: skip


def test_mindspeed_rl_lines(runner: Any, tmp_path: Path) -> None:
    job = runner("mindspeed_rl", "MindSpeedRl", tmp_path)
    for number in (1, 2):
        job.line(RL.format(n=number, loss="0.0312"))
    assert [step["step"] for step in job.events.steps] == [1, 2]
    assert job.events.steps[1]["tokens_per_second"] == 220.1
    assert job.events.steps[1]["score"] == 0.5
    assert json.dumps(job.events.steps)
