"""``lock`` and ``check --lock``: a verdict that changes is told, with what changed it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from support import ROOT, Command

EXAMPLES = ROOT / "docs" / "examples"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Four job files, two of them rejected."""
    for example in EXAMPLES.iterdir():
        shutil.copy(example, tmp_path)
    return tmp_path


def names(place: Path) -> list[str]:
    found = sorted(file.name for file in place.iterdir() if file.suffix in (".sh", ".yaml"))
    assert len(found) >= 4
    return found


def test_locked_verdicts_stand(command: Command, place: Path) -> None:
    made = command("lock", *names(place), cwd=place)
    assert (made.returncode, made.stdout) == (0, "")
    lock = place / "ascend-compat.lock.json"
    jobs = json.loads(lock.read_text())["jobs"]
    assert [job["file"] for job in jobs] == names(place)
    assert {"unsupported", "impossible", "supported"} <= {job["verdict"] for job in jobs}
    assert all(job["digest"].startswith("sha256:") and job["release"] for job in jobs)
    again = command("check", "--lock", str(lock))
    assert again.returncode == 0
    assert f"{len(jobs)} jobs" in again.stdout
    moved = command("check", "--lock", "ascend-compat.lock.json", *names(place), cwd=place)
    assert moved.returncode == 0
    assert command("lock", *names(place), "-o", "-", cwd=place).stdout == lock.read_text()


def test_another_release_is_told(command: Command, place: Path) -> None:
    file = "af-llamafactory-lora-qwen2.5-7b.yaml"
    assert command("lock", "--release", "6.5.906", file, cwd=place).returncode == 0
    same = command("check", "--lock", "ascend-compat.lock.json", "--release", "6.5.906", cwd=place)
    assert same.returncode == 0
    other = command("check", "--lock", "ascend-compat.lock.json", "--release", "6.5.907", cwd=place)
    assert other.returncode == 1
    assert f"{file}: supported -> unverified" in other.stdout
    assert "release: 6.5.906 -> 6.5.907" in other.stdout
    chinese = command("check", "--lock", "ascend-compat.lock.json", "--release", "6.5.907", "--lang", "zh", cwd=place)
    assert f"{file}: 支持 -> 未验证" in chinese.stdout


def test_an_edit_is_told_and_a_harmless_one_passes(command: Command, place: Path) -> None:
    script = place / "mindspeed-llm-qwen2.5-7b-tp8.sh"
    command("lock", script.name, cwd=place)
    text = script.read_text()
    script.write_text("# moved\n\n" + text)
    assert command("check", "--lock", "ascend-compat.lock.json", cwd=place).returncode == 0
    script.write_text(text.replace("TP=8", "TP=4"))
    done = command("check", "--lock", "ascend-compat.lock.json", cwd=place)
    assert done.returncode == 1
    assert "the file was edited" in done.stdout
    assert "gone: ML-PAR12" in done.stdout
    script.unlink()
    gone = command("check", "--lock", "ascend-compat.lock.json", cwd=place)
    assert gone.returncode == 1
    assert "impossible -> unreadable" in gone.stdout


def test_jobs_that_only_one_side_knows(command: Command, place: Path) -> None:
    first, second, *_ = names(place)
    command("lock", first, cwd=place)
    done = command("check", "--lock", "ascend-compat.lock.json", first, second, cwd=place)
    assert done.returncode == 1
    assert f"{second}: not there -> " in done.stdout


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"lock_version": 2, "jobs": []}', '{"lock_version": 1, "jobs": [1]}']
)
def test_what_is_no_lock(command: Command, tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text)
    done = command("check", "--lock", "x.json", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert len(done.stderr.splitlines()) == 1


def test_an_unreadable_job_is_not_locked(command: Command, tmp_path: Path) -> None:
    done = command("lock", "gone.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert not (tmp_path / "ascend-compat.lock.json").exists()
