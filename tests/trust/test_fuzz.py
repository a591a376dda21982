"""Hostile inputs to every reader: a clean answer each, and nothing done but reading.

``FUZZ_EXAMPLES`` asks for more than the few that every run tries; ``make fuzz`` looks longer still.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from trust_inputs import ROOT, TARGETS

HERE = Path(__file__).resolve().parent
EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "60"))


@pytest.mark.parametrize("target", TARGETS)
def test_hostile_input_gets_a_clean_answer(target: str, cache: Path, tmp_path: Path) -> None:
    examples = EXAMPLES // 6 if target == "matrix" else EXAMPLES  # each of them is linted and built
    run = subprocess.run(
        [sys.executable, str(HERE / "trust_child.py"), target, str(examples), str(tmp_path)],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT), "HYPOTHESIS_STORAGE_DIRECTORY": str(tmp_path / ".hypothesis")},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-6000:]
    counts = json.loads(run.stdout)
    assert counts["taken"] > 0
    assert counts["refused"] > 0
    assert sum(counts.values()) >= examples
    assert not [path for path in tmp_path.rglob("*") if path.name == "pwned"]


DEEDS = {
    "a command": "import os; os.system('true')",
    "a process": "import subprocess; subprocess.run(['true'])",
    "a socket": "import socket; socket.socket()",
    "a file outside": "open('/etc/passwd')",
    "a file made": "open('made', 'w')",
    "a folder listed": "import os; os.listdir('/etc')",
    "a deed that was hushed up": "try:\n  open('/etc/passwd')\nexcept BaseException:\n  pass",
    "much memory": "x = bytearray(300_000_000)",
    "a hang": "while True: pass",
}


@pytest.mark.parametrize("deed", DEEDS)
def test_the_guard_sees_what_it_is_there_to_see(deed: str, tmp_path: Path) -> None:
    script = (
        "import sys, os, subprocess, socket, trust_guard\nfrom pathlib import Path\ntrust_guard.CPU_ONE = 0.2\n"
        "guard = trust_guard.Guard([Path.cwd()])\nguard.arm()\n"
        "try:\n  with guard.watching():\n    exec(sys.argv[1])\nexcept (trust_guard.Forbidden, trust_guard.Hang, MemoryError) as error:\n"
        "  sys.exit(7)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script, DEEDS[deed]], cwd=tmp_path, check=False, env={**os.environ, "PYTHONPATH": str(HERE)}
    )  # fmt: skip
    assert run.returncode == 7
    assert not list(tmp_path.iterdir())
