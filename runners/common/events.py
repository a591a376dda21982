"""JSON Lines events of one run: a file in the run's folder and, when asked for, a pipe."""

from __future__ import annotations

import importlib.metadata
import json
import math
import os
import platform
import re
import time
from pathlib import Path
from typing import Any

PACKAGES = (
    "torch", "torch-npu", "transformers", "accelerate", "peft", "trl", "datasets", "deepspeed", "tokenizers", "numpy",
    "llamafactory", "verl", "vllm", "vllm-ascend", "ray", "hydra-core", "omegaconf", "megatron-core", "mindspeed",
    "mindspeed-llm", "mindspeed-rl", "apex", "triton-ascend", "pytest-benchmark",
)  # fmt: skip
_SECRET = re.compile(r"token|secret|password|passwd|credential|api_?key", re.IGNORECASE)


def versions() -> dict[str, str]:
    """Installed versions of the packages a run depends on, read from their metadata: nothing is imported."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def finite(value: Any) -> Any:
    """The value as JSON can hold it: numbers that are not finite become the texts ``nan``, ``inf`` and ``-inf``."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return value


class Events:
    """Writes events to ``events.jsonl`` and to the descriptor that ``ASCEND_COMPAT_EVENTS`` names.

    A write that fails (full disk, closed pipe) never stops the run here: it is remembered in :attr:`broken`
    and :attr:`orphaned`, and the runner ends the run.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "events.jsonl"
        self.broken = ""
        self.orphaned = False
        self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
        named = os.environ.pop("ASCEND_COMPAT_EVENTS", "")
        self._pipe = int(named) if named.isdigit() else None
        if self._pipe is not None:
            os.set_inheritable(self._pipe, False)

    @property
    def piped(self) -> bool:
        """Whether another process follows the events."""
        return self._pipe is not None

    def write(self, event: str, **fields: Any) -> None:
        """One event, one line, one write."""
        line = json.dumps({"event": event, **finite(fields)}, ensure_ascii=False, allow_nan=False) + "\n"
        data = line.encode()
        try:
            os.write(self._file, data)
        except OSError as error:
            self.broken = self.broken or f"events cannot be written: {error.strerror}"
        if self._pipe is not None:
            try:
                os.write(self._pipe, data)
            except OSError:
                self.orphaned = True
                self._pipe = None

    def start(self, plan: dict[str, Any], device: str, device_count: int | None, framework: str) -> None:
        """The first event: what runs where. ``device_count`` counts processes on a CPU, NPUs (dies) otherwise."""
        found = versions()
        self.write(
            "start",
            time=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            recipe=plan.get("recipe"),
            framework=plan.get("framework"),
            python=platform.python_version(),
            torch=found.get("torch"),
            torch_npu=found.get("torch-npu"),
            framework_version=found.get(framework),
            device=device,
            device_count=device_count,
            machine=platform.machine(),
            packages=found,
            command=plan.get("command"),
            env={key: value for key, value in (plan.get("env") or {}).items() if not _SECRET.search(key)},
        )

    def metric(self, name: str, value: float, unit: str, **more: Any) -> None:
        """One measured figure with its unit."""
        self.write("metric", name=name, value=value, unit=unit, **more)
