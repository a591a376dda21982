"""A table document as the YAML people review: one line a column, one line or a few a row."""

from __future__ import annotations

import re
from typing import Any

WIDTH = 150

_BARE = re.compile(r"[A-Za-z\u4e00-\u9fff][\w.\-/+ \u3001\uff08\uff09\u4e00-\u9fff]*")
_BARE_NUMBERED = re.compile(r"\d+\.\d+\.\d+[\w.\-]*|\d+[A-Za-df-wyz][\w.\-]*")
_RESERVED = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}
_MARKS = {"✅", "❌"}


def flow(value: Any) -> str:
    """A value in YAML's flow style, quoted only where a plain word would be read as something else."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{flow(key)}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(flow(item) for item in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return "null" if value is None else str(value)
    bare = _BARE.fullmatch(value) or _BARE_NUMBERED.fullmatch(value) or value in _MARKS
    if bare and value == value.strip() and value.lower() not in _RESERVED:
        return value
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def render(body: dict[str, Any]) -> str:
    """The whole document; reading the result back gives an equal one."""
    lines = []
    for key, value in body.items():
        if key in ("columns", "rows"):
            lines.append(f"{key}:")
            for entry in value:
                lines += _entry(entry)
        else:
            lines.append(f"{key}: {flow(value)}")
    return "\n".join(lines) + "\n"


def _entry(entry: dict[str, Any]) -> list[str]:
    parts = [f"{flow(key)}: {flow(value)}" for key, value in entry.items()]
    lines, line = [], "  - {"
    for number, part in enumerate(parts):
        piece = part + ("}" if number == len(parts) - 1 else ",")
        if len(line) + len(piece) > WIDTH and line.strip() not in ("- {", ""):
            lines.append(line.rstrip())
            line = "     "
        line += piece if line.endswith("{") else (" " + piece)
    return [*lines, line]
