"""A real local Ray cluster that declares NPUs: one task a run, results as they come, evidence marked simulated."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ascend_compat.evidence import engine_ray
from ascend_compat.resources import data_root

PYTHON = data_root() / ".venv-runners" / "bin" / "python"
RUNNER = """
import json, os, sys
from pathlib import Path
arguments = dict(zip(sys.argv[1::2], sys.argv[2::2]))
pipe = int(os.environ["ASCEND_COMPAT_EVENTS"])
(Path(arguments["--out"]) / "framework.log").write_text("the framework's own words")
for event in (
    {"event": "start", "python": "3.11.4", "torch": "2.7.1", "torch_npu": None, "framework_version": "0.9.3", "device_count": 1, "packages": {}},
    {"event": "step", "step": 1, "loss": 2.5},
    {"event": "end", "result": "pass", "kind": None, "reason": "", "exit": 0},
):
    os.write(pipe, (json.dumps(event) + "\\n").encode())
"""

pytestmark = pytest.mark.skipif(not PYTHON.is_file(), reason="make runners makes the environment that holds Ray")


def _submit(tmp_path, tasks, npus=8):
    asked = tmp_path / "tasks.json"
    asked.write_text(json.dumps({"local_npus": npus, "tasks": tasks}))
    done = subprocess.run(
        [str(PYTHON), engine_ray.__file__, str(asked)], capture_output=True, text=True, check=False, timeout=300
    )
    return done.returncode, {said["key"]: said for said in map(json.loads, done.stdout.splitlines())}


def test_tasks_run_where_there_are_npus_and_say_how_they_end(tmp_path):
    ends = {"good": 0, "bad": 1, "worse": 3}
    tasks = [
        {
            "key": key,
            "devices": 4,
            "command": [sys.executable, "-c", f"import sys; print('ended {key}'); sys.exit({status})"],
        }
        for key, status in ends.items()
    ]
    tasks.append({"key": "large", "devices": 16, "command": [sys.executable, "-c", "print('never')"]})
    status, said = _submit(tmp_path, tasks)
    assert status == 1
    assert {key: said[key]["status"] for key in ends} == ends
    assert said["good"]["output"] == "ended good"
    assert said["large"]["status"] is None
    assert "the largest node has 8" in said["large"]["output"]


def test_a_lost_worker_is_tried_once_more(tmp_path):
    mark = tmp_path / "mark"
    dies = f"import os, signal; from pathlib import Path; mark = Path({str(mark)!r}); first = not mark.exists(); mark.write_text('x'); first and os.kill(os.getppid(), signal.SIGKILL); print('done')"
    always = "import os, signal; os.kill(os.getppid(), signal.SIGKILL)"
    tasks = [
        {"key": key, "devices": 1, "command": [sys.executable, "-c", code]}
        for key, code in (("once", dies), ("always", always))
    ]
    status, said = _submit(tmp_path, tasks)
    assert status == 1
    assert (said["once"]["status"], said["once"]["output"]) == (0, "done")
    assert said["always"]["status"] is None


def test_verify_on_a_cluster_leaves_simulated_evidence(tmp_path):
    data = tmp_path / "data"
    (data / "runners").mkdir(parents=True)
    for name in ("matrix", "schema", "runners/recipes"):
        (data / name).symlink_to(data_root() / name)
    (data / "runners" / "llamafactory.py").write_text(RUNNER)
    variables = {**os.environ, "ASCEND_COMPAT_DATA": str(data), "ASCEND_COMPAT_EVIDENCE": str(tmp_path / "own")}
    variables["PYTHONPATH"] = str(Path(engine_ray.__file__).parents[2])
    command = [sys.executable, "-c", "from ascend_compat.cli.main import run; run()", "verify", "--release", "6.5.906"]
    command += ["--device", "cpu", "--engine", "ray", "--simulated-npus", "2", "--python", str(PYTHON)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=variables, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    bodies = [json.loads(path.read_text()) for path in (tmp_path / "own").glob("*.json")]
    assert [(body["simulated"], body["result"], len(body["jobs"])) for body in bodies] == [(True, "pass", 3)] * 2
