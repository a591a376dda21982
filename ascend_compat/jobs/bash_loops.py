"""Loops and ``case``: followed value by value where the values are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascend_compat.jobs.bash_state import State, join
from ascend_compat.jobs.bash_test import Test
from ascend_compat.jobs.bash_words import Scanner
from ascend_compat.jobs.model import Unresolved
from ascend_compat.jobs.shell_text import Piece, Word, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

    from ascend_compat.jobs.bash import Reader

MAX_LOOP = 64


def while_loop(reader: Reader, scan: Scanner, node: Node, state: State) -> bool | None:
    """``while`` and ``until``; one that walks through the command line is taken not to run."""
    condition_node = node.child_by_field_name("condition")
    body = node.child_by_field_name("body")
    if condition_node is None or body is None:
        return None
    text = scan.text[condition_node.start_byte : condition_node.end_byte]
    until = scan.text.startswith("until", node.start_byte)
    if "$#" in text or "getopts" in text or '"$1"' in text:
        return True
    for _ in range(MAX_LOOP):
        answer = reader.decided(scan, [condition_node], state)
        if answer is until and answer is not None:
            return True
        inner = state.copy()
        reader.block(scan, body.children, inner)
        stopped = inner.flow
        if inner.flow in ("break", "continue"):
            inner.flow = ""
        state.take(inner if answer is not None else join(inner, state, scan.source, node.start_byte))
        if answer is None or stopped == "break" or state.flow or text.strip() in ("true", ":"):
            return True
    return True


def for_loop(reader: Reader, scan: Scanner, node: Node, state: State) -> bool | None:
    """``for X in …``: once for every value where all are known."""
    variable = node.child_by_field_name("variable")
    body = node.child_by_field_name("body")
    if variable is None or body is None:
        return None
    name = scan.text[variable.start_byte : variable.end_byte]
    values = node.children_by_field_name("value")
    items: list[Word] = []
    if values:
        start, end = values[0].start_byte, values[-1].end_byte
        items = scan.simple(start, State(state.variables, positional=state.positional), end).words
    elif state.positional:
        items = [list(word) for word in state.positional]
    sure = len(items) <= MAX_LOOP and not any(piece.why for word in items for piece in word)
    if not sure:
        why = Unresolved(f"{name} takes several values in a loop", f"{name} 在循环中取多个值")
        items = [[Piece(f"${name}", scan.source, variable.start_byte, len(name), why=why)]]
    for word in items:
        inner = state.copy()
        inner.set(name, tuple(word))
        reader.block(scan, body.children, inner)
        stopped = inner.flow
        if inner.flow in ("break", "continue"):
            inner.flow = ""
        state.take(inner if sure else join(inner, state, scan.source, node.start_byte))
        if stopped == "break" or state.flow:
            break
    return True


def c_for_loop(reader: Reader, scan: Scanner, node: Node, state: State) -> bool | None:
    """``for ((…; …; …))``."""
    body = node.child_by_field_name("body")
    header = scan.text[node.start_byte : body.start_byte if body else node.end_byte]
    parts = header[header.find("((") + 2 : header.rfind("))")].split(";")
    site = (scan.source, node.start_byte, 3)
    if body is None or len(parts) != 3:
        return None
    reader.calculate(parts[0], state, site)
    for _ in range(MAX_LOOP):
        answer = reader.calculate(parts[1], state, site) if parts[1].strip() else True
        if answer is False:
            break
        inner = state.copy()
        reader.block(scan, body.children, inner)
        stopped = inner.flow
        inner.flow = "" if inner.flow in ("break", "continue") else inner.flow
        state.take(inner if answer else join(inner, state, scan.source, node.start_byte))
        if answer is None or stopped == "break" or state.flow:
            break
        reader.calculate(parts[2], state, site)
    return True


def case(reader: Reader, scan: Scanner, node: Node, state: State) -> bool | None:
    """``case … esac``."""
    value = node.child_by_field_name("value")
    if value is None:
        return None
    subject, _ = scan.word(value.start_byte, value.end_byte, state)
    undecided: list[State] = []
    for item in node.named_children:
        if item.type != "case_item":
            continue
        patterns = item.children_by_field_name("value")
        answer = _matches(scan, subject, patterns, state)
        if answer is False:
            continue
        taken = state.copy()
        after = patterns[-1].end_byte if patterns else item.start_byte
        reader.block(scan, [child for child in item.children if child.start_byte >= after], taken)
        undecided.append(taken)
        if answer is True:
            break
    else:
        undecided.append(state.copy())
    joined = undecided[0]
    for other in undecided[1:]:
        joined = join(joined, other, scan.source, node.start_byte)
    state.take(joined)
    return True


def _matches(scan: Scanner, subject: Word, patterns: list[Node], state: State) -> bool | None:
    answer: bool | None = False
    for pattern in patterns:
        word, _ = scan.word(pattern.start_byte, pattern.end_byte, state)
        if text_of(word) == "*":
            return True if answer is False else None if answer is None else answer
        sign = [Piece("==", scan.source, pattern.start_byte, 2)]
        found = Test([subject or [Piece("", scan.source, 0, 0)], sign, word], True).answer()
        if found is True:
            return True
        answer = None if found is None or answer is None else False
    return answer
