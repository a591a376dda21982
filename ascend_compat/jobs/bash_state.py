"""What is known of a shell while a script is read: variables, functions, and the joining of branches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Union

from ascend_compat.jobs.model import Unresolved
from ascend_compat.jobs.shell_text import Piece, Source, Text, reason, text_of

Variable = Union[Text, "list[Text]", "dict[str, Text]"]


@dataclass(slots=True)
class State:
    """A shell at one point of a script. ``flow`` says how the commands after it are left out: exit, return, break."""

    variables: dict[str, Variable] = field(default_factory=dict)
    exported: frozenset[str] = frozenset()
    positional: list[Text] | None = None
    flow: str = ""
    export_all: bool = False

    def copy(self) -> State:
        """A shell of its own, for a branch or a subshell."""
        return State(dict(self.variables), self.exported, self.positional, self.flow, self.export_all)

    def set(self, name: str, value: Variable, export: bool = False) -> None:
        """Assigns a variable."""
        self.variables[name] = value
        if (export or self.export_all) and name not in self.exported:
            self.exported |= {name}

    def take(self, other: State) -> None:
        """Becomes ``other``."""
        self.variables, self.exported = other.variables, other.exported
        self.positional, self.flow = other.positional, other.flow


def scalar(value: Variable | None) -> Text | None:
    """What a plain ``$X`` means: an array stands for its first element."""
    if isinstance(value, list):
        return value[0] if value else ()
    if isinstance(value, dict):
        return value.get("0", ())
    return value


def join(one: State, two: State, source: Source, at: int) -> State:
    """The state after a branch that may or may not have been taken; what differs is not known."""
    for taken, other in ((one, two), (two, one)):
        if taken.flow in ("exit", "return") and not other.flow:
            return other
    joined = one.copy()
    joined.flow = one.flow if one.flow == two.flow else ""
    joined.exported = one.exported | two.exported
    if two.positional is not one.positional:
        joined.positional = None
    names = dict.fromkeys((*one.variables, *two.variables))
    for name in names:
        first, second = one.variables.get(name), two.variables.get(name)
        if first is not second:
            joined.variables[name] = _both(first, second, source, at)
    return joined


def _both(first: Variable | None, second: Variable | None, source: Source, at: int) -> Variable:
    line = source.span(at).line
    why = Unresolved(
        f"it depends on the condition in line {line}, which cannot be decided from the file",
        f"取决于第 {line} 行的条件，仅凭文件无法判断",
    )
    if isinstance(first, dict) or isinstance(second, dict):
        return first if isinstance(first, dict) and first == second else (_unknown(first or second, source, at, why),)
    if isinstance(first, list) or isinstance(second, list):
        return _lists(_as_list(first), _as_list(second), why)
    one, two = first or (), second or ()
    if first is not None and second is not None and _same(one, two):
        return first
    if _group(one) and _group(two):
        shared = 0
        while shared < min(len(one), len(two)) and _same((one[shared],), (two[shared],)):
            shared += 1
        rest = [piece.doubted(why) for piece in (*one[shared:], *two[shared:])]
        return (*one[:shared], *rest)
    return (_unknown(first or second, source, at, _either(one, two, why)),)


def _same(one: Text, two: Text) -> bool:
    return text_of(one) == text_of(two) and all(a.maybe is b.maybe for a, b in zip(one, two, strict=False))


def _group(text: Text) -> bool:
    words = text_of(text)
    return not words.strip() or words.lstrip().startswith(("-", "+")) or ("=" in words and " " in words)


def _as_list(value: Variable | None) -> list[Text]:
    return value if isinstance(value, list) else [value] if isinstance(value, tuple) and value else []


def _lists(one: list[Text], two: list[Text], why: Unresolved) -> list[Text]:
    ours, theirs = {text_of(word) for word in one}, {text_of(word) for word in two}
    joined = [word if text_of(word) in theirs else tuple(piece.doubted(why) for piece in word) for word in one]
    joined += [tuple(piece.doubted(why) for piece in word) for word in two if text_of(word) not in ours]
    return joined


def _either(one: Text, two: Text, why: Unresolved) -> Unresolved:
    words = [text_of(text) for text in (one, two)]
    known = reason(one) or reason(two)
    if known is not None and not all(words):
        return known
    if not all(words) or any(len(word) > 40 for word in words) or known:
        return why
    return Unresolved(f"{words[0]} or {words[1]}: {why.en}", f"{words[0]} 或 {words[1]}：{why.zh}")


def _unknown(like: Variable | None, source: Source, at: int, why: Unresolved) -> Piece:
    text = like if isinstance(like, tuple) and like else None
    if text is None:
        return Piece("?", source, at, 0, why=why)
    return Piece("?", text[0].source, text[0].at, text[0].size, why=why, chain=text[0].chain)
