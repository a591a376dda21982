"""The benchmarks run on the CPU, two processes where they need two, and their windows hold for them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import ROOT, Command

PYTHON = ROOT / ".venv-runners" / "bin" / "python"
NAMES = {
    "matmul", "attention[eager]", "attention[sdpa]", "attention[fused]", "rms_norm", "swiglu", "rotary",
    "optimizer_step", "train_step[Dense]", "train_step[Moe]", "collective[all_reduce]", "collective[all_to_all]",
}  # fmt: skip

pytestmark = pytest.mark.skipif(not PYTHON.is_file(), reason="make runners makes the environment that holds torch")


def test_a_measurement_of_this_host(command: Command, tmp_path: Path) -> None:
    done = command(
        "bench",
        "run",
        "--device",
        "cpu",
        "--model",
        "qwen3-0.6b",
        "--seq-length",
        "32",
        "--out",
        "r.json",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    measured = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert (measured["device"], measured["cpu"], measured["torch_npu"]) == ("cpu", True, None)
    assert measured["shape"]["hidden_size"] == 1024
    assert {result["name"] for result in measured["results"]} == NAMES
    assert all(len(result["values"]) == 20 and result["median"] > 0 for result in measured["results"])
    assert command("bench", "rebase", "r.json", "--windows", "w.json", cwd=tmp_path).returncode == 0
    assert command("bench", "compare", "r.json", "--windows", "w.json", cwd=tmp_path).returncode == 0
