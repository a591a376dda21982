"""Benchmarks of a host: one document a measurement, and windows that a later one must lie in."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ascend_compat.errors import DataError, UsageError
from ascend_compat.evidence.document import now
from ascend_compat.files import write_whole
from ascend_compat.resources import runners_dir

if TYPE_CHECKING:
    from collections.abc import Mapping

# a window is at least this wide, however quiet the measurement was
LEAST_WIDTH = 0.10
_KEY = ("device", "machine", "torch", "torch_npu", "shape")
_STACK = """
import importlib.metadata as m, json, platform
def version(name):
    try:
        return m.version(name)
    except m.PackageNotFoundError:
        return None
print(json.dumps({"python": platform.python_version(), "machine": platform.machine(), "torch": version("torch"), "torch_npu": version("torch-npu")}))
"""


@dataclass(frozen=True, slots=True)
class Compared:
    """One benchmark against its window: ``inside``, ``slower``, ``faster``, or ``no-window``. Times in seconds."""

    name: str
    median: float
    spread: float
    window: Mapping[str, float] | None

    @property
    def state(self) -> str:
        """Where the median lies."""
        if self.window is None:
            return "no-window"
        if self.median > self.window["upper"]:
            return "slower"
        return "faster" if self.median < self.window["lower"] else "inside"


def measure(python: str, device: str, shape: Mapping[str, int]) -> dict[str, Any]:
    """Run the benchmarks in the environment of ``python``. Raises :class:`DataError` where they do not end well.

    ``spread`` of a benchmark is its interquartile range over its median: the noise of this measurement.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "benchmark.json"
        surroundings = {**os.environ, "BENCH_DEVICE": device, "BENCH_SHAPE": json.dumps(dict(shape))}
        surroundings.setdefault("OMP_NUM_THREADS", "1")
        command = [python, "-m", "pytest", str(runners_dir() / "torch_bench.py"), "-q", "-p", "no:cacheprovider"]
        command += ["--override-ini", "addopts=", "--rootdir", folder, f"--benchmark-json={out}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=surroundings, cwd=folder)
        if done.returncode or not out.is_file():
            last = (done.stdout + done.stderr).strip().splitlines()[-1:] or ["no output"]
            raise DataError(f"the benchmarks ended with status {done.returncode}: {last[0]}")
        told = json.loads(out.read_text(encoding="utf-8"))
    asked = subprocess.run([python, "-c", _STACK], capture_output=True, text=True, check=True)
    results = [_result(entry) for entry in told["benchmarks"]]
    return {
        "kind": "benchmark",
        "schema_version": 1,
        "date": now(),
        "device": device,
        "cpu": device == "cpu",
        "shape": dict(shape),
        **json.loads(asked.stdout),
        "results": sorted(results, key=lambda result: str(result["name"])),
    }


def _result(entry: Mapping[str, Any]) -> dict[str, Any]:
    values = sorted(float(value) for value in entry["stats"]["data"])
    median = statistics.median(values)
    low, _, high = statistics.quantiles(values, n=4)
    name = str(entry["name"]).removeprefix("test_")
    return {"name": name, "unit": "s", "values": values, "median": median, "spread": (high - low) / median}


def read(path: Path, kind: str) -> dict[str, Any]:
    """A document of this kind. Raises :class:`UsageError` for a file that holds none."""
    try:
        if path.stat().st_size > 16_000_000:
            raise UsageError(f"{path}: larger than 16 MB, no {kind} document")
        body = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    except ValueError:
        raise UsageError(f"{path}: this is not JSON") from None
    if not isinstance(body, dict) or body.get("kind") != kind:
        raise UsageError(f"{path}: this is no {kind} document")
    return body


def compare(result: Mapping[str, Any], windows: Mapping[str, Any]) -> list[Compared]:
    """Every benchmark against the window of the same device, machine, stack and shape; the first slower ones first."""
    same = [entry for entry in windows["windows"] if all(entry[name] == result[name] for name in _KEY)]
    bounds = same[0]["benchmarks"] if same else {}
    found = [Compared(one["name"], one["median"], one["spread"], bounds.get(one["name"])) for one in result["results"]]
    return sorted(found, key=lambda one: (one.state != "slower", one.name))


def rebase(result: Mapping[str, Any], path: Path) -> int:
    """Make the measured medians the targets of their device and stack in the windows file; how many there are.

    A window reaches three spreads to both sides, at least a tenth of the target.
    """
    windows: dict[str, Any]
    windows = read(path, "benchmark-windows") if path.exists() else {"kind": "benchmark-windows", "schema_version": 1}
    others = [entry for entry in windows.get("windows", ()) if any(entry[name] != result[name] for name in _KEY)]
    bounds = {}
    for one in result["results"]:
        width = max(LEAST_WIDTH, 3 * one["spread"])
        target = one["median"]
        bounds[one["name"]] = {
            "target": target,
            "lower": max(0.0, target * (1 - width)),
            "upper": target * (1 + width),
            "unit": one["unit"],
        }
    own = {name: result[name] for name in _KEY} | {"date": result["date"], "benchmarks": bounds}
    write_whole(path, json.dumps({**windows, "windows": [*others, own]}, ensure_ascii=False, indent=1) + "\n")
    return len(bounds)
