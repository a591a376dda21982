"""Windows of benchmarks: a measurement lies in its own, a slower one does not, another stack has none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import Command

from ascend_compat.errors import UsageError
from ascend_compat.evidence.benchmark import LEAST_WIDTH, compare, read, rebase


def measured(scale: float = 1.0, **other: Any) -> dict[str, Any]:
    """A measurement of two benchmarks, one quiet and one noisy."""
    results = [
        {"name": name, "unit": "s", "values": [median * scale], "median": median * scale, "spread": spread}
        for name, median, spread in (("matmul", 2e-5, 0.01), ("all_reduce", 3e-4, 0.2))
    ]
    host = {"device": "cpu", "machine": "x86_64", "torch": "2.13.0", "torch_npu": None, "shape": {"seq_length": 128}}
    return {"kind": "benchmark", "date": "2026-12-01T00:00:00Z", **host, "results": results, **other}


def test_a_measurement_lies_in_its_own_windows(tmp_path: Path) -> None:
    assert rebase(measured(), tmp_path / "w.json") == 2
    windows = read(tmp_path / "w.json", "benchmark-windows")
    assert [one.state for one in compare(measured(), windows)] == ["inside", "inside"]
    assert {one.name: one.state for one in compare(measured(1.3), windows)} == {
        "matmul": "slower",
        "all_reduce": "inside",
    }
    assert [one.state for one in compare(measured(0.3), windows)] == ["faster", "faster"]
    bounds = windows["windows"][0]["benchmarks"]["matmul"]
    assert bounds["upper"] == pytest.approx(bounds["target"] * (1 + LEAST_WIDTH))


def test_windows_are_of_one_device_and_stack(tmp_path: Path) -> None:
    rebase(measured(), tmp_path / "w.json")
    rebase(measured(2.0, torch="2.7.1", torch_npu="2.7.1", device="npu"), tmp_path / "w.json")
    windows = read(tmp_path / "w.json", "benchmark-windows")
    assert len(windows["windows"]) == 2
    assert {one.state for one in compare(measured(torch="2.9.0"), windows)} == {"no-window"}
    rebase(measured(1.1), tmp_path / "w.json")
    assert len(read(tmp_path / "w.json", "benchmark-windows")["windows"]) == 2


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"kind": "evidence"}'])
def test_other_files_are_refused_in_one_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "r.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"r\.json: "):
        read(path, "benchmark")


def test_a_regression_exits_1(command: Command, tmp_path: Path) -> None:
    for name, scale in (("good.json", 1.0), ("slow.json", 3.0)):
        (tmp_path / name).write_text(json.dumps(measured(scale)))
    assert command("bench", "rebase", "good.json", "--windows", "w.json", cwd=tmp_path).returncode == 0
    good = command("bench", "compare", "good.json", "--windows", "w.json", cwd=tmp_path)
    slow = command("bench", "compare", "slow.json", "--windows", "w.json", "--format", "json", cwd=tmp_path)
    assert (good.returncode, slow.returncode) == (0, 1)
    assert {one["state"] for one in json.loads(slow.stdout)["results"]} == {"slower"}
