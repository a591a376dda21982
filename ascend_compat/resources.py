"""Where the shipped data lies: beside the package in a checkout, inside it in an installed wheel."""

from __future__ import annotations

import os
from pathlib import Path

from ascend_compat.errors import DataError

_PACKAGE = Path(__file__).resolve().parent


def data_root() -> Path:
    """Folder that holds ``matrix/``, ``schema/`` and ``runners/``.

    ``ASCEND_COMPAT_DATA`` names another one. Raises :class:`DataError` when no folder holds them.
    """
    named = os.environ.get("ASCEND_COMPAT_DATA")
    candidates = [Path(named)] if named else [_PACKAGE / "_data", _PACKAGE.parent]
    for candidate in candidates:
        if (candidate / "matrix").is_dir() and (candidate / "schema").is_dir():
            return candidate
    raise DataError(f"no matrix/ and schema/ folders in {' or '.join(map(str, candidates))}")


def matrix_dir() -> Path:
    """The reviewed YAML documents."""
    return data_root() / "matrix"


def schema_dir() -> Path:
    """The JSON Schemas, one a document kind."""
    return data_root() / "schema"


def runners_dir() -> Path:
    """The runner scripts and recipes."""
    return data_root() / "runners"
