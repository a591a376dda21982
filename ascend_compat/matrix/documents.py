"""The matrix as files: which documents there are, what they contain, and whether they changed."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ascend_compat.errors import DataError
from ascend_compat.resources import matrix_dir

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SUFFIXES = (".yaml", ".json")


@dataclass(frozen=True, slots=True)
class Document:
    """One file of the matrix: its path below ``matrix/`` with forward slashes, its kind, and what it holds.

    The kind is the document's own ``kind:``; evidence has the kind ``evidence``.
    """

    path: str
    kind: str
    body: dict[str, Any]


def document_files(root: Path | None = None) -> list[Path]:
    """Every document below ``matrix/`` (or ``root``), in a stable order."""
    from pathlib import Path

    return [Path(entry.path) for entry in sorted(_walk(str(root or matrix_dir())), key=lambda entry: entry.path)]


def file_stats(root: str) -> list[tuple[str, int, int, int, int]]:
    """Path, size, modification and change time in nanoseconds and inode of every document below a folder, sorted."""
    stats = []
    for entry in _walk(root):
        stat = entry.stat()
        stats.append((entry.path, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino))
    return sorted(stats)


def _walk(folder: str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_dir():
                yield from _walk(entry.path)
            elif entry.name.endswith(_SUFFIXES):
                yield entry


def load_documents(root: Path | None = None) -> list[Document]:
    """Every document of the matrix, parsed; raises :class:`DataError` naming the file that cannot be."""
    import gc

    root = root or matrix_dir()
    collecting = gc.isenabled()
    gc.disable()
    try:
        return [load_document(path, root) for path in document_files(root)]
    finally:
        if collecting:
            gc.enable()


def load_document(path: Path, root: Path) -> Document:
    """One document; raises :class:`DataError` when it is not a YAML or JSON mapping with a kind."""
    name = path.relative_to(root).as_posix()
    try:
        text = path.read_text(encoding="utf-8")
        body = _parse(text, path.suffix)
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: {' '.join(str(error).split())}") from error
    if not isinstance(body, dict):
        raise DataError(f"{path}: not a mapping")
    kind = body.get("kind") or ("evidence" if name.startswith("evidence/") else None)
    if not isinstance(kind, str):
        raise DataError(f"{path}: no kind")
    return Document(name, kind, body)


def _parse(text: str, suffix: str) -> Any:
    if suffix == ".json":
        import json

        return json.loads(text)
    import yaml

    try:
        return yaml.load(text, Loader=yaml.CSafeLoader)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
