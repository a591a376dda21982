"""One built matrix for the whole run, and the command line as a user meets it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from support import ROOT, Command


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache directory of this run's own, shared by its workers."""
    root = tmp_path_factory.getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        root = root.parent
    folder = root / "ascend-compat-cache"
    before = os.environ.get("ASCEND_COMPAT_CACHE")
    os.environ["ASCEND_COMPAT_CACHE"] = str(folder)
    yield folder
    if before is None:
        del os.environ["ASCEND_COMPAT_CACHE"]
    else:
        os.environ["ASCEND_COMPAT_CACHE"] = before


@pytest.fixture(scope="session")
def con(cache: Path) -> duckdb.DuckDBPyConnection:
    """A connection to the real matrix."""
    from ascend_compat.matrix.store import connect

    return connect()


@pytest.fixture(scope="session")
def command(cache: Path) -> Command:
    """Runs ``ascend-compat`` in its own process, in English unless told otherwise."""

    def run(
        *arguments: str, cwd: Path | None = None, stdin: str | None = None, **env: str
    ) -> subprocess.CompletedProcess[str]:
        surroundings = {
            **os.environ,
            "ASCEND_COMPAT_CACHE": str(cache),
            "LC_ALL": "C.UTF-8",
            "PYTHONPATH": str(ROOT),
            **env,
        }
        return subprocess.run(
            [sys.executable, "-m", "ascend_compat", *arguments],
            capture_output=True,
            text=True,
            encoding="utf-8",
            cwd=cwd or ROOT,
            env=surroundings,
            input=stdin,
            timeout=120,
            check=False,
        )

    return run
