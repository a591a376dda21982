"""Runs a MindSpeed-RL job: ``mindspeed_rl.py --job plan.json --device npu --out FOLDER``, from its checkout."""

from __future__ import annotations

import re
import sys

from common.launch import Framework, main

# the logger's line an iteration (Ascend/MindSpeed-RL, mindspeed_rl/utils/loggers.py)
_ITERATION = re.compile(r"iteration:\s*(\d+)\s*/\s*(\d+)\s*\|(.*)$")
_PAIR = re.compile(r"([A-Za-z0-9_./-]+) : (-?(?:\d+\.\d+(?:e[+-]\d+)?|inf|nan))(?= \||\s*$)")


class MindSpeedRl(Framework):
    """One line an iteration with every metric of it."""

    package = "mindspeed-rl"

    def line(self, text: str) -> None:
        """An iteration; ``e2e_tps`` is tokens a second and device, an upper bound where lengths are not means."""
        found = _ITERATION.search(text)
        if not found:
            return
        said = {name: float(value) for name, value in _PAIR.findall(found.group(3))}
        self.step(
            int(found.group(1)),
            said.get("actor/pg_loss"),
            seconds=said.get("timing/all"),
            tokens_per_second=said.get("e2e_tps"),
            score=said.get("grpo/score"),
            response_length=said.get("response_length/mean"),
            grad_norm=said.get("actor/grad_norm"),
        )


if __name__ == "__main__":
    sys.exit(main(MindSpeedRl))
