"""Where evidence lies: committed with the matrix, and the user's own."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ascend_compat.errors import UsageError
from ascend_compat.evidence.document import is_sealed, read
from ascend_compat.matrix.build_evidence import layers
from ascend_compat.resources import matrix_dir

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb


def own_dir() -> Path:
    """``ASCEND_COMPAT_EVIDENCE``, else ``ascend-compat/evidence`` below XDG_DATA_HOME or ~/.local/share.

    Raises :class:`UsageError` where there is no home.
    """
    named = os.environ.get("ASCEND_COMPAT_EVIDENCE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_DATA_HOME")
    if base and Path(base).is_absolute():
        return Path(base) / "ascend-compat" / "evidence"
    try:
        return Path.home() / ".local" / "share" / "ascend-compat" / "evidence"
    except RuntimeError:
        raise UsageError("there is no home directory: set ASCEND_COMPAT_EVIDENCE to a folder for evidence") from None


def runs_dir() -> Path:
    """Where runs keep their job files, logs and events: ``runs`` beside the user's own evidence."""
    return own_dir() / "runs"


def committed_dir() -> Path:
    """The evidence that is reviewed with the matrix."""
    return matrix_dir() / "evidence"


def files() -> list[Path]:
    """Every document, the committed ones first, each folder by name (that is, by time); without a home, only those."""
    own: list[Path] = []
    with contextlib.suppress(UsageError):
        own = sorted(own_dir().glob("*.json"))
    return [*sorted(committed_dir().glob("*.json")), *own]


def documents(whole: bool = True) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Every document that can be read; with ``whole`` only those nobody edited."""
    for path in files():
        try:
            body = read(path)
        except UsageError:
            continue
        if not whole or is_sealed(body):
            yield path, body


def layer(con: duckdb.DuckDBPyConnection) -> None:
    """Lay the user's own evidence over the committed one, for this connection. Edited documents speak for nothing."""
    committed = {path.name for path in committed_dir().glob("*.json")}
    own = [
        (str(path), json.dumps(body))
        for path, body in documents()
        if path.parent != committed_dir() and path.name not in committed
    ]
    layers(con, own)


def find(name: str) -> Path:
    """The file of a document, by path, id or the beginning of an id; raises :class:`UsageError` for none or several."""
    if Path(name).is_file():
        return Path(name)
    found = {path.name: path for path in files() if path.stem.startswith(name)}
    if len(found) == 1:
        return next(iter(found.values()))
    raise UsageError(f"{len(found)} documents are called {name!r}" if found else f"no evidence is called {name!r}")
