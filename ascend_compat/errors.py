"""Errors a user can cause; each carries the exit code of the process it ends."""

from __future__ import annotations


class CompatError(Exception):
    """A sentence for the user, and the exit code that goes with it."""

    exit_code = 3


class UsageError(CompatError):
    """Wrong arguments, unknown names, unreadable input."""

    exit_code = 2


class DataError(CompatError):
    """The matrix itself is not there, not valid or not buildable."""

    exit_code = 3
