"""Every name of torch.npu that the runners use is in the real torch-npu wheels, with the arguments used; nothing is imported."""

from __future__ import annotations

import ast
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from support import ROOT

LINES = ("2.1.0.post13", "2.5.1", "2.7.1", None)  # None: the newest
PLATFORMS = ("manylinux2014_x86_64", "manylinux_2_17_x86_64", "manylinux_2_28_x86_64")
SCRIPTS = sorted((ROOT / "runners").rglob("*.py"))


def used() -> dict[str, set[int]]:
    """``torch.npu.NAME(...)`` in the runners: names, with the numbers of arguments they are called with."""
    found: dict[str, set[int]] = {}
    for path in SCRIPTS:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("torch.npu."):
                assert not node.keywords
                found.setdefault(ast.unparse(node.func).removeprefix("torch.npu."), set()).add(len(node.args))
    # asked of a child process in one line of text
    found.setdefault("device_count", set()).add(0)
    return found


def wheel(version: str | None, folder: Path) -> Path:
    """The wheel of a release, downloaded and never installed."""
    wanted = f"torch-npu=={version}" if version else "torch-npu"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--only-binary=:all:", "--python-version", "3.10", "--dest", str(folder), wanted]
    command += [word for name in PLATFORMS for word in ("--platform", name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no wheel of {wanted} can be had here: {done.stderr.strip().splitlines()[-1][:160]}")
    (found,) = folder.glob("torch_npu-*.whl")
    return found


def functions(archive: zipfile.ZipFile, module: str) -> tuple[dict[str, tuple[int, int]], dict[str, str]]:
    """Functions of a module with the least and most arguments they take, and where other names come from."""
    defined, taken = {}, {}
    for node in ast.parse(archive.read(module)).body:
        if isinstance(node, ast.FunctionDef):
            most = 99 if node.args.vararg else len(node.args.args)
            defined[node.name] = (len(node.args.args) - len(node.args.defaults), most)
        elif isinstance(node, ast.ImportFrom) and node.module:
            place = (
                node.module.replace(".", "/") if not node.level else f"torch_npu/npu/{node.module.replace('.', '/')}"
            )
            taken.update({alias.asname or alias.name: f"{place}.py" for alias in node.names})
            if any(alias.name == "*" for alias in node.names):
                defined |= dict(functions(archive, f"{place}.py")[0].items())
    return defined, taken


@pytest.mark.parametrize("version", LINES)
def test_every_name_is_there(version: str | None, tmp_path: Path) -> None:
    names = used()
    assert {"set_device", "synchronize", "device_count", "max_memory_allocated"} <= names.keys()
    with zipfile.ZipFile(wheel(version, tmp_path)) as archive:
        defined, taken = functions(archive, "torch_npu/npu/__init__.py")
        for name, counts in names.items():
            if name not in defined:
                assert name in taken, f"torch.npu.{name}"
                defined[name] = functions(archive, taken[name])[0][name]
            least, most = defined[name]
            assert all(least <= count <= most for count in counts), f"torch.npu.{name}"
        sources = (archive.read(name) for name in archive.namelist() if name.endswith(".py"))
        assert any(b"register_backend(" in source and b"hccl" in source for source in sources)
