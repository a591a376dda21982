"""A command that names a job file -> the launch with that file's settings under the command's own."""

from __future__ import annotations

from pathlib import Path

from ascend_compat.jobs.model import Launch


def expand(launch: Launch, root: Path) -> Launch:
    return launch
