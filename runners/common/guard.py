"""Stands between a runner and the framework's processes, so that none of them outlives the runner.

``guard.py STATUS_FD GRACE COMMAND...``: starts the command, waits for it, and for the end of its own standard input,
which the runner holds open. When either ends, every process below it is told to end, then made to: torchrun starts its
workers in sessions of their own, so a signal to one process group does not reach them. One JSON line goes to STATUS_FD.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36


def below(root: int) -> list[int]:
    """Process ids of everything started below ``root``, deepest last. Linux only; elsewhere empty."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir() if Path("/proc").is_dir() else ():
        if entry.name.isdigit():
            with suppress(OSError, ValueError, IndexError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    found: list[int] = []
    queue = [root]
    while queue:
        for child in children.get(queue.pop(0), []):
            found.append(child)
            queue.append(child)
    return found


def sweep(grace: float) -> int:
    """Ends everything below this process: SIGTERM, up to ``grace`` seconds, SIGKILL. Returns how many were left."""
    left = [pid for pid in below(os.getpid()) if not _gone(pid)]
    for pid in left:
        with suppress(OSError):
            os.kill(pid, signal.SIGTERM)
    until = time.monotonic() + grace
    while time.monotonic() < until and _alive():
        time.sleep(0.05)
    for _ in range(40):
        alive = _alive()
        if not alive:
            break
        for pid in alive:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    return len(left)


def _alive() -> list[int]:
    """What still runs below this process; the dead are reaped on the way."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    return [pid for pid in below(os.getpid()) if not _gone(pid)]


def _gone(pid: int) -> bool:
    with suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return True


def main(arguments: list[str]) -> int:
    """Runs the command; returns 0, since the command's own status goes to the status pipe."""
    status_fd, grace, command = int(arguments[0]), float(arguments[1]), arguments[2:]
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, close_fds=True, preexec_fn=_restore, start_new_session=True
        )
    except OSError as error:
        _report(status_fd, {"status": 127, "error": f"{command[0]}: {error.strerror}", "left": 0})
        return 0
    status: int | None = None
    while True:
        # the command is waited for without reaping the others, so that its own status is never lost
        with suppress(ChildProcessError):
            if os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                status = child.wait()
                break
        if select.select([0], [], [], 0.05)[0] and not os.read(0, 1):
            break
    left = sweep(0.5 if status is not None else grace)
    if status is None:
        status = child.returncode if child.returncode is not None else -int(signal.SIGTERM)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    _report(status_fd, {"status": status, "left": left, "peak_rss": peak})
    return 0


def _restore() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def _report(status_fd: int, fields: dict[str, object]) -> None:
    with suppress(OSError):
        os.write(status_fd, (json.dumps(fields) + "\n").encode())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
