"""A process that may read what it was given and compute: everything else that Python can be seen doing is told of.

Used in children of the tests only: an audit hook cannot be taken out again.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

MEMORY = 256 * 1024 * 1024
# seconds of this process' own time, many times what one input takes: a hang, not a slow machine
CPU_ONE, CPU_ALL = 10, 540
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_REFUSED = (
    "subprocess.", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "pty.", "socket.", "os.remove", "os.rename",
    "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown", "os.utime", "os.putenv",
    "os.unsetenv", "shutil.", "tempfile.", "urllib.", "http.", "ftplib.", "webbrowser.", "ctypes.", "pickle.",
)  # fmt: skip


class Forbidden(BaseException):
    """Something was done that reading a file never needs."""


class Hang(BaseException):
    """One input took far too long."""


class Guard:
    """Watches this process from :meth:`arm` on, while :meth:`watching`."""

    def __init__(self, readable: Sequence[Path], writable: Sequence[Path] = ()) -> None:
        roots = [*readable, *writable, Path(sys.prefix), Path(sys.base_prefix)]
        self.readable = tuple(os.path.realpath(root) for root in roots)
        self.writable = tuple(os.path.realpath(root) for root in writable)
        self.seen: list[str] = []
        self.inside = False

    def arm(self) -> None:
        """Set the limits and the hook; what is loaded already does not count as memory."""
        sys.dont_write_bytecode = True
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, resource.RLIM_INFINITY))
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_ALL, CPU_ALL + 1))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(signal.SIGVTALRM, self._hang)
        sys.addaudithook(self._hook)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Raises :class:`Forbidden` at the end, too, where what was done was caught on the way."""
        del self.seen[:]
        signal.setitimer(signal.ITIMER_VIRTUAL, CPU_ONE)
        self.inside = True
        try:
            yield
        finally:
            self.inside = False
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        if self.seen:
            raise Forbidden(self.seen[0])

    def _hang(self, *_: Any) -> None:
        raise Hang(f"more than {CPU_ONE} seconds")

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.inside:
            return
        wrong = event.startswith(_REFUSED) and not self._own(event, arguments)
        if event == "open" and not isinstance(arguments[0], int):
            path, flags = _real(arguments[0]), arguments[2] or 0
            wrong = not path.startswith(self.writable if flags & _WRITING else self.readable)
        elif event in ("os.listdir", "os.scandir") and not isinstance(arguments[0], int):
            wrong = not _real(arguments[0] or ".").startswith(self.readable)
        if wrong:
            self.seen.append(f"{event} {arguments!r:.300}")
            raise Forbidden(self.seen[-1])

    def _own(self, event: str, arguments: tuple[Any, ...]) -> bool:
        """Changing files in the folders that are to be written to."""
        paths = [one for one in arguments if isinstance(one, (str, bytes, os.PathLike))]
        if not self.writable or not event.startswith(("os.re", "os.mkdir")) or not paths:
            return False
        return all(_real(path).startswith(self.writable) for path in paths)


def _real(path: Any) -> str:
    return os.path.realpath(os.fsdecode(path))
