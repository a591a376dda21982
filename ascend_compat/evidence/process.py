"""One runner process: started in its own session, followed by its events, ended as a whole."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

# what the runner itself takes to end its processes, and a little more
_GRACE = 15.0
_BLOCK = 65536


@dataclass(slots=True)
class Heard:
    """What a runner said: its first and last event, its steps, and its figures by name with their units."""

    start: dict[str, Any] = field(default_factory=dict)
    end: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, tuple[str, list[Any]]] = field(default_factory=dict)
    status: int = 0
    interrupted: bool = False

    def take(self, event: dict[str, Any]) -> None:
        """Keeps one event."""
        kind = event.get("event")
        if kind == "start":
            self.start = event
        elif kind == "end":
            self.end = event
        elif kind == "step":
            for name, unit in _STEP_UNITS.items():
                if event.get(name) is not None:
                    self.metrics.setdefault(name, (unit, []))[1].append(event[name])
        elif kind == "metric" and isinstance(event.get("name"), str):
            values = event.get("values")
            added = values if isinstance(values, list) else [event.get("value")]
            self.metrics.setdefault(event["name"], (str(event.get("unit") or ""), []))[1].extend(added)


_STEP_UNITS = {"loss": "nat/token", "seconds": "s", "tokens_per_second": "token/s", "memory_bytes": "byte"}


def follow(command: Sequence[str], log: Path, limit: float, progress: Callable[[dict[str, Any]], None]) -> Heard:
    """Run a runner to its end; ``progress`` gets every event as it comes.

    A runner gets the reading end of our pipe's other side: when this process is gone, it ends its run. Ctrl-C and SIGTERM
    here end the runner's whole group. ``limit`` (seconds) is for a runner that does not keep its own.
    """
    read_end, write_end = os.pipe()
    heard = Heard()
    with log.open("wb") as output, _stopping() as stopped:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=[write_end],
            env={**os.environ, "ASCEND_COMPAT_EVENTS": str(write_end)},
            start_new_session=True,
        )
        os.close(write_end)
        try:
            _listen(process, read_end, heard, limit, stopped, progress)
        finally:
            os.close(read_end)
            _end(process)
    heard.status = process.returncode
    heard.interrupted = bool(stopped)
    return heard


class _stopping(contextlib.AbstractContextManager["list[int]"]):
    """Remembers SIGINT, SIGTERM and SIGHUP instead of dying of them, so that the run is ended and its result written."""

    _SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def __enter__(self) -> list[int]:
        self.caught: list[int] = []
        self.before = {number: signal.getsignal(number) for number in self._SIGNALS}
        for number in self._SIGNALS:
            signal.signal(number, lambda received, _frame: self.caught.append(received))
        return self.caught

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)


def _listen(
    process: subprocess.Popen[bytes],
    read_end: int,
    heard: Heard,
    limit: float,
    stopped: list[int],
    progress: Callable[[dict[str, Any]], None],
) -> None:
    import time

    rest = b""
    deadline = time.monotonic() + limit + 2 * _GRACE
    asked = 0.0
    while True:
        ready = select.select([read_end], [], [], 0.2)[0]
        if ready:
            data = os.read(read_end, _BLOCK)
            if not data:
                return
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                with contextlib.suppress(ValueError):
                    event = json.loads(line)
                    if isinstance(event, dict):
                        heard.take(event)
                        progress(event)
            continue
        if process.poll() is not None:
            return
        moment = time.monotonic()
        if (stopped or moment > deadline) and not asked:
            asked = moment
            _signal(process, signal.SIGTERM)
        elif asked and moment > asked + _GRACE:
            return


def _end(process: subprocess.Popen[bytes]) -> None:
    """Wait for the runner; kill its whole group where it does not end, or left somebody behind."""
    try:
        process.wait(timeout=_GRACE)
    except subprocess.TimeoutExpired:
        _signal(process, signal.SIGKILL)
        process.wait()
    _signal(process, signal.SIGKILL)


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
