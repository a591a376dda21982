"""No home, nothing writable, the C locale, a narrow terminal: the same answers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from trust_inputs import ROOT

JOB = str(ROOT / "docs" / "examples" / "af-llamafactory-lora-qwen2-1.5b.yaml")
NAMES = ("check", "--model", "qwen2-1.5b", "--framework", "llamafactory", "--feature", "lora")


def run(*arguments: str, cwd: Path = ROOT, **env: str) -> subprocess.CompletedProcess[bytes]:
    """The command in an environment of nothing but what is given."""
    bare = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", **env}
    return subprocess.run(
        [sys.executable, "-m", "ascend_compat", *arguments], capture_output=True, cwd=cwd, env=bare, check=False
    )


def test_no_home_and_no_cache(cache: Path) -> None:
    usual = run(*NAMES, ASCEND_COMPAT_CACHE=str(cache))
    assert usual.returncode == 1
    bare = run(*NAMES)
    assert (bare.returncode, bare.stdout, bare.stderr) == (1, usual.stdout, b"")


def test_nothing_can_be_written(cache: Path) -> None:
    """``/proc`` refuses new files even to root; the package itself may write nothing beside it either."""
    usual = run("check", JOB, ASCEND_COMPAT_CACHE=str(cache))
    sealed = run(
        "check", JOB, cwd=Path("/proc"), ASCEND_COMPAT_CACHE="/proc/none", TMPDIR="/proc", PYTHONDONTWRITEBYTECODE="1"
    )
    assert (sealed.returncode, sealed.stdout, sealed.stderr) == (usual.returncode, usual.stdout, b"")
    assert usual.returncode == 1


def test_chinese_in_the_c_locale_is_utf_8(cache: Path) -> None:
    for more in ({}, {"PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}, {"PYTHONIOENCODING": "ascii"}):
        for form in ("text", "json", "markdown", "junit"):
            said = run(
                "check", "--lang", "zh", "--format", form, JOB, LC_ALL="C", ASCEND_COMPAT_CACHE=str(cache), **more
            )
            assert said.returncode == 1
            assert "不支持" in said.stdout.decode("utf-8")
            assert said.stderr == b""
    wrong = run("show", "模型", LC_ALL="C", ASCEND_COMPAT_CACHE=str(cache), PYTHONCOERCECLOCALE="0")
    assert wrong.returncode == 2
    assert "模型" in wrong.stderr.decode("utf-8")


def test_a_name_in_gbk_is_read_in_the_c_locale(cache: Path, tmp_path: Path) -> None:
    job = tmp_path / os.fsdecode("作业.yaml".encode("gbk"))
    job.write_bytes(
        "stage: sft\nmodel_name_or_path: Qwen/Qwen2-1.5B\nfinetuning_type: lora\ndataset: 数据\n".encode("gbk")
    )
    said = run("check", str(job), LC_ALL="C", ASCEND_COMPAT_CACHE=str(cache))
    assert said.returncode in (0, 1), said.stderr


def test_a_narrow_terminal_gets_help_it_can_show(cache: Path) -> None:
    for command in ((), ("check",), ("matrix", "import"), ("plan",)):
        said = run(*command, "--help", COLUMNS="60", ASCEND_COMPAT_CACHE=str(cache))
        assert said.returncode == 0
        lines = [line for line in said.stdout.decode().splitlines() if "|" not in line]  # a list of choices is one word
        assert len(lines) > 5
        assert max(map(len, lines)) <= 60, command
    assert run("check", JOB, COLUMNS="60", ASCEND_COMPAT_CACHE=str(cache)).returncode == 1
