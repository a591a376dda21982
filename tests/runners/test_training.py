"""Recipes really train here, on the CPU and in the environment of `make runners`; their evidence is never more than smoke."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from support import ROOT

PYTHON = ROOT / ".venv-runners" / "bin" / "python"
LLAMAFACTORY = [
    f"llamafactory-{task}-tiny{kind}" for task in ("pretrain", "full", "lora", "packing") for kind in ("", "-moe")
]
TORCH = ["ddp", "fsdp2", "tensor-parallel", "context-parallel", "attention-fused", "attention-plain", "moe"]

pytestmark = pytest.mark.skipif(not PYTHON.is_file(), reason="make runners makes the environment that trains")


@pytest.fixture
def run(cache, tmp_path):
    """Runs ``ascend-compat`` with evidence of its own."""

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        surroundings = {**os.environ, "ASCEND_COMPAT_EVIDENCE": str(tmp_path / "evidence"), "ASCEND_COMPAT_LANG": "en"}
        surroundings |= {"HOME": str(tmp_path), "ASCEND_COMPAT_CACHE": str(cache), "PYTHONPATH": str(ROOT)}
        return subprocess.run(
            [sys.executable, "-m", "ascend_compat", *words],
            capture_output=True, text=True, check=False, env=surroundings, timeout=600,
        )  # fmt: skip

    return call


def evidence(folder: Path) -> dict:
    """The one document of a run."""
    (document,) = (folder / "evidence").glob("*.json")
    return json.loads(document.read_text(encoding="utf-8"))


@pytest.mark.parametrize("recipe", [*LLAMAFACTORY, *(f"torch-{name}" for name in TORCH)])
def test_a_recipe_trains(run, tmp_path, recipe):
    done = run("run", recipe, "--device", "cpu")
    assert done.returncode == 0, done.stderr[-2000:] + done.stdout[-2000:]
    document = evidence(tmp_path)
    (job,) = document["jobs"]
    assert (job["result"], job["recipe"], document["device"]["kind"]) == ("pass", recipe, "cpu")
    losses = next(metric["values"] for metric in job["metrics"] if metric["name"] == "loss")
    assert len(losses) == 5
    assert sum(losses[-2:]) < sum(losses[:2])


def test_the_same_parameters_are_reached_by_every_split(run, tmp_path):
    """Tensor and context parallelism compute what one device does; FSDP2 what DDP does."""
    reached = {}
    for name in ("attention-fused", "tensor-parallel", "context-parallel", "ddp", "fsdp2"):
        folder = tmp_path / name
        folder.mkdir()
        assert run("run", f"torch-{name}", "--device", "cpu").returncode == 0
        (document,) = (tmp_path / "evidence").glob("*.json")
        (job,) = json.loads(document.read_text(encoding="utf-8"))["jobs"]
        reached[name] = next(metric["values"] for metric in job["metrics"] if metric["name"] == "loss")
        document.unlink()
    assert reached["tensor-parallel"] == pytest.approx(reached["attention-fused"], rel=1e-3)
    assert reached["context-parallel"] == pytest.approx(reached["attention-fused"], rel=1e-3)
    assert reached["fsdp2"] == pytest.approx(reached["ddp"], rel=1e-3)


def test_evidence_of_a_cpu_is_smoke_and_counted(run):
    assert run("run", "llamafactory-lora-tiny", "--device", "cpu").returncode == 0
    totals = json.loads(run("audit", "--format", "json").stdout)["totals"]
    assert totals["smoke"] > 0
    assert totals["verified"] == 0
    assert run("evidence", "verify").returncode == 0


def test_an_impossible_setting_is_refused_and_fails_when_it_is_probed(run, tmp_path):
    impossible = ("--set", "use_galore=true", "--set", "finetuning_type=lora")
    refused = run("run", "llamafactory-lora-tiny", "--device", "cpu", *impossible)
    assert refused.returncode == 1
    assert not list((tmp_path / "evidence").glob("*.json")) if (tmp_path / "evidence").exists() else True
    probed = run("run", "llamafactory-lora-tiny", "--device", "cpu", "--probe", *impossible)
    assert probed.returncode == 1
    (job,) = evidence(tmp_path)["jobs"]
    assert job["result"] == "error"
    assert "GaLore" in job["error"]["reason"]


def processes(place: Path) -> dict[int, str]:
    """Command lines of the processes that work below ``place``."""
    found = {}
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and str(place) in str((entry / "cwd").readlink()):
                found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    return found


def until(holds: Callable[[], object], seconds: float = 120) -> object:
    """Waits for something to hold; what it is then."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = holds()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError("it did not come to hold")


@pytest.mark.parametrize("victim", ["runner", "worker", "command"])
def test_a_kill_leaves_no_orphan_and_no_half_document(run, tmp_path, victim):
    surroundings = {**os.environ, "ASCEND_COMPAT_EVIDENCE": str(tmp_path / "evidence"), "HOME": str(tmp_path)}
    command = [
        sys.executable,
        "-m",
        "ascend_compat",
        "run",
        "torch-ddp",
        "--device",
        "cpu",
        "--set",
        "max_steps=100000",
    ]
    started = subprocess.Popen(command, env={**surroundings, "PYTHONPATH": str(ROOT)}, stderr=subprocess.DEVNULL)
    runs = tmp_path / "evidence" / "runs"
    workers = until(lambda: {p: c for p, c in processes(runs).items() if "torch_train.py" in c and "torchrun" not in c})
    runner = int(
        subprocess.run(
            ["pgrep", "-P", str(started.pid), "-f", "torch_train.py --job"], capture_output=True, text=True, check=True
        ).stdout.split()[0]
    )
    os.kill({"runner": runner, "worker": max(workers), "command": started.pid}[victim], signal.SIGKILL)
    assert started.wait(timeout=120) != 0
    until(lambda: not processes(runs))
    left = list((tmp_path / "evidence").glob("*"))
    assert [path.name for path in left if path.suffix == ".part"] == []
    if victim != "command":
        (job,) = evidence(tmp_path)["jobs"]
        assert (job["result"], job["error"]["kind"]) in {("error", "killed"), ("error", "framework")}
    assert run("evidence", "verify").returncode == 0
