"""Bash's words: quotes, expansions and where a simple command ends. Nothing is run; what a command would print is unknown."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ascend_compat.jobs.shell_text import BREAK, Piece, Source, Text, Word, split, text_of

if TYPE_CHECKING:
    from ascend_compat.jobs.bash_expand import Expander
    from ascend_compat.jobs.bash_state import State, Variable

_PLAIN = re.compile(r"[^ \t\r\n\\'\"$`;|&()<>]+")
_PLAIN_QUOTED = re.compile(r"[^\\\"$`]+")
_BLANKS = re.compile(r"(?:[ \t\r]|\\\r?\n)*")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\[[^\]\n]*\])?(\+?=)")
_REDIRECT = re.compile(r"(?:\d+|\{\w+\})?(&>>?|<<<|<<-?|>>|>\||<>|[<>]&?)")
_BRACES = re.compile(r"([^{}]*)\{(?:([^{},]*(?:,[^{},]*)+)|(-?\d{1,5})\.\.(-?\d{1,5}))\}([^{}]*)")
_SKIP = re.compile(r"[^(){}\\'\"]+")
_EXPANSION = re.compile(r"\$(?:[A-Za-z_]\w*|[0-9@*#?$!-]|[({])")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "v": "\v"}
_DECLARING = frozenset(("export", "declare", "typeset", "local", "readonly"))
MAX_DEPTH = 40
MAX_BRACED = 256
MAX_WORDS = 20_000


class Unclosed(Exception):
    """A quote or bracket opened at ``at`` is not closed."""

    def __init__(self, at: int, sign: str) -> None:
        super().__init__(sign)
        self.at, self.sign = at, sign


class TooMuch(Exception):
    """Expanding the word at ``at`` takes more text or more words than a job has."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.at = at


@dataclass(slots=True)
class Assignment:
    """``NAME=…``, ``NAME+=…``, ``NAME[i]=…``; ``items`` for an array."""

    name: str
    index: str
    adds: bool
    value: Text = ()
    items: list[Word] | None = None


@dataclass(slots=True)
class Redirect:
    """``> file``, ``<<EOF``: for a here-document ``body`` is its text and ``target`` its first line's place."""

    sign: str
    target: Word
    body: Word | None = None


@dataclass(slots=True)
class Simple:
    """One simple command: what it assigns, its words after all expansions, its redirects and where it ends.

    ``prefix``: the variables of ``X=Y command``, which only that command sees.
    """

    start: int
    end: int = 0
    assignments: list[Assignment] = field(default_factory=list)
    words: list[Word] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)
    prefix: dict[str, Variable] = field(default_factory=dict)


class Scanner:
    """Reads words of ``source`` from a position on."""

    def __init__(self, source: Source, expander: Expander) -> None:
        self.source, self.text, self.expander = source, source.text, expander
        self.depth = 0

    def simple(self, start: int, state: State, stop: int | None = None) -> Simple:
        """The simple command at ``start``; plain assignments take effect on ``state`` as they are met."""
        text, limit = self.text, len(self.text) if stop is None else stop
        command = Simple(start)
        at = start
        declares = False
        before = state.variables
        heredocs: list[tuple[Redirect, str, bool, bool]] = []
        while True:
            at = _BLANKS.match(text, at, limit).end()  # type: ignore[union-attr]
            if at >= limit or text[at] in "\n;|)":
                break
            letter = text[at]
            if letter == "#":
                break
            match = _REDIRECT.match(text, at, limit)
            if match is not None and text[at : at + 2] not in ("<(", ">("):
                at = self._redirect(match, limit, state, command, heredocs)
                continue
            if letter in "&(":
                break
            match = _ASSIGNMENT.match(text, at, limit)
            if match is not None and (declares or not command.words):
                if not declares and state.variables is before:
                    state.variables = dict(before)
                at = self._assign(match, limit, state, command, apply=not declares)
                continue
            if not command.words and state.variables is not before:
                command.prefix = {made.name: state.variables[made.name] for made in command.assignments}
                command.assignments, state.variables = [], before
            pieces, after = self.word(at, limit, state)
            if after == at:  # a letter that can begin no word, as where a script is broken
                pieces, after = [Piece(letter, self.source, at, 1)], at + 1
            at = after
            words = self.braced(pieces)
            if not command.words and words:
                declares = text_of(words[0]) in _DECLARING
            command.words += words
            if len(command.words) > MAX_WORDS:
                raise TooMuch(start)
        command.end = at
        if heredocs:
            command.end = max(at, self._bodies(at, heredocs, state))
        return command

    def _assign(self, match: re.Match[str], limit: int, state: State, command: Simple, apply: bool) -> int:
        name, index, sign = match.group(1), match.group(2) or "", match.group(3)
        made = Assignment(name, index[1:-1], sign == "+=")
        at = match.end()
        if self.text.startswith("(", at) and not index:
            made.items, at = self.array(at + 1, limit, state)
        else:
            value, at = self.word(at, limit, state)
            made.value = tuple(
                Piece(" ", self.source, match.start(), 0) if piece is BREAK else piece for piece in value
            )
        command.assignments.append(made)
        if apply:
            self.expander.assign(made, state)
        return at

    @staticmethod
    def braced(pieces: list[Piece]) -> list[Word]:
        """The words of one written word, with ``{a,b}`` and ``{1..4}`` of a word without quotes multiplied out."""
        if len(pieces) != 1 or pieces[0].split or "{" not in pieces[0].text or not pieces[0].bare:
            return split(pieces)
        piece = pieces[0]
        match = _BRACES.fullmatch(piece.text)
        if match is None:
            return split(pieces)
        start, first, last, end = match.group(1), match.group(3), match.group(4), match.group(5)
        parts = match.group(2).split(",") if match.group(2) else []
        if first:
            if len(first) > 18 or len(last) > 18 or abs(int(last) - int(first)) >= MAX_BRACED:
                return split(pieces)
            low, high = int(first), int(last)
            parts = [str(number) for number in range(low, high + (1 if high >= low else -1), 1 if high >= low else -1)]
        if len(parts) > MAX_BRACED:
            return split(pieces)
        return [[Piece(f"{start}{part}{end}", piece.source, piece.at, piece.size)] for part in parts]

    def array(self, at: int, limit: int, state: State) -> tuple[list[Word], int]:
        """The words up to the closing bracket of ``( … )``, and the place after it."""
        items: list[Word] = []
        opened = at - 1
        while True:
            while at < limit and (self.text[at] in " \t\r\n" or self.text.startswith("\\\n", at)):
                at += 2 if self.text[at] == "\\" else 1
            if at >= limit:
                raise Unclosed(opened, "(")
            if self.text[at] == ")":
                return items, at + 1
            if self.text[at] == "#":
                end = self.text.find("\n", at, limit)
                at = limit if end < 0 else end
                continue
            pieces, after = self.word(at, limit, state)
            if after == at:
                pieces, after = [Piece(self.text[at], self.source, at, 1)], at + 1
            items += self.braced(pieces)
            at = after

    def _redirect(
        self,
        match: re.Match[str],
        limit: int,
        state: State,
        command: Simple,
        heredocs: list[tuple[Redirect, str, bool, bool]],
    ) -> int:
        sign = match.group(1)
        at = _BLANKS.match(self.text, match.end(), limit).end()  # type: ignore[union-attr]
        start = at
        target, at = self.word(at, limit, state)
        redirect = Redirect(sign, target)
        command.redirects.append(redirect)
        if sign in ("<<", "<<-"):
            raw = self.text[start:at]
            delimiter = raw.replace("'", "").replace('"', "").replace("\\", "")
            heredocs.append((redirect, delimiter, raw == delimiter, sign == "<<-"))
        return max(at, match.end())

    def _bodies(self, at: int, heredocs: list[tuple[Redirect, str, bool, bool]], state: State) -> int:
        start = self.text.find("\n", at) + 1
        for redirect, delimiter, expands, tabs in heredocs:
            end = start if start else len(self.text)
            while end < len(self.text):
                after = self.text.find("\n", end)
                line = self.text[end : after if after >= 0 else None].rstrip("\r")
                if (line.lstrip("\t") if tabs else line) == delimiter:
                    break
                end = after + 1 if after >= 0 else len(self.text)
            body = self.text[start:end]
            if expands:
                redirect.body = self.quoted(start, end, state, here=True)[0]
            else:
                redirect.body = [Piece(body, self.source, start, len(body))]
            after = self.text.find("\n", end)
            start = after + 1 if after >= 0 else len(self.text)
        return start

    def word(self, at: int, limit: int, state: State) -> tuple[list[Piece], int]:
        """The pieces of the word at ``at`` with its expansions done, and the place after it."""
        text, source = self.text, self.source
        pieces: list[Piece] = []
        while at < limit:
            match = _PLAIN.match(text, at, limit)
            if match is not None:
                pieces.append(Piece(match.group(), source, at, match.end() - at, bare=True))
                at = match.end()
                continue
            letter = text[at]
            if letter == "\\":
                if text.startswith(("\\\n", "\\\r\n"), at):
                    at += 2 if text[at + 1] == "\n" else 3
                    if not pieces:
                        break
                    continue
                if at + 1 < limit:
                    pieces.append(Piece(text[at + 1], source, at + 1, 1))
                at += 2
            elif letter == "'":
                end = text.find("'", at + 1, limit)
                if end < 0:
                    raise Unclosed(at, "'")
                pieces.append(Piece(text[at + 1 : end], source, at + 1, end - at - 1))
                at = end + 1
            elif letter == '"':
                inner, at = self.quoted(at + 1, limit, state)
                pieces += inner
            elif letter == "$" and text.startswith("$'", at):
                piece, at = self._ansi(at + 2, limit)
                pieces.append(piece)
            elif letter == "$" and text.startswith('$"', at):
                at += 1
            elif letter in "$`":
                more, at = self.expansion(at, limit, state, quoted=False)
                pieces += more
            elif letter in "<>" and text.startswith("(", at + 1):
                end = self.closing(at + 2, limit, "(", ")")
                pieces.append(self.expander.output(source, at, end + 1))
                at = end + 1
            else:
                break
        return pieces, at

    def quoted(
        self, at: int, limit: int, state: State, here: bool = False, inner: bool = False
    ) -> tuple[list[Piece], int]:
        """Pieces up to the closing double quote (with ``here``, up to ``limit``), and the place after it.

        ``inner``: the word of a ``${X:-word}`` between quotes, whose own quotes are dropped.
        """
        text, source, start = self.text, self.source, at
        pieces: list[Piece] = []
        while at < limit:
            match = _PLAIN_QUOTED.match(text, at, limit)
            if match is not None:
                pieces.append(Piece(match.group(), source, at, match.end() - at))
                at = match.end()
                continue
            letter = text[at]
            if letter == '"' and inner:
                at += 1
                continue
            if letter == '"' and not here:
                if not pieces and at == start:
                    pieces.append(Piece("", source, start, 0))
                return pieces, at + 1
            if letter == "\\" and at + 1 < limit:
                after = text[at + 1]
                if after == "\n" or text.startswith("\r\n", at + 1):
                    at += 2 if after == "\n" else 3
                elif after in '$`"\\':
                    pieces.append(Piece(after, source, at + 1, 1))
                    at += 2
                else:
                    pieces.append(Piece(letter, source, at, 1))
                    at += 1
            elif letter in "$`":
                more, at = self.expansion(at, limit, state, quoted=True)
                pieces += more
            else:
                pieces.append(Piece(letter, source, at, 1))
                at += 1
        if here:
            return pieces, at
        raise Unclosed(start - 1, '"')

    def _ansi(self, at: int, limit: int) -> tuple[Piece, int]:
        letters, start = [], at
        while at < limit and self.text[at] != "'":
            if self.text[at] == "\\" and at + 1 < limit:
                at += 1
                letters.append(_ESCAPES.get(self.text[at], self.text[at]))
            else:
                letters.append(self.text[at])
            at += 1
        if at >= limit:
            raise Unclosed(start - 1, "'")
        return Piece("".join(letters), self.source, start, at - start), at + 1

    def expansion(self, at: int, limit: int, state: State, quoted: bool) -> tuple[list[Piece], int]:
        """What stands for the ``$`` or backquote at ``at``, and the place after it."""
        text, source = self.text, self.source
        self.depth += 1
        try:
            if self.depth > MAX_DEPTH:
                raise Unclosed(at, "${" if text.startswith("${", at) else "$(")
            if text[at] == "`":
                end = at + 1
                while end < limit and text[end] != "`":
                    end += 2 if text[end] == "\\" else 1
                if end >= limit:
                    raise Unclosed(at, "`")
                return self.expander.command(self, at, at + 1, end, end + 1, state, quoted), end + 1
            match = _EXPANSION.match(text, at, limit)
            if match is None:
                return [Piece("$", source, at, 1)], at + 1
            opening = match.group()
            if opening == "$(":
                end = self.closing(at + 2, limit, "(", ")")
                if text.startswith("((", at + 1) and text[end - 1] == ")":
                    return self.expander.arithmetic(self, at, at + 3, end - 1, end + 1, state, quoted), end + 1
                return self.expander.command(self, at, at + 2, end, end + 1, state, quoted), end + 1
            if opening == "${":
                end = self.closing(at + 2, limit, "{", "}", quoted)
                return self.expander.parameter(self, at, at + 2, end, state, quoted), end + 1
            return self.expander.variable(source, at, match.end(), opening[1:], state, quoted), match.end()
        finally:
            self.depth -= 1

    def closing(self, at: int, limit: int, opening: str, closing: str, quoted: bool = False) -> int:
        """The place of the bracket that closes the one before ``at``, over quotes and inner brackets.

        ``quoted``: inside double quotes, where a single quote in ``${ … }`` is a letter.
        """
        text, start, depth = self.text, at - len(opening), 1
        while at < limit:
            match = _SKIP.match(text, at, limit)
            if match is not None:
                at = match.end()
                continue
            letter = text[at]
            if letter == closing:
                depth -= 1
                if not depth:
                    return at
            elif letter == opening and (opening == "(" or text[at - 1] == "$"):
                depth += 1
            elif letter == "\\":
                at += 1
            elif letter == "'" and not quoted:
                end = text.find("'", at + 1, limit)
                if end < 0:
                    raise Unclosed(at, "'")
                at = end
            elif letter == '"':
                at = self._double(at + 1, limit)
            at += 1
        raise Unclosed(start, opening)

    def _double(self, at: int, limit: int) -> int:
        start = at - 1
        while at < limit:
            if self.text[at] == "\\":
                at += 1
            elif self.text[at] == '"':
                return at
            elif self.text.startswith("$(", at):
                self.depth += 1
                if self.depth > MAX_DEPTH:
                    raise Unclosed(at, "$(")
                at = self.closing(at + 2, limit, "(", ")")
                self.depth -= 1
            at += 1
        raise Unclosed(start, '"')
