"""Options that several commands share, and what the surroundings say where an option is not given."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    F = TypeVar("F", bound="Callable[..., Any]")


def language_option(function: F) -> F:
    """``--lang``; without it the locale decides."""
    return click.option(
        "--lang", type=click.Choice(["en", "zh"]), default=None, help="Language of messages (default: from the locale)."
    )(function)


def language(chosen: str | None) -> str:
    """The language asked for, else ``ASCEND_COMPAT_LANG``, else that of LC_ALL, LC_MESSAGES or LANG."""
    if chosen:
        return chosen
    for name in ("ASCEND_COMPAT_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        value = os.environ.get(name)
        if value:
            return "zh" if value.lower().startswith("zh") else "en"
    return "en"


def wants_colour(choice: str) -> bool:
    """Whether to colour stdout: ``always``, ``never``, or ``auto`` (a terminal, and NO_COLOR not set)."""
    if choice == "auto":
        return sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    return choice == "always"


def write(text: str) -> None:
    """Print UTF-8 whatever the locale says, so that Chinese output survives the C locale."""
    stream = sys.stdout.buffer
    stream.write(text.encode("utf-8", "surrogateescape"))
    stream.write(b"\n")
    stream.flush()
