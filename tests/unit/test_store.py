"""The database file: built once, found again, rebuilt when damaged, never seen half built."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest

from ascend_compat.errors import DataError
from ascend_compat.matrix import store

REPOSITORY = Path(__file__).resolve().parents[2]

PRODUCT = """
kind: product
id: bundle
names: {en: Bundle, zh: 套件}
frameworks: [verl]
releases:
  - {id: "1.9", date: 2025-01-01, frameworks: {verl: {table: full, version: unknown}}}
  - {id: "1.10", date: 2025-02-01, aliases: [v1.10.0], frameworks: {verl: {table: full, version: unknown}}}
"""
TABLE = """
kind: table
product: bundle
release: "1.9"
source: {url: "https://example.com/table", date: 2025-01-01}
columns:
  - {id: grpo, framework: verl, heading: {en: GRPO, zh: GRPO}, features: [grpo], form: tick}
  - {id: how, framework: verl, heading: {en: How, zh: 方式}, features: [full, lora], form: methods, texts: {Full: {features: [full]}}}
rows:
  - {label: A and B, models: [a, b], verl: unsupported}
  - {label: C, models: [c], verl: {grpo: {status: partial, condition: {en: one node, zh: 单机}}, how: Full}}
"""


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A matrix of one product with one table, old enough to be trusted unread, and an empty cache."""
    folder = tmp_path / "data"
    (folder / "schema").mkdir(parents=True)
    products = folder / "matrix" / "products"
    products.mkdir(parents=True)
    (products / "product.yaml").write_text(PRODUCT, encoding="utf-8")
    (products / "1.9.yaml").write_text(TABLE, encoding="utf-8")
    monkeypatch.setenv("ASCEND_COMPAT_DATA", str(folder))
    monkeypatch.setenv("ASCEND_COMPAT_CACHE", str(tmp_path / "cache"))
    return folder


def databases(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "cache").glob("matrix-*.duckdb"))


def rows(con: duckdb.DuckDBPyConnection, sql: str) -> list[tuple]:
    return con.execute(sql).fetchall()


def test_cells_and_claims_say_what_the_document_says(root):
    with store.connect() as con:
        cells = rows(con, 'SELECT model, "column", status, condition, condition_zh, text, label FROM cell ORDER BY ALL')
        claims = rows(con, "SELECT model, feature, status, condition FROM claim ORDER BY ALL")
    assert cells == [
        ("a", "grpo", "unsupported", None, None, None, "A and B"),
        ("a", "how", "unsupported", None, None, None, "A and B"),
        ("b", "grpo", "unsupported", None, None, None, "A and B"),
        ("b", "how", "unsupported", None, None, None, "A and B"),
        ("c", "grpo", "partial", "one node", "单机", None, "C"),
        ("c", "how", "supported", None, None, "Full", "C"),
    ]
    assert [row for row in claims if row[0] == "c"] == [
        ("c", "full", "supported", None),
        ("c", "grpo", "partial", "one node"),
        ("c", "lora", "unsupported", None),
    ]
    assert len(claims) == 9


def test_releases_are_ordered_by_their_place(root):
    with store.connect() as con:
        assert rows(con, "SELECT release, ordinal FROM release ORDER BY ordinal") == [("1.9", 0), ("1.10", 1)]


def test_second_connect_builds_nothing(root, tmp_path, monkeypatch):
    store.connect().close()
    monkeypatch.setattr(store, "_build_file", lambda *_: pytest.fail("built again"))
    store.connect().close()
    assert len(databases(tmp_path)) == 1


def test_untouched_files_are_not_even_read(root, monkeypatch):
    monkeypatch.setattr(store, "_RACY_NS", -(10**18))
    store.connect().close()
    monkeypatch.setattr(store, "content_hash", lambda *_: pytest.fail("contents were read"))
    store.connect().close()


def test_a_file_changed_just_now_is_read_again(root, monkeypatch):
    monkeypatch.setattr(store, "_RACY_NS", 10**18)
    store.connect().close()
    hashed = []
    whole = store.content_hash
    monkeypatch.setattr(store, "content_hash", lambda *stats: hashed.append(1) or whole(*stats))
    store.connect().close()
    assert hashed == [1]


def test_same_size_and_same_time_but_other_content_is_seen(root, tmp_path, monkeypatch):
    monkeypatch.setattr(store, "_RACY_NS", -(10**18))
    store.connect().close()
    path = root / "matrix" / "products" / "1.9.yaml"
    before = path.stat()
    path.write_text(TABLE.replace("one node, zh: 单机", "one rack, zh: 单机"), encoding="utf-8")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    with store.connect() as con:
        assert ("one rack",) in rows(con, "SELECT condition FROM claim")
    assert len(databases(tmp_path)) == 2


def test_new_and_removed_documents_are_seen(root):
    store.connect().close()
    extra = root / "matrix" / "products" / "1.10.yaml"
    extra.write_text(TABLE.replace('"1.9"', '"1.10"'), encoding="utf-8")
    with store.connect() as con:
        assert rows(con, "SELECT count(*) FROM cell") == [(12,)]
    extra.unlink()
    with store.connect() as con:
        assert rows(con, "SELECT count(*) FROM cell") == [(6,)]


def test_a_document_that_changes_during_a_build_does_not_get_the_old_name(root, tmp_path, monkeypatch):
    from ascend_compat.matrix import documents

    load = documents.load_documents
    path = root / "matrix" / "products" / "1.9.yaml"

    def meddle():
        loaded = load()
        monkeypatch.setattr(documents, "load_documents", load)
        path.write_text(TABLE.replace("one node", "two nodes"), encoding="utf-8")
        return loaded

    monkeypatch.setattr(documents, "load_documents", meddle)
    with store.connect() as con:
        assert ("two nodes",) in rows(con, "SELECT condition FROM claim")
    assert len(databases(tmp_path)) == 1


def test_hash_is_in_name_and_inside(root, tmp_path):
    path = store.build()
    assert path == databases(tmp_path)[0]
    with store.connect() as con:
        (inside,) = rows(con, "SELECT value FROM meta WHERE key = 'content_hash'")[0]
    assert path.name == f"matrix-{inside}.duckdb"


@pytest.mark.parametrize("damage", ["empty", "text", "truncated", "flipped"])
def test_damaged_database_is_rebuilt_and_said(root, capsys, damage):
    path = store.build()
    content = bytearray(path.read_bytes())
    if damage == "empty":
        content = bytearray()
    elif damage == "text":
        content = bytearray(b"not a database")
    elif damage == "truncated":
        content = content[: len(content) // 2]
    else:
        for at in range(4096 * 4, len(content), 997):
            content[at] ^= 0xFF
    path.write_bytes(content)
    with store.connect() as con:
        assert rows(con, "SELECT count(*) FROM claim") == [(9,)]
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "damaged" in error and str(path) in error
    store.connect().close()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("cache", ["a file", "not creatable", "no home"])
def test_without_a_usable_cache_it_still_answers(root, tmp_path, monkeypatch, cache):
    if cache == "no home":
        for name in ("ASCEND_COMPAT_CACHE", "XDG_CACHE_HOME", "HOME"):
            monkeypatch.delenv(name, raising=False)
        assert store.cache_dir() is None
    else:
        (tmp_path / "file").write_text("")
        place = tmp_path / "file" if cache == "a file" else tmp_path / "file" / "below"
        monkeypatch.setenv("ASCEND_COMPAT_CACHE", str(place))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    with store.connect() as con:
        assert rows(con, "SELECT count(*) FROM claim") == [(9,)]
        with pytest.raises(duckdb.Error):
            con.execute("DELETE FROM claim")
    assert list(scratch.iterdir()) == []


def test_read_only_cache_still_answers(root, tmp_path):
    (tmp_path / "cache").mkdir(mode=0o500)
    if os.access(tmp_path / "cache", os.W_OK):
        pytest.skip("this user writes everywhere")
    with store.connect() as con:
        assert rows(con, "SELECT count(*) FROM claim") == [(9,)]
    assert databases(tmp_path) == []


def test_nowhere_to_write_at_all(root, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ASCEND_COMPAT_CACHE", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    with store.connect() as con:
        assert rows(con, "SELECT count(*) FROM claim") == [(9,)]
        with pytest.raises(duckdb.Error):
            con.execute("SELECT * FROM read_text('/etc/hostname')")


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_text('/etc/hostname')",
        "SELECT * FROM '/etc/hostname'",
        "COPY claim TO 'claim.csv'",
        "ATTACH 'other.duckdb'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET lock_configuration = false",
        "DELETE FROM claim",
        "CREATE TABLE t (i INTEGER)",
        "SELECT * FROM local_variable",
    ],
)
def test_the_connection_is_locked(root, statement):
    local_variable = duckdb.connect().sql("SELECT 1")
    with store.connect() as con, pytest.raises(duckdb.Error):
        con.execute(statement)
    assert local_variable is not None


def test_unreadable_documents_are_one_sentence(root):
    (root / "matrix" / "bad.yaml").write_text("kind: [", encoding="utf-8")
    with pytest.raises(DataError, match=r"bad\.yaml: .*\S") as error:
        store.connect()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "text", ["kind: product\n", "kind: table\nproduct: bundle\nrelease: '1.9'\nrows: 3\n", "kind: codes\ncodes: [1]\n"]
)
def test_documents_of_a_wrong_shape_point_to_the_lint(root, text):
    (root / "matrix" / "bad.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match="matrix lint"):
        store.connect()


def test_tables_of_unknown_releases_are_refused(root):
    (root / "matrix" / "bad.yaml").write_text(TABLE.replace('"1.9"', '"3.0"'), encoding="utf-8")
    with pytest.raises(DataError, match=r"bad\.yaml: bundle has no release 3\.0"):
        store.connect()


def test_old_databases_go_the_newest_stay(root, tmp_path):
    cache = tmp_path / "cache"
    cache.mkdir()
    old = time.time() - 7200
    for number in range(8):
        path = cache / f"matrix-{number:032x}.duckdb"
        path.write_bytes(b"")
        os.utime(path, (old + number, old + number))
    left = cache / ".matrix-x.duckdb.1.1.tmp"
    left.write_bytes(b"")
    os.utime(left, (old, old))
    foreign = cache / "notes.txt"
    foreign.write_text("mine")
    os.utime(foreign, (old, old))
    built = store.build()
    kept = [path.name for path in databases(tmp_path)]
    assert built.name in kept
    assert len(kept) == 4
    assert f"matrix-{7:032x}.duckdb" in kept
    assert not left.exists()
    assert foreign.exists()


COUNT = (
    "from ascend_compat.matrix.store import connect; print(connect().execute('SELECT count(*) FROM claim').fetchall())"
)


def start(code: str = COUNT, **rest) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=pipe, stderr=pipe, text=True, **rest)


def test_many_processes_on_an_empty_cache_build_once_and_all_answer(root, tmp_path):
    traced = COUNT.replace(
        "import connect;",
        "import connect; from ascend_compat.matrix import store; build = store._build_file; "
        "store._build_file = lambda *a: (print('built'), build(*a));",
    )
    answers = [process.communicate(timeout=120) for process in [start(traced) for _ in range(24)]]
    assert all(errors == "" for _, errors in answers)
    assert [output.splitlines()[-1] for output, _ in answers] == ["[(9,)]"] * 24
    assert sum("built" in output for output, _ in answers) == 1
    assert len(databases(tmp_path)) == 1


def test_killed_in_the_middle_of_a_build(root, tmp_path):
    stuck = COUNT.replace(
        "import connect;",
        "import connect; import time; from ascend_compat.matrix import build; write = build.write_database; "
        "build.write_database = lambda *a: (write(*a), print('half', flush=True), time.sleep(60));",
    )
    process = start(stuck)
    assert process.stdout is not None
    assert process.stdout.readline() == "half\n"
    waiting = start()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    output, errors = waiting.communicate(timeout=60)
    assert (output, errors) == ("[(9,)]\n", "")
    assert len(databases(tmp_path)) == 1


def test_every_table_and_column_is_documented(root):
    page = (REPOSITORY / "docs" / "views.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^### (\w+)\n(.*?)(?=^##|\Z)", page, re.MULTILINE | re.DOTALL))
    with store.connect() as con:
        columns = rows(con, "SELECT table_name, column_name FROM duckdb_columns() WHERE NOT internal")
    tables = {table for table, _ in columns}
    assert tables == set(sections)
    assert len(tables) >= 18
    missing = [f"{table}.{column}" for table, column in columns if f"`{column}`" not in sections[table]]
    assert missing == []
