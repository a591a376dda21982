"""Kubernetes, Volcano, PyTorchJob and Ray manifests: the command of their containers and the devices they ask for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ascend_compat.jobs.bash_state import Variable
from ascend_compat.jobs.model import Launch, Setting
from ascend_compat.jobs.shell_text import Piece, Source, Word
from ascend_compat.jobs.yaml_tree import Document, Node

_COUNT = re.compile(r"[0-9]{1,9}")
_DEVICE = re.compile(r"huawei\.com/(?:Ascend|npu)[\w.-]*|nvidia\.com/gpu", re.IGNORECASE)
_MAX_CONTAINERS = 64


@dataclass(slots=True)
class _Container:
    node: Node
    replicas: Node | None


def read_manifest(document: Document, beside: Path | None) -> list[Launch]:
    """The launches of a manifest's containers and Ray entry points, with the nodes and devices it asks for."""
    source = Source(document.text.file, document.text.text)
    containers = list(_containers(document.root, None))[:_MAX_CONTAINERS]
    resources = _resources(document, containers)
    launches: list[Launch] = []
    seen: set[tuple[str, ...]] = set()
    for container in containers:
        words = [word for key in ("command", "args") for word in _words(source, container.node.get(key))]
        shown = tuple("".join(piece.text for piece in word) for word in words)
        if words and shown not in seen:
            seen.add(shown)
            launches += _read(source, words, _environment(source, container.node), beside)
    for entry in _entries(document.root):
        launches += _read(source, [*_SHELL, _word(source, entry)], {}, beside)
    for launch in launches:
        launch.format = "manifest"
        launch.settings[:0] = resources
    return launches


_SHELL: list[Word] = [
    [Piece("bash", Source("", "bash"), 0, 4)],
    [Piece("-c", Source("", "-c"), 0, 2)],
]


def _read(source: Source, words: list[Word], variables: dict[str, Variable], beside: Path | None) -> list[Launch]:
    from ascend_compat.jobs.bash import read_words

    return read_words(words, source, root=beside, variables=variables)


def _containers(node: Node, replicas: Node | None) -> Iterator[_Container]:
    replicas = node.get("replicas") or replicas
    for key, value in node.pairs or ():
        if key == "containers":
            for item in value.items or ():
                yield _Container(item, replicas)
        else:
            yield from _containers(value, replicas)
    for item in node.items or ():
        yield from _containers(item, replicas)


def _entries(node: Node) -> Iterator[Node]:
    for key, value in node.pairs or ():
        if key == "entrypoint" and isinstance(value.scalar, str):
            yield value
        elif value.pairs:
            yield from _entries(value)


def _resources(document: Document, containers: list[_Container]) -> list[Setting]:
    settings: list[Setting] = []
    nodes = 0
    first: Node | None = None
    for container in containers:
        resources = container.node.get("resources")
        asked = _devices(resources) if resources is not None else None
        if asked is None:
            continue
        if first is None:
            first = asked
            settings.append(Setting("kubernetes:devices", asked.scalar, document.text.span(asked)))
        count = container.replicas.scalar if container.replicas is not None else 1
        nodes += count if isinstance(count, int) and not isinstance(count, bool) else 1
    if first is not None:
        stated = next((item.replicas for item in containers if item.replicas is not None), None)
        settings.append(Setting("kubernetes:nodes", nodes, document.text.span(stated or first)))
    return settings


def _devices(resources: Node) -> Node | None:
    for kind in ("limits", "requests"):
        for key, value in (resources.get(kind) or Node(0, 0, 0)).pairs or ():
            if _DEVICE.fullmatch(key) and _COUNT.fullmatch(str(value.scalar)):
                value.scalar = int(str(value.scalar))
                return value
    return None


def _environment(source: Source, container: Node) -> dict[str, Variable]:
    variables: dict[str, Variable] = {}
    for item in (container.get("env") or Node(0, 0, 0)).items or ():
        name, value = item.get("name"), item.get("value")
        if name is not None and isinstance(name.scalar, str) and value is not None and value.scalar is not None:
            variables[name.scalar] = tuple(_word(source, value))
    return variables


def _words(source: Source, node: Node | None) -> list[Word]:
    if node is None:
        return []
    nodes = node.items if node.items is not None else [node]
    return [_word(source, item) for item in nodes if item.items is None and item.pairs is None]


def _word(source: Source, node: Node) -> Word:
    """A scalar of the manifest as text that knows its lines."""
    scalar = node.scalar
    text = "" if scalar is None else str(scalar).lower() if isinstance(scalar, bool) else str(scalar)
    start = source.offset(node.line, node.column)
    mark = source.text[start : start + 1]
    if mark == "|":
        return _block(source, source.offset(node.line + 1, 0), text)
    start += 1 if mark in "'\"" and mark else 0
    if source.text.startswith(text, start):
        return [Piece(text, source, start, len(text))]
    return [Piece(text, source, start, max(1, node.length))]


def _block(source: Source, at: int, text: str) -> Word:
    word: Word = []
    for line in text.splitlines(keepends=True):
        body = line.rstrip("\n")
        found = source.text.find(body, at)
        end = source.text.find("\n", found)
        if found < 0:
            return [*word, Piece(text[sum(len(piece.text) for piece in word) :], source, at, 1)]
        word.append(Piece(line, source, found, len(line)))
        at = end + 1 if end >= 0 else len(source.text)
    return word
