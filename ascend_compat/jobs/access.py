"""Whether readers may look for the files that a job names; a service that reads strangers' jobs says no."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_CLOSED: ContextVar[bool] = ContextVar("closed", default=False)


@contextmanager
def no_files() -> Iterator[None]:
    """Within it, in this thread or task, no reader finds any file beside a job: to it, none is there."""
    token = _CLOSED.set(True)
    try:
        yield
    finally:
        _CLOSED.reset(token)


def closed() -> bool:
    """Whether files are out of reach here."""
    return _CLOSED.get()
