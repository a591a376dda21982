"""Runs a MindSpeed-LLM job: ``mindspeed_llm.py --job plan.json --device npu --out FOLDER``, from its checkout."""

from __future__ import annotations

import re
import sys
from typing import Any

from common.launch import Framework, main

# Megatron's iteration line, as the last rank prints it (Ascend/MindSpeed-LLM, mindspeed_llm/training/training.py)
_ITERATION = re.compile(r"iteration\s+(\d+)/\s*(\d+)\s*\|")
_FIELD = re.compile(r"\|\s*([A-Za-z][^:|]*?)\s*:\s+([-+0-9.eE]+|nan|inf)\s*(?=\|)")
_MEMORY = re.compile(r"\(after \d+ iterations\) memory \(MB\) \|.*?max allocated: ([\d.]+)")
_WORLD = re.compile(r"using world size: (\d+)")
_DONE = "[after training is done]"
_MB = 1024**2


class MindSpeedLlm(Framework):
    """One line an iteration; the script's own exit status is that of ``tee``, so the end is read from the log."""

    package = "mindspeed-llm"

    def __init__(self, plan: dict[str, Any], folder: Any, device: str) -> None:
        super().__init__(plan, folder, device)
        self._memory: float | None = None
        self._world = self.devices

    def environment(self) -> dict[str, str]:
        """The rendered script keeps its log under ``logs/``, which has to be there."""
        (self.cwd / "logs").mkdir(parents=True, exist_ok=True)
        return {}

    def line(self, text: str) -> None:
        """An iteration, the memory line, or the framework's word that training is done."""
        memory, world, found = _MEMORY.search(text), _WORLD.search(text), _ITERATION.search(text)
        if memory:
            self._memory = max(self._memory or 0.0, float(memory.group(1)) * _MB)
        if world:
            self._world = int(world.group(1))
        if _DONE in text:
            self.measured.finished = True
        if found:
            self._iteration(int(found.group(1)), dict(_FIELD.findall(text)))

    def _iteration(self, step: int, fields: dict[str, str]) -> None:
        said = {name: float(value) for name, value in fields.items()}
        if said.get("number of nan iterations"):
            said["lm loss"] = float("nan")
        milliseconds = said.get("elapsed time per iteration (ms)")
        length, batch = (self.plan.get("facts") or {}).get("seq_length"), said.get("global batch size")
        tokens = None
        if milliseconds and length and batch:
            tokens = batch * float(length) * 1000 / (milliseconds * self._world)
        self.step(
            step,
            said.get("lm loss"),
            seconds=milliseconds / 1000 if milliseconds else None,
            tokens_per_second=tokens,
            memory_bytes=self._memory,
            learning_rate=said.get("learning rate"),
            grad_norm=said.get("grad norm"),
            tflops_per_device=said.get("throughput per GPU (TFLOP/s/GPU)"),
        )

    def died(self, tail: list[str]) -> tuple[str, str] | None:
        """A script that ends well although training never did."""
        if self.measured.finished or self.measured.steps >= int(self.plan.get("steps") or 0) > 0:
            return None
        from common import failures

        kind, reason = failures.name(tail, 1)
        return kind, reason


if __name__ == "__main__":
    sys.exit(main(MindSpeedLlm))
