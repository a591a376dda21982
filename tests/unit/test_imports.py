"""What ``check`` loads: no heavy module, nothing of torch anywhere, and no more modules than its budget."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from ascend_compat.matrix.store import connect

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "ascend_compat"
EXAMPLES = ROOT / "docs" / "examples"
YAML, BASH = EXAMPLES / "llamafactory-lora-qwen2-1.5b.yaml", EXAMPLES / "mindspeed-llm-qwen2.5-7b-tp8.sh"
FORBIDDEN = {"polars", "jsonschema", "torch", "torch_npu", "sphinx", "numpy", "pandas", "pyarrow"}
# the package re-exports what check takes from the extension, and loads these to do so
OF_DUCKDB = {"duckdb", "importlib.metadata", "email", "socket", "zipfile"}
# own modules, and all that a bare interpreter has not loaded
BUDGET = {"yaml": (48, 170), "bash": (65, 200), "stack": (62, 230)}
SHOW = (
    "import sys\n"
    "before = set(sys.modules)\n"
    "from ascend_compat.cli.main import run\n"
    "try:\n    run()\n"
    "except SystemExit:\n    pass\n"
    "sys.stderr.write('\\n'.join(['LOADED', *sorted(set(sys.modules) - before)]))\n"
)


@pytest.fixture(scope="module", autouse=True)
def database() -> None:
    """Built beforehand, so that a build's modules are not counted."""
    connect().close()


def loaded(*arguments: str | Path) -> set[str]:
    done = subprocess.run([sys.executable, "-c", SHOW, *map(str, arguments)], capture_output=True, text=True, cwd=ROOT)
    assert "LOADED" in done.stderr and "internal error" not in done.stderr, done.stderr
    assert done.stdout
    return set(done.stderr.partition("LOADED\n")[2].split("\n"))


def over(modules: set[str], budget: tuple[int, int]) -> str | None:
    own = [name for name in modules if name.startswith("ascend_compat")]
    if len(own) <= budget[0] and len(modules) <= budget[1]:
        return None
    return f"{len(own)} own modules of {budget[0]}, {len(modules)} in all of {budget[1]}: {sorted(modules)}"


@pytest.mark.parametrize(("kind", "job"), [("yaml", YAML), ("bash", BASH)])
def test_a_check_loads_little(kind: str, job: Path) -> None:
    modules = loaded("check", job)
    assert not FORBIDDEN & modules
    assert "_duckdb" in modules
    assert not OF_DUCKDB & modules
    assert over(modules, BUDGET[kind]) is None


def test_a_check_on_a_stack_loads_little(tmp_path: Path) -> None:
    stack = tmp_path / "freeze.txt"
    stack.write_text("torch==2.5.1\ntorch-npu==2.5.1\n", encoding="utf-8")
    modules = loaded("check", YAML, "--stack", stack)
    assert not FORBIDDEN & modules
    assert over(modules, BUDGET["stack"]) is None


@pytest.mark.parametrize("argument", ["--version", "--help"])
def test_version_and_help_load_no_database(argument: str) -> None:
    modules = loaded(argument)
    assert not (FORBIDDEN | {"duckdb", "_duckdb", "yaml"}) & modules
    assert over(modules, (8, 110)) is None


def test_nothing_here_imports_torch() -> None:
    files = sorted(PACKAGE.rglob("*.py"))
    assert len(files) > 100
    found = []
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            found += [f"{file.name}: {name}" for name in names if name.split(".")[0] in ("torch", "torch_npu")]
    assert found == []
