"""The built wheel, installed in an empty environment outside the checkout, checks a job."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_an_installed_wheel_needs_no_checkout(tmp_path: Path) -> None:
    source = tmp_path / "source"
    names = ["ascend_compat", "matrix", "schema", "runners", "pyproject.toml", "README.md", "LICENSE"]
    for name in names:
        place = ROOT / name
        if place.is_dir():
            shutil.copytree(place, source / name, ignore=shutil.ignore_patterns("__pycache__", ".venv*"))
        else:
            source.mkdir(exist_ok=True)
            shutil.copy(place, source / name)
    run([sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(source)], tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    shutil.rmtree(source)
    run([sys.executable, "-m", "venv", str(tmp_path / "env")], tmp_path)
    python = tmp_path / "env" / "bin" / "python"
    constraints = ROOT / "constraints.txt"
    run([str(python), "-m", "pip", "install", "--quiet", "-c", str(constraints), str(wheel)], tmp_path)
    shutil.copy(ROOT / "docs" / "examples" / "af-llamafactory-lora-qwen2-1.5b.yaml", tmp_path / "job.yaml")
    done = run([str(tmp_path / "env" / "bin" / "ascend-compat"), "check", "job.yaml"], tmp_path, expected=1)
    assert "AscendFactory 6.5.906 does not support LoRA for Qwen2-1.5B in LLaMA-Factory." in done.stdout
    where = run([str(python), "-c", "import ascend_compat.resources as r; print(r.data_root())"], tmp_path)
    assert str(tmp_path / "env") in where.stdout


def run(arguments: list[str], cwd: Path, expected: int = 0) -> subprocess.CompletedProcess[str]:
    surroundings = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "ASCEND_COMPAT"))
    }
    surroundings |= {"LC_ALL": "C.UTF-8", "ASCEND_COMPAT_CACHE": str(cwd / "cache")}
    done = subprocess.run(
        arguments, cwd=cwd, env=surroundings, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == expected, done.stdout + done.stderr
    return done
