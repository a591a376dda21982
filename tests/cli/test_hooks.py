"""What a repository's CI is given: the hooks' commands, the action's steps run as a script, the GitLab template."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from support import ROOT, Command


def loaded(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A repository with a good job, a bad one, and files that are no jobs."""
    examples = ROOT / "docs" / "examples"
    shutil.copy(examples / "af-llamafactory-lora-qwen2.5-7b.yaml", tmp_path / "good.yaml")
    shutil.copy(examples / "mindspeed-llm-qwen2.5-7b-tp8.sh", tmp_path / "bad.sh")
    (tmp_path / "compose.yaml").write_text("services:\n  web: {image: x}\n")
    (tmp_path / "chart.yaml").write_text("{{ if .Values.x }}\na: b\n")
    (tmp_path / "build.sh").write_text("#!/bin/sh\nmake all\n")
    return tmp_path


def test_hooks(command: Command, place: Path) -> None:
    hooks = {hook["id"]: hook for hook in loaded(".pre-commit-hooks.yaml")}
    assert set(hooks) == {"ascend-compat", "ascend-compat-lock"}
    words = shlex.split(hooks["ascend-compat"]["entry"])
    assert words[0] == "ascend-compat"
    others = ["compose.yaml", "chart.yaml", "build.sh"]
    assert command(*words[1:], *others, cwd=place).returncode == 0
    assert command(*words[1:], *others, "good.yaml", cwd=place).returncode == 0
    done = command(*words[1:], *others, "good.yaml", "bad.sh", cwd=place)
    assert done.returncode == 1
    assert "bad.sh:5:4" in done.stdout
    assert command("lock", "good.yaml", "bad.sh", cwd=place).returncode == 0
    locked = shlex.split(hooks["ascend-compat-lock"]["entry"])
    assert command(*locked[1:], cwd=place).returncode == 0


@pytest.mark.parametrize(("paths", "lock", "code"), [("good.yaml", "", 0), (".", "", 1), ("good.yaml", "lock.json", 0)])
def test_steps_of_the_action(command: Command, cache: Path, place: Path, paths: str, lock: str, code: int) -> None:
    """The check step as it stands; the program it would have installed is this one."""
    action = loaded("action.yml")
    assert action["runs"]["using"] == "composite"
    steps = {step["name"]: step for step in action["runs"]["steps"]}
    assert set(steps) == {"Install", "Check"}
    if lock:
        assert command("lock", "good.yaml", "-o", lock, cwd=place).returncode == 0
    programs = place / "temp" / "ascend-compat" / "bin"
    programs.mkdir(parents=True)
    (programs / "ascend-compat").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ascend_compat "$@"\n')
    (programs / "ascend-compat").chmod(0o755)
    inputs = {name: str(body["default"]) for name, body in action["inputs"].items()} | {"paths": paths, "lock": lock}
    env = {name: inputs[value.split("inputs.")[1].split()[0]] for name, value in steps["Check"]["env"].items()}
    summary = place / "temp" / "summary.md"
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", steps["Check"]["run"]],
        cwd=place, capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, **env, "RUNNER_TEMP": str(place / "temp"), "GITHUB_STEP_SUMMARY": str(summary),
             "PYTHONPATH": str(ROOT), "ASCEND_COMPAT_CACHE": str(cache), "LC_ALL": "C.UTF-8"},
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    assert ("::error file=bad.sh,title=ML-PAR12,line=5,col=4," in done.stdout) is (code == 1)
    results = json.loads((place / "ascend-compat.sarif").read_text())["runs"][0]["results"]
    assert any(result["ruleId"] == "ML-PAR12" for result in results) is (code == 1)
    assert summary.read_text().startswith("| file | verdict |")


def test_steps_use_only_inputs_there_are() -> None:
    action = loaded("action.yml")
    used = set()
    for step in action["runs"]["steps"]:
        used |= {value.split("inputs.")[1].split()[0] for value in step["env"].values() if "inputs." in value}
        assert "${{" not in step["run"]
    assert used == set(action["inputs"])


def test_gitlab_template(command: Command, place: Path) -> None:
    job = loaded("ci/gitlab.yml")[".ascend-compat"]
    reports = job["artifacts"]["reports"]
    for line in job["script"]:
        program, *words = shlex.split(line.split(">")[0].split("||")[0].replace("$JOBS", "."))
        assert program == "ascend-compat"
        assert command(*words, cwd=place).returncode == 1
    assert {reports["codequality"], reports["junit"]} == {
        line.split("> ")[1].split()[0] for line in job["script"] if ">" in line
    }
