"""Small inputs with large consequences are refused, or followed so far and no further, in bounded time and memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from trust_big import CASES
from trust_inputs import ROOT


def test_large_consequences_are_cut_off(cache: Path, tmp_path: Path) -> None:
    child = Path(__file__).with_name("trust_big.py")
    run = subprocess.run(
        [sys.executable, str(child), str(tmp_path)],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-6000:]
    assert json.loads(run.stdout) == {name: outcome for name, (_, _, outcome) in CASES.items()}
    assert not list(tmp_path.iterdir())
