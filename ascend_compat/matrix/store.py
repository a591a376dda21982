"""The built database: found by the hash of its contents, built when missing, opened read-only and locked.

A build writes beside the final name and renames, so a reader sees a whole file or none. Of many processes that find none, one
builds under a lock file and the others wait for it. Where the cache cannot be written, a private copy serves this process.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ascend_compat.errors import DataError
from ascend_compat.matrix.documents import file_stats, recipe_stats
from ascend_compat.matrix.driver import ZERO_DIVISION, duckdb
from ascend_compat.resources import matrix_dir

if TYPE_CHECKING:
    from collections.abc import Iterator

_BUILDERS = ("documents.py", "tables.py", "normal.py", "macros.py", "predicates.py")
_LOCKED = {
    **ZERO_DIVISION,
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "lock_configuration": "true",
}
# what a document that is not as its schema wants it makes of a build
BUILD_ERRORS = (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError, duckdb.Error)
_ATTEMPTS = 5
_WAIT_SECONDS = 60.0
_RACY_NS = 2_000_000_000
_KEEP = 4
_STALE_SECONDS = 3600.0


class _ChangedError(Exception):
    """A document changed while it was read for a build."""


def connect() -> duckdb.DuckDBPyConnection:
    """A read-only connection to the database of the current matrix, which is built first where it is missing.

    The connection is locked: no file or network access, no extensions, no change of settings.
    Raises :class:`DataError` when the matrix cannot be read or built.
    """
    cache = cache_dir()
    for _ in range(_ATTEMPTS):
        with contextlib.suppress(_ChangedError):
            if cache is not None:
                with contextlib.suppress(OSError):
                    return _shared(cache)
            return _private()
    raise DataError("the matrix keeps changing while it is read")


def build(force: bool = False) -> Path:
    """The database file of the current matrix, built if missing or ``force``; raises :class:`DataError` without a cache."""
    cache = cache_dir()
    if cache is None:
        raise DataError("no cache directory: set ASCEND_COMPAT_CACHE to a writable folder")
    stats = _stats()
    content = content_hash(stats)
    path = cache / f"matrix-{content}.duckdb"
    try:
        cache.mkdir(parents=True, exist_ok=True)
        if force or not _is_whole(path, content):
            with _lock(cache, None):
                _build_file(path, content)
        _write_stamp(cache, stats, path)
    except _ChangedError:
        raise DataError("the matrix changed while it was read; run it again") from None
    except OSError as error:
        raise DataError(f"cannot build the database in {cache}: {error.strerror or error}") from error
    return path


def cache_dir() -> Path | None:
    """``ASCEND_COMPAT_CACHE``, else ``ascend-compat`` below XDG_CACHE_HOME or ~/.cache; None where there is no home."""
    named = os.environ.get("ASCEND_COMPAT_CACHE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    if base and Path(base).is_absolute():
        return Path(base) / "ascend-compat"
    home = os.environ.get("HOME")
    return Path(home) / ".cache" / "ascend-compat" if home else None


def content_hash(stats: list[tuple[str, int, int, int, int]] | None = None) -> str:
    """Hash of everything the database follows from: the documents, the code that builds it, and DuckDB's version."""
    import hashlib

    stats = stats if stats is not None else _stats()
    root = str(matrix_dir())
    digest = hashlib.blake2b(duckdb.__version__.encode(), digest_size=16)
    try:
        for path, *_ in stats:
            content = Path(path).read_bytes()
            name = os.path.relpath(path, root) if path.startswith(root) else Path(path).name
            digest.update(f"\n{name}\n{len(content)}\n".encode())
            digest.update(content)
    except OSError as error:
        raise DataError(f"{error.filename}: {error.strerror}") from error
    return digest.hexdigest()


def _stats() -> list[tuple[str, int, int, int, int]]:
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - hot path of every command
    found = []
    with os.scandir(here) as entries:
        for entry in entries:
            if entry.name in _BUILDERS or (entry.name.startswith("build") and entry.name.endswith(".py")):
                stat = entry.stat()
                found.append((entry.path, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino))
    found.sort()
    try:
        return found + recipe_stats() + file_stats(str(matrix_dir()))
    except OSError as error:
        raise DataError(f"{error.filename}: {error.strerror}") from error


def _shared(cache: Path) -> duckdb.DuckDBPyConnection:
    stats = _stats()
    path = _stamped(cache, stats)
    if path is not None:
        con = _open(path)
        if con is not None:
            return con
    content = content_hash(stats)
    path = cache / f"matrix-{content}.duckdb"
    if not _is_whole(path, content):
        damaged = path.exists()
        cache.mkdir(parents=True, exist_ok=True)
        with _lock(cache, None if damaged else path):
            if not _is_whole(path, content):
                if path.exists():
                    print(f"ascend-compat: the cached database {path} is damaged; building it again", file=sys.stderr)
                _build_file(path, content)
    con = _open(path)
    if con is None:
        raise OSError(f"cannot open {path}")
    with contextlib.suppress(OSError):
        _write_stamp(cache, stats, path)
    return con


def _open(path: Path) -> duckdb.DuckDBPyConnection | None:
    try:
        return duckdb.connect(str(path), read_only=True, config=dict(_LOCKED))
    except duckdb.Error:
        return None


def _is_whole(path: Path, content: str) -> bool:
    """Whether the file is a database of this content with every block readable (DuckDB checks a sum on each)."""
    if not path.exists():
        return False
    try:
        with duckdb.connect(str(path), read_only=True, config=dict(_LOCKED)) as con:
            if con.execute("SELECT value FROM meta WHERE key = 'content_hash'").fetchall() != [(content,)]:
                return False
            for (name,) in con.execute("SELECT table_name FROM duckdb_tables()").fetchall():
                con.execute(f'SELECT bit_xor(hash(t)) FROM "{name}" AS t').fetchall()
    except duckdb.Error:
        return False
    return True


def _build_file(path: Path, content: str) -> None:
    from ascend_compat.matrix.build import write_database
    from ascend_compat.matrix.documents import load_documents, without_collector

    temporary = path.with_name(f".{path.name}.{os.getpid()}.{time.monotonic_ns()}.tmp")
    try:
        documents = load_documents()
        if content_hash() != content:
            raise _ChangedError
        with without_collector():
            write_database(str(temporary), documents, content)
        descriptor = os.open(temporary, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.replace(path)
    except (duckdb.IOException, duckdb.TransactionException, duckdb.FatalException) as error:
        raise OSError(" ".join(str(error).split())) from error
    except BUILD_ERRORS as error:
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise DataError(
            f"a document is not as its schema wants it ({what}); find it with: ascend-compat matrix lint"
        ) from error
    finally:
        for left in (temporary, temporary.with_name(temporary.name + ".wal")):
            with contextlib.suppress(OSError):
                left.unlink()
    _clean(path)


def _clean(newest: Path) -> None:
    """Keep the newest few databases; remove what a killed build left, once it is old enough to be no one's."""
    with contextlib.suppress(OSError):
        found = sorted(((file.stat().st_mtime, file) for file in newest.parent.iterdir()), reverse=True)
        whole = [item for item in found if item[1].name.startswith("matrix-") and item[1].suffix == ".duckdb"]
        left = [item for item in found if item[1].name.startswith(".") and ".tmp" in item[1].suffixes]
        for changed, file in [*whole[_KEEP:], *left]:
            if time.time() - changed > _STALE_SECONDS and file != newest:
                file.unlink()


@contextlib.contextmanager
def _lock(cache: Path, ready: Path | None) -> Iterator[None]:
    """Hold the build lock, or go on without it: as soon as ``ready`` exists, or when waiting took too long."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    with (cache / "build.lock").open("a") as file:
        deadline = time.monotonic() + _WAIT_SECONDS
        pause = 0.01
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if (ready is not None and ready.exists()) or time.monotonic() > deadline:
                    break
                time.sleep(pause)
                pause = min(pause * 1.5, 0.2)
            except OSError:
                break
        yield


def _private() -> duckdb.DuckDBPyConnection:
    """A database of this process alone: in a temporary folder, removed at once (the open file lives on), else in memory."""
    import shutil
    import tempfile

    content = content_hash()
    folder: Path | None = None
    try:
        folder = Path(tempfile.mkdtemp(prefix="ascend-compat-"))
        _build_file(folder / "matrix.duckdb", content)
        return duckdb.connect(str(folder / "matrix.duckdb"), read_only=True, config=dict(_LOCKED))
    except OSError:
        from ascend_compat.matrix.build import fill
        from ascend_compat.matrix.documents import load_documents

        con = duckdb.connect()
        fill(con, load_documents(), content)
        for name, value in _LOCKED.items():
            con.execute(f"SET {name} = {value}")
        return con
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def _stamp_file(cache: Path, stats: list[tuple[str, int, int, int, int]]) -> Path:
    import zlib

    return cache / f"stamp-{zlib.crc32(os.fsencode(stats[-1][0])):08x}"


def _seal(path: Path) -> str:
    stat = path.stat()
    return f"{path.name} {stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns} {stat.st_ino}"


def _snapshot(stats: list[tuple[str, int, int, int, int]]) -> str:
    return f"{duckdb.__version__} {stats!r}"


def _stamped(cache: Path, stats: list[tuple[str, int, int, int, int]]) -> Path | None:
    """The database that was verified for files with exactly these stats, if itself untouched since."""
    try:
        seal, _, snapshot = (
            _stamp_file(cache, stats).read_text(encoding="utf-8", errors="surrogateescape").partition("\n")
        )
        path = cache / seal.split(" ", 1)[0]
        if snapshot == _snapshot(stats) and seal == _seal(path):
            return path
    except OSError:
        pass
    return None


def _write_stamp(cache: Path, stats: list[tuple[str, int, int, int, int]], path: Path) -> None:
    """Remember which database belongs to these files; not while a file is so fresh that a second edit could go unseen."""
    newest = max(max(modified, changed) for _, _, modified, changed, _ in stats)
    if time.time_ns() - newest < _RACY_NS:
        return
    stamp = _stamp_file(cache, stats)
    temporary = stamp.with_name(f".{stamp.name}.{os.getpid()}.tmp")
    text = f"{_seal(path)}\n{_snapshot(stats)}"
    temporary.write_text(text, encoding="utf-8", errors="surrogateescape")
    temporary.replace(stamp)
