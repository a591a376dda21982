"""YAML and JSON text -> a tree with the place of every value. Nothing is constructed, imported or executed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import yaml

from ascend_compat.jobs.model import Problem, Scalar, Span, Value

MAX_CHARACTERS = 5_000_000
MAX_DEPTH = 100
MAX_VALUES = 200_000

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULL = frozenset(("", "~", "null", "Null", "NULL"))
_TRUE = frozenset(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"))
_FALSE = frozenset(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"))
_INTEGER = re.compile(r"[-+]?(0b[01_]+|0x[0-9a-fA-F_]+|0[0-7_]+|0|[1-9][0-9_]*)$")
# OmegaConf's and Hugging Face's reading, wider than YAML 1.1: 1e-5 is a number.
_NUMBER = re.compile(
    r"[-+]?([0-9][0-9_]*\.[0-9_]*([eE][-+]?[0-9]+)?|[0-9][0-9_]*[eE][-+]?[0-9]+|\.[0-9][0-9_]*([eE][-+]?[0-9]+)?)$"
)
_SPECIAL = {".inf": float("inf"), "+.inf": float("inf"), "-.inf": float("-inf"), ".nan": float("nan")}
_TAKING = frozenset(
    (yaml.ScalarEvent, yaml.MappingStartEvent, yaml.SequenceStartEvent, yaml.AliasEvent, yaml.DocumentStartEvent)
)
_STANDARD = "tag:yaml.org,2002:"
_SAFE_TAGS = frozenset(("str", "int", "float", "bool", "null", "map", "seq", "timestamp", "merge"))


@dataclass(slots=True, eq=False)
class Node:
    """One value of a document: a scalar, a list of nodes or a list of (key, node) pairs; 0-based line and column."""

    line: int
    column: int
    length: int
    scalar: Scalar = None
    items: list[Node] | None = None
    pairs: list[tuple[str, Node]] | None = None
    tag: str | None = None
    # of a root: how many references into the document were followed
    followed: int = 0
    _index: dict[str, Node] | None = None

    def get(self, key: str) -> Node | None:
        """The node under ``key``, the last one where it is given twice; None where there is none."""
        pairs = self.pairs or ()
        if len(pairs) < 16:
            return next((node for name, node in reversed(pairs) if name == key), None)
        if self._index is None:
            self._index = dict(pairs)
        return self._index.get(key)

    def names(self) -> set[str]:
        """The keys of a mapping; empty for anything else."""
        return {name for name, _ in self.pairs or ()}


@dataclass(slots=True)
class Text:
    """The text of a file under the name its user gave, able to point into itself."""

    file: str
    text: str
    _lines: list[str] = field(default_factory=list)

    def span(self, node: Node) -> Span:
        """The place of a node."""
        return self.at(node.line, node.column, node.length)

    def at(self, line: int, column: int = 0, length: int = 1) -> Span:
        """A 1-based place from 0-based numbers, with the whole line."""
        if not self._lines:
            self._lines = re.split(r"\r\n|\r|\n", self.text)
        whole = self._lines[line] if line < len(self._lines) else ""
        return Span(self.file, line + 1, column + 1, max(1, length), whole)


class TreeError(Exception):
    """The text cannot be taken; carries the problem that says why."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.code)
        self.problem = problem


@dataclass(slots=True)
class Document:
    """One document of a file: its root, and the keys that were given twice."""

    text: Text
    root: Node
    problems: list[Problem] = field(default_factory=list)


def parse(text: str, file: str) -> list[Document]:
    """All documents of ``text``. Raises :class:`TreeError`: not YAML, too large, too deep, too many values, a tag refused."""
    source = Text(file, text.removeprefix("\ufeff"))
    if len(source.text) > MAX_CHARACTERS:
        raise TreeError(Problem("AC2006", Span(file, 1), {"limit": f"{MAX_CHARACTERS // 1_000_000} MB"}))
    try:
        return _documents(source)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        span = source.at(mark.line, mark.column) if mark else Span(file, 1)
        raise TreeError(_syntax_problem(str(error.problem or error.context or "?"), span)) from None
    except yaml.YAMLError as error:
        raise TreeError(_syntax_problem(str(error).splitlines()[0], Span(file, 1))) from None


def _syntax_problem(reason: str, span: Span) -> Problem:
    if "nesting depth" in reason:
        return Problem("AC2010", span, {"limit": str(MAX_DEPTH)})
    if "cannot start any token" in reason and span.text[: span.column].endswith("\t"):
        return Problem("AC2015", span)
    return Problem("AC2008", span, {"reason": reason})


def _documents(source: Text) -> list[Document]:
    documents: list[Document] = []
    stack: list[tuple[Node, list[object]]] = []
    anchors: dict[str, Node] = {}
    budget = 2 * MAX_VALUES  # nodes and keys, before they take memory; _limit counts the values
    events: Iterator[Any] = iter(yaml.parse(source.text, Loader=_LOADER))
    for event in events:
        kind = type(event)
        budget -= kind in _TAKING
        if budget < 0:
            raise TreeError(Problem("AC2009", source.at(event.start_mark.line), {"limit": f"{MAX_VALUES:,}"}))
        if kind is yaml.ScalarEvent:
            node = _scalar(event, source)
        elif kind in (yaml.MappingStartEvent, yaml.SequenceStartEvent):
            if len(stack) >= MAX_DEPTH:
                raise TreeError(Problem("AC2010", source.at(event.start_mark.line), {"limit": str(MAX_DEPTH)}))
            _refuse_tag(event, source)
            node = Node(event.start_mark.line, event.start_mark.column, 1)
            if event.anchor:
                anchors[event.anchor] = node
            stack.append((node, []))
            continue
        elif kind in (yaml.MappingEndEvent, yaml.SequenceEndEvent):
            node, children = stack.pop()
            nodes = cast("list[Node]", children)
            if kind is yaml.SequenceEndEvent:
                node.items = nodes
            else:
                node.pairs = _pairs(nodes, documents[-1])
        elif kind is yaml.AliasEvent:
            named = anchors.get(event.anchor)
            if named is None or any(named is open_node for open_node, _ in stack):
                at = source.at(event.start_mark.line, event.start_mark.column, len(event.anchor) + 1)
                raise TreeError(_syntax_problem(f"alias *{event.anchor} has no finished anchor", at))
            node = named
        elif kind is yaml.DocumentStartEvent:
            anchors = {}
            documents.append(Document(source, Node(event.start_mark.line, 0, 1)))
            continue
        else:
            continue
        if kind is yaml.ScalarEvent and event.anchor:
            anchors[event.anchor] = node
        if stack:
            stack[-1][1].append(node)
        else:
            documents[-1].root = node
    for document in documents:
        _limit(document)
    return documents


def _pairs(nodes: list[Node], document: Document) -> list[tuple[str, Node]]:
    pairs: list[tuple[str, Node]] = []
    merged: list[tuple[str, Node]] = []
    seen: set[str] = set()
    for key, value in zip(nodes[::2], nodes[1::2], strict=True):
        name = _name(key)
        if name == "<<" and key.tag is None:
            have = {taken for taken, _ in merged}
            for source in value.items or [value]:
                for pair in source.pairs or ():
                    if pair[0] not in have:
                        have.add(pair[0])
                        merged.append(pair)
            continue
        if name in seen:
            document.problems.append(Problem("AC2026", document.text.span(key), {"key": name}))
        seen.add(name)
        pairs.append((name, value))
    return [(name, value) for name, value in merged if name not in seen] + pairs


def _name(key: Node) -> str:
    if key.items is not None or key.pairs is not None:
        return "?"
    if isinstance(key.scalar, bool):
        return "true" if key.scalar else "false"
    return "null" if key.scalar is None else str(key.scalar)


def _scalar(event: Any, source: Text) -> Node:
    start, end = event.start_mark, event.end_mark
    if start.line == end.line:
        length = end.column - start.column
    else:
        length = max(1, len(source.at(start.line).text) - start.column)
    node = Node(start.line, start.column, length)
    _refuse_tag(event, source)
    kind = (event.tag or "").removeprefix(_STANDARD)
    if (event.implicit[0] and not event.style and not kind) or kind in ("int", "float", "bool", "null"):
        node.scalar = plain(event.value)
    else:
        node.scalar, node.tag = event.value, "str"
    return node


def _refuse_tag(event: Any, source: Text) -> None:
    tag: str | None = getattr(event, "tag", None)
    if tag in (None, "!") or str(tag).removeprefix(_STANDARD) in _SAFE_TAGS:
        return
    shown = str(tag).replace(_STANDARD, "!!")
    raise TreeError(Problem("AC2011", source.at(event.start_mark.line, event.start_mark.column), {"tag": shown}))


def plain(text: str) -> Scalar:
    """What an unquoted scalar means to OmegaConf: null, boolean, integer, number or the text itself."""
    if text in _NULL:
        return None
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    if text[0] not in "0123456789+-.":
        return text
    if _INTEGER.match(text):
        return _integer(text.replace("_", ""))
    if _NUMBER.match(text):
        return float(text.replace("_", ""))
    return _SPECIAL.get(text.lower(), text)


def _integer(digits: str) -> int | str:
    sign = -1 if digits[0] == "-" else 1
    body = digits.lstrip("+-")
    if len(body) > 40 or body in ("0x", "0b"):
        return digits
    if body[:2] in ("0x", "0b"):
        return sign * int(body, 0)
    return sign * int(body, 8 if len(body) > 1 and body[0] == "0" else 10)


def _limit(document: Document) -> None:
    budget, stack = MAX_VALUES, [(document.root, 0)]
    while stack:
        node, depth = stack.pop()
        budget -= 1
        if budget < 0:
            raise TreeError(Problem("AC2009", document.text.span(node), {"limit": f"{MAX_VALUES:,}"}))
        if depth > MAX_DEPTH:
            raise TreeError(Problem("AC2010", document.text.span(node), {"limit": str(MAX_DEPTH)}))
        stack += [(child, depth + 1) for child in children(node)]


def children(node: Node) -> Iterator[Node]:
    """The values directly inside a list or a mapping."""
    yield from node.items or ()
    for _, value in node.pairs or ():
        yield value


def leaves(node: Node, path: str = "") -> Iterator[tuple[str, Node]]:
    """Dotted path and node of every value below; a list and an empty mapping are values."""
    if not node.pairs:
        yield path, node
        return
    for name, value in node.pairs:
        yield from leaves(value, f"{path}.{name}" if path else name)


def plain_value(node: Node) -> Value:
    """The node as plain lists, dicts and scalars."""
    if node.items is not None:
        return [plain_value(item) for item in node.items]
    if node.pairs is not None:
        return {name: plain_value(value) for name, value in node.pairs}
    return node.scalar
