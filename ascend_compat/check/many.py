"""Thousands of job files: checked in processes, reported in order, a bounded number of files held at once."""

from __future__ import annotations

import os
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from ascend_compat.check.finding import Report

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from concurrent.futures import Future

    import duckdb

    from ascend_compat.check.engine import Engine, Options
    from ascend_compat.jobs.read import FileRead

WORTHWHILE = 200
_CHUNK = 40
_AHEAD = 3
_engine: Engine | None = None


class Listed(NamedTuple):
    """A file, and the directory it was found below; one that was named itself has none."""

    path: str
    folder: str | None


def processors() -> int:
    """Processors this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def reports_of(engine: Engine, reads: Iterable[FileRead], options: Options) -> list[Report]:
    """One report a launch found, and one a file that could not be read."""
    pending: list[object] = []
    launches = []
    for read in reads:
        if read.error is not None:
            finding = engine.problem(read.error)
            pending.append(Report(read.file, None, None, None, None, None, "unreadable", [finding]))
        pending.extend(read.launches)
        launches.extend(read.launches)
    checked = iter(engine.check(launches, options))
    return [item if isinstance(item, Report) else next(checked) for item in pending]


def listed(paths: Sequence[str], recursive: bool) -> list[Listed]:
    """Every file to read; none where something needs this process: standard input, or a directory that holds nothing."""
    from ascend_compat.jobs.read import files_below

    files: list[Listed] = []
    for path in paths:
        if path == "-":
            return []
        if os.path.isdir(path):  # noqa: PTH112 - thousands of files
            below = [Listed(name, path) for name in files_below(path)] if recursive else []
            if not below:
                return []
            files += below
        else:
            files.append(Listed(path, None))
    return files


def check_in_processes(
    con: duckdb.DuckDBPyConnection, files: Sequence[Listed], framework: str | None, options: Options, processes: int
) -> Iterator[Report]:
    """Reports of files in the order given; a directory in which no file is a job is told of last."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    from ascend_compat.check.engine import Engine
    from ascend_compat.jobs.read import read_paths

    chunks = (files[start : start + _CHUNK] for start in range(0, len(files), _CHUNK))
    running: deque[tuple[Sequence[Listed], Future[list[Report]]]] = deque()
    empty = {file.folder: None for file in files if file.folder is not None}

    def finished() -> list[Report]:
        chunk, future = running.popleft()
        reports = future.result()
        named = {report.file for report in reports}
        for file in chunk:
            if file.path in named:
                empty.pop(str(file.folder), None)
        return reports

    with ProcessPoolExecutor(processes, get_context("spawn"), _open) as pool:
        for chunk in chunks:
            running.append((chunk, pool.submit(_check, chunk, framework, options)))
            if len(running) >= processes * _AHEAD:
                yield from finished()
        while running:
            yield from finished()
    if empty:
        yield from reports_of(Engine(con), read_paths(empty, framework=framework, recursive=True), options)


def _open() -> None:
    global _engine
    from ascend_compat.check.engine import Engine
    from ascend_compat.matrix.store import connect

    _engine = Engine(connect())


def _check(files: Sequence[Listed], framework: str | None, options: Options) -> list[Report]:
    from ascend_compat.jobs.read import read_file, read_found

    assert _engine is not None
    found = (
        read_file(file.path, framework=framework) if file.folder is None else read_found(file.path, framework)
        for file in files
    )
    return reports_of(_engine, (read for read in found if read is not None), options)
