"""The matrix as files: which documents there are, what they contain, and whether they changed."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ascend_compat.errors import DataError
from ascend_compat.resources import matrix_dir, runners_dir

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import yaml

_TAG = "tag:yaml.org,2002:"
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


def recipe_stats() -> list[tuple[str, int, int, int, int]]:
    """The same of every recipe; none where the data has no recipes."""
    folder = runners_dir() / "recipes"
    return file_stats(str(folder)) if folder.is_dir() else []


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
    root = root or matrix_dir()
    with without_collector():
        return [load_document(path, root) for path in document_files(root)]


@contextlib.contextmanager
def without_collector() -> Iterator[None]:
    """Garbage collection off while many objects are made and none dropped, which it would only slow down."""
    import gc

    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
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

    loader = yaml.CSafeLoader(text)
    try:
        node = loader.get_single_node()
        return None if node is None else _value(node, loader)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
    finally:
        loader.dispose()


def _value(node: yaml.Node, loader: yaml.CSafeLoader) -> Any:
    """What the safe loader constructs of a node; plain texts, lists and mappings, which are nearly all, at half its price."""
    tag, value = node.tag, node.value
    if tag == _TAG + "str":
        return value
    if tag == _TAG + "seq":
        return [_value(item, loader) for item in value]
    if tag == _TAG + "map" and not any(key.tag == _TAG + "merge" for key, _ in value):
        return {_value(key, loader): _value(item, loader) for key, item in value}
    return loader.construct_object(node, deep=True)
