"""Bash scripts -> the launches in them. The text is followed, branch by branch; no command is ever run."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from ascend_compat.jobs import bash_commands, bash_loops
from ascend_compat.jobs.bash_arithmetic import NotANumber
from ascend_compat.jobs.bash_expand import Expander
from ascend_compat.jobs.bash_state import State, Variable, join
from ascend_compat.jobs.bash_test import condition
from ascend_compat.jobs.bash_words import Scanner, Simple, TooMuch, Unclosed
from ascend_compat.jobs.model import Launch, Problem, Span, Unresolved
from ascend_compat.jobs.shell_text import Piece, Source, Word
from ascend_compat.jobs.slurm import slurm
from ascend_compat.jobs.yaml_tree import TreeError

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

MAX_CHARACTERS = 1_000_000
MAX_DEPTH = 60
MAX_STEPS = 20_000
_WIDE = re.compile(r"[^\x00-\x7f]")
_SIMPLE = frozenset(
    (
        "command", "variable_assignment", "variable_assignments", "declaration_command", "unset_command",
        "command_name", "word", "concatenation", "string", "raw_string", "simple_expansion", "expansion", "number",
        "array", "subscript", "arithmetic_expansion", "command_substitution",
    )
)  # fmt: skip
_COMPOUND = frozenset(
    (
        "if_statement", "while_statement", "for_statement", "c_style_for_statement", "case_statement",
        "compound_statement", "subshell", "do_group", "list", "pipeline", "function_definition", "test_command",
        "negated_command", "redirected_statement",
    )
)  # fmt: skip


class Refused(Exception):
    """The script cannot be followed further; carries the problem that says why."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.code)
        self.problem = problem


def read_shell(text: str, file: str, *, root: Path | None) -> list[Launch]:
    """The launches of a script called ``file``; ``root`` is the folder that files it sources must lie in.

    Raises :class:`TreeError` where the script cannot be followed at all.
    """
    source = Source(file, text)
    reader = Reader(file, root)
    header = slurm(source)
    launches = _follow(reader, lambda: reader.script(source, State(dict(header.variables))))
    for launch in launches:
        launch.settings[:0] = header.settings
    return launches


def read_words(words: list[Word], source: Source, *, root: Path | None, variables: dict[str, Variable]) -> list[Launch]:
    """The launches of a command whose words stand in ``source``, with ``variables`` in its environment."""
    reader = Reader(source.file, root)
    state = State(dict(variables), frozenset(variables))
    command = Simple(words[0][0].at if words and words[0] else 0, words=words)
    return _follow(reader, lambda: bash_commands.run(reader, Scanner(source, reader.expander), command, state))


def _follow(reader: Reader, start: Callable[[], object]) -> list[Launch]:
    try:
        start()
    except Refused as refused:
        reader.problems.append(refused.problem)
    if reader.problems and not reader.launches:
        raise TreeError(reader.problems[0])
    for launch in reader.launches:
        launch.problems += [problem for problem in reader.problems if problem not in launch.problems]
    return reader.launches


@lru_cache(maxsize=1)
def _parser() -> Parser:
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


class Reader:
    """Follows one script and what it calls."""

    def __init__(self, file: str, root: Path | None) -> None:
        self.file, self.root = file, root
        self.expander = Expander(file)
        self.launches: list[Launch] = []
        self.problems: list[Problem] = []
        self.functions: dict[str, tuple[Scanner, Node]] = {}
        self.written: dict[str, Word] = {}
        self.calls: list[str] = []
        self.including: list[str] = []
        self.last: tuple[Launch, Scanner, Simple] | None = None
        self.depth = self.steps = self.doubts = 0

    def script(self, source: Source, state: State) -> None:
        """Follows a whole text."""
        if len(source.text) > MAX_CHARACTERS:
            raise Refused(Problem("AC2101", Span(source.file, 1), {"limit": f"{MAX_CHARACTERS // 1_000_000} MB"}))
        tree = _parser().parse(_WIDE.sub("x", source.text).encode("ascii"))
        scan = Scanner(source, self.expander)
        try:
            self.block(scan, tree.root_node.children, state)
        except Unclosed as error:
            self.problems.append(Problem("AC2106", source.span(error.at), {"sign": error.sign}))
        except TooMuch as error:
            raise Refused(Problem("AC2103", source.span(error.at), {"limit": f"{MAX_STEPS:,}"})) from None
        if state.flow != "exit":
            state.flow = ""

    def block(self, scan: Scanner, nodes: list[Node], state: State) -> bool | None:
        """Follows statements one after the other; the answer of the last."""
        answer: bool | None = True
        done = -1
        for node in nodes:
            if state.flow:
                break
            if not node.is_named or node.type == "comment" or node.start_byte < done:
                continue
            answer, done = self.statement(scan, node, state)
        return answer

    def statement(self, scan: Scanner, node: Node, state: State) -> tuple[bool | None, int]:
        """Follows one statement: its answer (None where undecided) and where it ends."""
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise Refused(Problem("AC2103", scan.source.span(node.start_byte), {"limit": f"{MAX_STEPS:,}"}))
        kind = node.type
        if kind in _SIMPLE:
            return self.simple(scan, node.start_byte, state)
        self.depth += 1
        try:
            if self.depth > MAX_DEPTH:
                raise Refused(Problem("AC2102", scan.source.span(node.start_byte), {"limit": str(MAX_DEPTH)}))
            if kind == "redirected_statement":
                body = node.child_by_field_name("body")
                if body is None or body.type in _SIMPLE:
                    return self.simple(scan, node.start_byte, state)
                answer, done = self.statement(scan, body, state)
                return answer, max(done, node.end_byte)
            follow = _FOLLOW.get(kind)
            if follow is None:
                return self._error(scan, node, state), node.end_byte
            return follow(self, scan, node, state), node.end_byte
        finally:
            self.depth -= 1

    def _error(self, scan: Scanner, node: Node, state: State) -> bool | None:
        """Where the grammar does not follow, bash may: whatever looks like statements is followed."""
        first = next((child for child in node.children if child.type != "comment"), None)
        if first is None or not first.is_named:
            return self.block(scan, node.children, state)
        done = -1
        for child in node.children:
            if child.start_byte >= done and not state.flow and child.type in _COMPOUND:
                _, done = self.statement(scan, child, state)
            elif child.start_byte >= done and not state.flow and child.type in _SIMPLE:
                _, done = self.simple(scan, child.start_byte, state)
        return None

    def simple(self, scan: Scanner, start: int, state: State) -> tuple[bool | None, int]:
        """One simple command."""
        command = scan.simple(start, state)
        if not command.words:
            return True, command.end
        if command.prefix:
            inner = state.copy()
            for name, value in command.prefix.items():
                inner.set(name, value, True)
            answer = bash_commands.run(self, scan, command, inner)
            state.flow = inner.flow
            return answer, command.end
        return bash_commands.run(self, scan, command, state), command.end

    def words(self, scan: Scanner, command: Simple, state: State, words: list[Word]) -> bool | None:
        """A command whose words came from elsewhere: what ``eval`` or ``bash -c`` was given."""
        inner = Simple(command.start, command.end, [], words, command.redirects)
        return bash_commands.run(self, scan, inner, state)

    def _pipeline(self, scan: Scanner, node: Node, state: State) -> bool | None:
        answer: bool | None = True
        for child in node.named_children:
            if child.type != "comment":
                inner = state.copy()
                answer, _ = self.statement(scan, child, inner)
        return answer

    def _subshell(self, scan: Scanner, node: Node, state: State) -> bool | None:
        return self.block(scan, node.children, state.copy())

    def _compound(self, scan: Scanner, node: Node, state: State) -> bool | None:
        if node.children and node.children[0].type == "((":
            return self._arithmetic(scan, node, state)
        return self.block(scan, node.children, state)

    def _arithmetic(self, scan: Scanner, node: Node, state: State) -> bool | None:
        text = scan.text[node.start_byte + 2 : node.end_byte - 2]
        return self.calculate(text, state, (scan.source, node.start_byte, node.end_byte - node.start_byte))

    def calculate(self, text: str, state: State, site: tuple[Source, int, int]) -> bool | None:
        """The answer of ``(( … ))`` or ``let``, with what it assigns."""
        try:
            return self.expander.calculate(text, state, site) != 0
        except NotANumber as error:
            why = error.args[0] if error.args else Unresolved("not arithmetic that can be followed", "无法静态计算")
            for name in _TARGETS.findall(text):
                state.set(name, (Piece(f"${name}", *site, why=why),))
            return None

    def _list(self, scan: Scanner, node: Node, state: State) -> bool | None:
        children = [child for child in node.children if child.type != "comment"]
        chain: list[tuple[str, Node]] = []
        left = children[0]
        while left.type == "list" and len(chain) < 2000:
            inner = [child for child in left.children if child.type != "comment"]
            chain.append((_sign(children), children[-1]))
            children, left = inner, inner[0]
        rights = [("", left), (_sign(children), children[-1]), *reversed(chain)]
        answer: bool | None = True
        done = -1
        for sign, child in rights:
            if state.flow or child.start_byte < done:
                continue
            if (sign == "&&" and answer is False) or (sign == "||" and answer is True):
                if sign == "||" and child.type != "test_command" and left.type != "test_command":
                    self.statement(scan, child, state.copy())
                continue
            if sign and answer is None:
                taken = state.copy()
                right, done = self.statement(scan, child, taken)
                state.take(join(taken, state, scan.source, node.start_byte))
                settles = sign == "||"
                answer = right if right is settles else None
                continue
            answer, done = self.statement(scan, child, state)
        return answer

    def _negated(self, scan: Scanner, node: Node, state: State) -> bool | None:
        answer = self.block(scan, node.children, state)
        return None if answer is None else not answer

    def _test(self, scan: Scanner, node: Node, state: State) -> bool | None:
        if scan.text.startswith("((", node.start_byte):
            return self._arithmetic(scan, node, state)
        return condition(scan, node.start_byte, node.end_byte, state)

    def _if(self, scan: Scanner, node: Node, state: State) -> bool | None:
        branches: list[tuple[list[Node], list[Node]]] = [([], [])]
        place = 0
        last: list[Node] = []
        for child in node.children:
            if child.type in ("if", "fi"):
                continue
            if child.type == "then":
                place = 1
            elif child.type == "elif_clause":
                parts = child.children
                cut = next((index for index, part in enumerate(parts) if part.type == "then"), len(parts))
                branches.append((parts[1:cut], parts[cut + 1 :]))
            elif child.type == "else_clause":
                last = child.children[1:]
            else:
                branches[0][place].append(child)
        taken: list[State] = []
        for test, body in branches:
            answer = self.decided(scan, test, state)
            if answer is True:
                self.block(scan, body, state)
                break
            if answer is None:
                taken.append(state.copy())
                self.block(scan, body, taken[-1])
        else:
            self.block(scan, last, state)
        joined = state
        for other in reversed(taken):
            joined = join(other, joined, scan.source, node.start_byte)
        state.take(joined)
        return True

    def decided(self, scan: Scanner, test: list[Node], state: State) -> bool | None:
        """The answer of a condition; the success of a program is not known, unless it only looks for an NPU."""
        real = [node for node in test if node.is_named and node.type != "comment"]
        answer = self.block(scan, test, state)
        if real and not self._is_test(scan, real[-1]):
            text = scan.text[real[-1].start_byte : real[-1].end_byte]
            return answer if text.strip() in ("true", ":", "false") or _ASCEND.search(text) else None
        return answer

    def _is_test(self, scan: Scanner, node: Node) -> bool:
        if node.type == "command":
            return scan.text.startswith("test ", node.start_byte)
        if node.type in ("list", "negated_command", "compound_statement"):
            return node.type == "compound_statement" or all(self._is_test(scan, child) for child in node.named_children)
        return node.type == "test_command"

    def _function(self, scan: Scanner, node: Node, state: State) -> bool | None:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is not None and body is not None:
            self.functions[scan.text[name.start_byte : name.end_byte]] = (scan, body)
        return True

    def call(self, name: str, arguments: list[Word], state: State) -> bool | None:
        """Follows a function of the script with its arguments; one that calls itself is not entered again."""
        if name in self.calls or len(self.calls) > 20:
            return None
        scan, body = self.functions[name]
        outer, state.positional = state.positional, [tuple(word) for word in arguments]
        self.calls.append(name)
        try:
            answer, _ = self.statement(scan, body, state)
        finally:
            self.calls.pop()
        state.positional = outer
        if state.flow == "return":
            state.flow = ""
        return answer


def _sign(children: list[Node]) -> str:
    return next((child.type for child in children if child.type in ("&&", "||")), "&&")


_TARGETS = re.compile(r"([A-Za-z_]\w*)\s*(?:=(?!=)|\+=|\+\+|--)")
_ASCEND = re.compile(r"torch_npu|npu-smi|/dev/davinci")
_FOLLOW = {
    "pipeline": Reader._pipeline,
    "subshell": Reader._subshell,
    "compound_statement": Reader._compound,
    "do_group": Reader._compound,
    "list": Reader._list,
    "negated_command": Reader._negated,
    "test_command": Reader._test,
    "if_statement": Reader._if,
    "while_statement": bash_loops.while_loop,
    "for_statement": bash_loops.for_loop,
    "c_style_for_statement": bash_loops.c_for_loop,
    "case_statement": bash_loops.case,
    "function_definition": Reader._function,
}
