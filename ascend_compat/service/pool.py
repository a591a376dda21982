"""The matrix as a service holds it: a few engines over one database, exchanged whole when the data changes."""

from __future__ import annotations

import contextlib
import queue
import threading
from typing import TYPE_CHECKING, TypeVar

from ascend_compat.check.engine import Engine
from ascend_compat.matrix import store

if TYPE_CHECKING:
    from collections.abc import Callable

    import duckdb

T = TypeVar("T")


class Generation:
    """One state of the matrix and the engines over it, one for each worker."""

    def __init__(self, con: duckdb.DuckDBPyConnection, workers: int) -> None:
        self.con = con
        ((content,),) = con.execute("SELECT value FROM meta WHERE key = 'content_hash'").fetchall()
        self.content: str = content
        self.engines: queue.SimpleQueue[Engine] = queue.SimpleQueue()
        for _ in range(workers):
            self.engines.put(Engine(con.cursor()))


class Pool:
    """Runs work on an engine of the newest generation; work that has begun keeps the one it began with."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._lock = threading.Lock()
        self._now = Generation(store.connect(), workers)

    @property
    def content(self) -> str:
        """Hash of the contents that answer now."""
        return self._now.content

    def run(self, work: Callable[[Engine], T], running: list[Engine] | None = None) -> T:
        """Call ``work`` with an engine no one else uses meanwhile; ``running`` is told which, so that it can be interrupted."""
        generation = self._now
        engine = generation.engines.get()
        try:
            if running is not None:
                running.append(engine)
            return work(engine)
        finally:
            if running is not None:
                running.clear()
            generation.engines.put(engine)

    def reload(self) -> bool:
        """Take in new data where there is some; the old keeps answering until the new is whole. Raises ``DataError``."""
        with self._lock:
            if store.content_hash() == self.content:
                return False
            self._now = Generation(store.connect(), self.workers)
            return True

    def close(self) -> None:
        """Close the database."""
        with contextlib.suppress(Exception):
            self._now.con.close()
