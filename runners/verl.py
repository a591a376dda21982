"""Runs a verl job: ``verl.py --job plan.json --device npu --out FOLDER``; verl starts its own Ray."""

from __future__ import annotations

import re
import sys

from common.launch import Framework, main

# the console logger's line a step, behind Ray's prefix (verl-project/verl, verl/utils/logger/aggregate_logger.py)
_STEP = re.compile(r"^(?:\([^)]*\)\s*)?step:(\d+)( - .*)$")
_PAIR = re.compile(r" - ([A-Za-z0-9_@./-]+):(?:np\.\w+\()?(-?(?:\d+\.?\d*(?:[eE][+-]?\d+)?|inf|nan))\)?")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_GIB = 1024**3
# what an update reports, by the names of the events
_LOSSES = ("actor/pg_loss", "train/loss")


class Verl(Framework):
    """One line a step with every metric of it."""

    package = "verl"

    def line(self, text: str) -> None:
        """A step with its metrics; validation lines carry none of the update's."""
        found = _STEP.match(_COLOUR.sub("", text).strip())
        if not found:
            return
        said = {name: float(value) for name, value in _PAIR.findall(found.group(2))}
        loss = next((said[name] for name in _LOSSES if name in said), None)
        if loss is None and "perf/throughput" not in said:
            return
        gigabytes = said.get("perf/max_memory_allocated_gb")
        self.step(
            int(found.group(1)),
            loss,
            seconds=said.get("perf/time_per_step", said.get("timing_s/step")),
            tokens_per_second=said.get("perf/throughput"),
            memory_bytes=gigabytes * _GIB if gigabytes else None,
            score=said.get("critic/score/mean"),
            response_length=said.get("response_length/mean"),
            grad_norm=said.get("actor/grad_norm"),
        )


if __name__ == "__main__":
    sys.exit(main(Verl))
