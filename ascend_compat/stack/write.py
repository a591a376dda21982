"""A stack as a stack file that ``read_stack`` reads back, without user and host names."""

from __future__ import annotations

import os
import re
import socket
from typing import TYPE_CHECKING

from ascend_compat.stack.model import NUMBER_VALUES, TEXT_VALUES

if TYPE_CHECKING:
    from ascend_compat.stack.model import Stack

_NAMES = {"chip": "npu_type", "architecture": "os_arch"}
_ORDER = ("chip", "npu_count", "npu_memory_gib", "nodes")


def stack_text(stack: Stack) -> str:
    """The lines of a stack file: what is stated, what is absent, the environment, the packages."""
    lines = ["# written by ascend-compat doctor"]
    named = [*_ORDER, *(name for name in TEXT_VALUES if name not in _ORDER)]
    for name in named:
        if name in stack.values and (name in TEXT_VALUES or name in NUMBER_VALUES):
            lines.append(f"{_NAMES.get(name, name)}: {stack.values[name].value}")
    lines += [f"{name}: not installed" for name in sorted(stack.absent) if name in TEXT_VALUES]
    complete = [word for word, is_so in (("packages", stack.packages_complete), ("env", stack.env_complete)) if is_so]
    if complete:
        lines.append(f"listed_completely: {', '.join(complete)}")
    if stack.env:
        lines.append("# env")
        lines += [anonymous(f"{name}={stated.value}") for name, stated in sorted(stack.env.items())]
    if stack.packages:
        lines.append("# pip freeze")
        lines += [f"{name}=={stated.value}" for name, stated in sorted(stack.packages.items())]
    return "\n".join(lines) + "\n"


def anonymous(line: str) -> str:
    """A line with this user's home and name and this host's name replaced."""
    home = os.path.expanduser("~")  # noqa: PTH111 - text, not a path to open
    words = {home: "~"} if len(home) > 1 else {}
    user = os.environ.get("USER") or os.environ.get("LOGNAME") or ""
    for name, shown in ((user, "USER"), (socket.gethostname(), "HOST")):
        if name:
            words[name] = shown
    for name in sorted(words, key=len, reverse=True):
        line = re.sub(rf"(?<![A-Za-z0-9_-]){re.escape(name)}(?![A-Za-z0-9_-])", words[name], line)
    return line
