"""Killed, out of space, without a cache, with the clock set back: the next start finds whole data, and says what it mends.

``FAULTS`` asks for more kills than the few that every run tries.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest
from trust_inputs import ROOT
from trust_kill import EVIDENCE

KILLS = int(os.environ.get("FAULTS", "5"))
# a matrix that is built in an instant
PRODUCT = """
kind: product
id: bundle
names: {en: Bundle, zh: 套件}
frameworks: [verl]
releases: [{id: "1.9", date: 2025-01-01, frameworks: {verl: {table: full, version: unknown}}}]
"""
TABLE = """
kind: table
product: bundle
release: "1.9"
source: {url: "https://example.com/table", date: 2025-01-01}
columns: [{id: grpo, framework: verl, heading: {en: GRPO, zh: GRPO}, features: [grpo], form: tick}]
rows:
"""
SMALL = 20_000  # bytes a file may have on the full disk


def surroundings(data: Path, cache: Path, **more: str) -> dict[str, str]:
    """The environment of a child."""
    return {
        **os.environ, "PYTHONPATH": str(ROOT), "ASCEND_COMPAT_DATA": str(data), "ASCEND_COMPAT_CACHE": str(cache), "LC_ALL": "C.UTF-8", **more,
    }  # fmt: skip


def work(what: str, moment: int, folder: Path, env: dict[str, str], limit: int | None = None) -> tuple[int, str]:
    """How a child ended that did ``what`` in ``folder`` until its ``moment``, and what it said."""

    def full_disk() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (SMALL, SMALL))

    run = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("trust_kill.py")), what, str(moment), str(folder)],
        capture_output=True, text=True, check=False, env=env, preexec_fn=full_disk if limit else None,
    )  # fmt: skip
    return run.returncode, run.stdout + run.stderr


def moments(acts: int, seed: str, kills: int = KILLS) -> Iterator[int]:
    """Every act where they are few, else some, by a fixed seed."""
    known = range(1, acts + 1)
    yield from known if acts <= kills else sorted(random.Random(seed).sample(known, kills))


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Data of one product with one long table."""
    data = tmp_path / "data"
    (data / "schema").mkdir(parents=True)
    products = data / "matrix" / "products"
    products.mkdir(parents=True)
    (products / "product.yaml").write_text(PRODUCT, encoding="utf-8")
    lines = [f"  - {{label: M{number}, models: [m{number}], verl: supported}}\n" for number in range(500)]
    (products / "1.9.yaml").write_text(TABLE + "".join(lines), encoding="utf-8")
    return data


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    """The real matrix with few documents: one product, its oldest table, the models and features."""
    data = tmp_path / "data"
    shutil.copytree(ROOT / "schema", data / "schema")
    for name in ("models", "frameworks"):
        shutil.copytree(
            ROOT / "matrix" / name,
            data / "matrix" / name,
            ignore=shutil.ignore_patterns("keys", "templates", "layouts"),
        )
    product = data / "matrix" / "products" / "ascendfactory"
    product.mkdir(parents=True)
    for name in ("product.yaml", "6.5.902.yaml"):
        shutil.copy(ROOT / "matrix" / "products" / "ascendfactory" / name, product)
    return data


def rows(database: Path) -> int:
    """Claims in a database file."""
    with duckdb.connect(str(database), read_only=True) as con:
        return int(con.execute("SELECT count(*) FROM claim").fetchall()[0][0])


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_killed_build_leaves_no_half_database(small: Path, tmp_path: Path) -> None:
    began = time.monotonic()
    code, said = work("build", 0, tmp_path, surroundings(small, tmp_path / "whole"))
    lasted = time.monotonic() - began
    assert code == 0, said
    (whole,) = (tmp_path / "whole").glob("matrix-*.duckdb")
    expected = rows(whole)
    assert expected == 500
    killed = 0
    env = surroundings(small, tmp_path / "cache")
    chance = random.Random(9)
    for number in range(KILLS):
        child = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("trust_kill.py")), "build", "0", str(tmp_path)],
            env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        time.sleep(lasted * chance.uniform(0.3, 1.0))
        child.send_signal(signal.SIGKILL)
        killed += child.wait() == -signal.SIGKILL
        for database in (tmp_path / "cache").glob("matrix-*.duckdb"):
            assert rows(database) == expected
        if number % 3 == 2:
            assert work("build", 0, tmp_path, env)[0] == 0
            (database,) = (tmp_path / "cache").glob("matrix-*.duckdb")
            assert rows(database) == expected
            database.unlink()
    assert killed > 0
    for moment in moments(int(said), "build"):
        shutil.rmtree(tmp_path / "cache", ignore_errors=True)
        code, _ = work("build", moment, tmp_path, env)
        assert code == -signal.SIGKILL
        assert work("build", 0, tmp_path, env)[0] == 0
        (database,) = (tmp_path / "cache").glob("matrix-*.duckdb")
        assert rows(database) == expected


def test_killed_evidence_is_the_old_document_or_the_new(tmp_path: Path) -> None:
    from ascend_compat.evidence.document import is_sealed, read, sealed, write

    env = surroundings(ROOT, tmp_path / "cache")
    old = sealed({**EVIDENCE, "values": []})
    seen = set()
    code, said = work("evidence", 0, tmp_path, env)
    assert code == 0, said
    for moment in moments(int(said), "evidence"):
        path = write(tmp_path / "evidence", old)
        code, _ = work("evidence", moment, tmp_path, env)
        assert code == -signal.SIGKILL
        body = read(path)
        assert is_sealed(body)
        seen.add(len(body["values"]))
        assert list((tmp_path / "evidence").glob("*.json")) == [path]
        assert work("evidence", 0, tmp_path, env)[0] == 0
        assert read(path) == sealed(EVIDENCE)
    assert seen == {0, len(EVIDENCE["values"])}


def test_a_killed_import_is_mended_by_the_next(registry: Path, tmp_path: Path) -> None:
    from ascend_compat.matrix.documents import load_documents

    product = registry / "matrix" / "products" / "ascendfactory"
    before = tree(product)
    env = surroundings(registry, tmp_path / "cache")
    page = answer(env, "matrix", "render", "--product", "ascendfactory", "--release", "6.5.902")
    assert page.returncode == 0, page.stderr
    (tmp_path / "page.tsv").write_text(page.stdout, encoding="utf-8")
    code, said = work("import", 0, tmp_path, env)
    assert code == 0, said
    after = tree(product)
    assert set(after) - set(before) == {"9.9.9.yaml"}
    killed = []
    for moment in moments(int(said), "import"):
        for name in after:
            (product / name).unlink(missing_ok=True)
        for name, text in before.items():
            (product / name).write_bytes(text)
        killed.append(work("import", moment, tmp_path, env)[0] == -signal.SIGKILL)
        found = {name: text for name, text in tree(product).items() if not name.startswith(".")}
        assert all(text in (before.get(name), after.get(name)) for name, text in found.items())
        assert len(load_documents(registry / "matrix")) > 10
        code, said = work("import", 0, tmp_path, env)
        assert code == 0, said
        assert {name: text for name, text in tree(product).items() if not name.startswith(".")} == after
    assert sum(killed) > len(killed) // 2


def test_killed_documentation_is_made_whole_by_the_next(cache: Path, tmp_path: Path) -> None:
    env = surroundings(ROOT, cache)
    for folder in ("first", "whole"):  # the first may write to the cache, too
        code, said = work("docs", 0, tmp_path / folder, env)
        assert code == 0, said
    whole = tree(tmp_path / "whole" / "site")
    assert len(whole) > 20
    killed = []
    for moment in moments(int(said.split()[-1]), "docs", KILLS // 2):
        killed.append(work("docs", moment, tmp_path, env)[0] == -signal.SIGKILL)
        found = {name: text for name, text in tree(tmp_path / "site").items() if not name.endswith(".part")}
        assert all(whole[name] == text for name, text in found.items())
    assert work("docs", 0, tmp_path, env)[0] == 0
    assert tree(tmp_path / "site") == whole
    assert any(killed)


def test_a_full_disk_is_told_of_and_leaves_nothing_half(small: Path, tmp_path: Path) -> None:
    env = surroundings(small, tmp_path / "cache")
    code, said = work("evidence", 0, tmp_path, env, limit=SMALL)
    assert code == 1 and "DataError: cannot write" in said.splitlines()[-1]
    assert list((tmp_path / "evidence").iterdir()) == []
    code, said = work("build", 0, tmp_path, env, limit=SMALL)
    assert code == 1 and "DataError: cannot build the database" in said.splitlines()[-1]
    assert list((tmp_path / "cache").glob("*.duckdb")) == []


def answer(env: dict[str, str], *arguments: str, full: bool = False) -> subprocess.CompletedProcess[str]:
    """The command line in a process."""

    def full_disk() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (SMALL, SMALL))

    return subprocess.run(
        [sys.executable, "-m", "ascend_compat", *arguments],
        capture_output=True, text=True, check=False, env=env, cwd=ROOT, preexec_fn=full_disk if full else None,
    )  # fmt: skip


def test_without_room_for_a_database_the_answer_is_the_same(small: Path, tmp_path: Path) -> None:
    asked = ("sql", "SELECT model, status FROM claim ORDER BY model")
    usual = answer(surroundings(small, tmp_path / "usual"), *asked)
    assert usual.stdout.count("supported") == 500
    full = answer(surroundings(small, tmp_path / "cache"), *asked, full=True)
    unwritable = answer(surroundings(small, Path("/proc/none")), *asked)
    for other in (full, unwritable):
        assert (other.returncode, other.stdout, other.stderr) == (0, usual.stdout, "")


def test_a_corrupt_database_is_rebuilt_and_said(small: Path, tmp_path: Path) -> None:
    env = surroundings(small, tmp_path / "cache")
    usual = answer(env, "list", "products")
    assert usual.returncode == 0, usual.stderr
    (database,) = (tmp_path / "cache").glob("matrix-*.duckdb")
    whole = database.read_bytes()
    for damage in (b"", whole[: len(whole) // 2], whole[:8192] + bytes(len(whole) - 8192), os.urandom(4096)):
        database.write_bytes(damage)
        mended = answer(env, "list", "products")
        assert (mended.returncode, mended.stdout) == (0, usual.stdout)
        assert "damaged; building it again" in mended.stderr and mended.stderr.count("\n") == 1
    assert answer(env, "list", "products").stderr == ""


def test_two_versions_share_a_cache(small: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(ROOT / "ascend_compat", other / "ascend_compat", ignore=shutil.ignore_patterns("__pycache__"))
    changed = other / "ascend_compat" / "matrix" / "build.py"
    changed.write_text(changed.read_text(encoding="utf-8") + "\n# another version\n", encoding="utf-8")
    here = surroundings(small, tmp_path / "cache")
    there = {**here, "PYTHONPATH": str(other)}
    for env in (here, there, here, there):
        run = subprocess.run(
            [sys.executable, "-m", "ascend_compat", "list", "products"], capture_output=True, text=True, check=False, env=env, cwd=tmp_path
        )  # fmt: skip
        assert (run.returncode, run.stderr) == (0, "")
    files = list((tmp_path / "cache").glob("matrix-*.duckdb"))
    assert len(files) == 2
    assert rows(files[0]) == rows(files[1])


def test_a_clock_set_back_hides_no_change(small: Path, tmp_path: Path) -> None:
    """Files and caches from the future, as they look once a clock is set back."""
    env = surroundings(small, tmp_path / "cache")
    future = time.time() + 10 * 365 * 86_400
    page = small / "matrix" / "products" / "product.yaml"

    def everything_from_the_future() -> None:
        for path in [*small.rglob("*"), *(tmp_path / "cache").glob("*")]:
            os.utime(path, (future, future))

    everything_from_the_future()
    before = answer(env, "list", "products", "--format", "json")
    everything_from_the_future()
    assert answer(env, "list", "products", "--format", "json").stdout == before.stdout
    text = page.read_text(encoding="utf-8")
    assert "zh: " in text
    page.write_text(text.replace("en: Bundle", "en: Bundlf"), encoding="utf-8")
    os.utime(page, (future, future))
    after = answer(env, "list", "products", "--format", "json")
    assert json.loads(after.stdout) != json.loads(before.stdout)
    assert "Bundlf" in after.stdout


def test_the_guarded_fault_is_a_fault(tmp_path: Path, command: Callable[..., object]) -> None:
    """A kill in the middle of a plain write does leave half a file: what the tests above look for can happen."""
    script = "import os, signal\nf = open('half', 'w')\n[f.write('x' * 100) for _ in range(1000)]\nos.kill(os.getpid(), signal.SIGKILL)\n"
    run = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=False)
    assert run.returncode == -signal.SIGKILL
    assert (tmp_path / "half").stat().st_size < 100_000
