"""Conditions: ``[ … ]``, ``[[ … ]]`` and ``test``, decided where the text decides them."""

from __future__ import annotations

import fnmatch
import re

from ascend_compat.jobs.bash_state import State
from ascend_compat.jobs.bash_words import Scanner
from ascend_compat.jobs.shell_text import Piece, Word, reason, text_of

_BLANKS = re.compile(r"(?:[ \t\r\n]|\\\n)*")
_OPERATORS = re.compile(r"&&|\|\||[()]|[<>](?!\()")
_NUMERIC = {
    "-eq": lambda a, b: a == b,
    "-ne": lambda a, b: a != b,
    "-lt": lambda a, b: a < b,
    "-le": lambda a, b: a <= b,
    "-gt": lambda a, b: a > b,
    "-ge": lambda a, b: a >= b,
}
_INTEGER = re.compile(r"[-+]?\d{1,18}")
Answer = "bool | None"


class Test:
    """One condition; words that begin an operator keep their text, operands keep their pieces."""

    def __init__(self, words: list[Word], pattern: bool) -> None:
        self.words = words
        self.pattern = pattern
        self.next = 0
        self.depth = 0

    def answer(self) -> bool | None:
        """True, False, or None where the file does not decide it."""
        if not self.words:
            return False
        return self._or()

    def _peek(self) -> str:
        return text_of(self.words[self.next]) if self.next < len(self.words) else ""

    def _or(self) -> bool | None:
        left = self._and()
        while self._peek() in ("||", "-o"):
            self.next += 1
            right = self._and()
            left = True if left or right else None if left is None or right is None else False
        return left

    def _and(self) -> bool | None:
        left = self._not()
        while self._peek() in ("&&", "-a"):
            self.next += 1
            right = self._not()
            left = False if left is False or right is False else None if left is None or right is None else True
        return left

    def _not(self) -> bool | None:
        self.depth += 1
        if self.depth > 50:
            return None
        if self._peek() == "!" and self.next + 1 < len(self.words):
            self.next += 1
            inner = self._not()
            return None if inner is None else not inner
        if self._peek() == "(":
            self.next += 1
            inner = self._or()
            self.next += 1
            return inner
        return self._primary()

    def _primary(self) -> bool | None:
        rest = self.words[self.next :]
        if len(rest) >= 3 and text_of(rest[1]) not in ("&&", "||", "-a", "-o", ")"):
            self.next += 3
            return _compare(rest[0], text_of(rest[1]), rest[2], self.pattern)
        sign = text_of(rest[0]) if rest else ""
        if len(rest) >= 2 and len(sign) == 2 and sign[0] == "-" and sign[1].isalpha():
            self.next += 2
            return _single(sign, rest[1])
        self.next += 1
        return _filled(rest[0]) if rest else False


def _filled(word: Word) -> bool | None:
    if any(piece.text and piece.why is None and piece.maybe is None for piece in word):
        return True
    return None if reason(word) else False


def _single(sign: str, word: Word) -> bool | None:
    if sign in ("-n", "-z"):
        filled = _filled(word)
        return filled if sign == "-n" or filled is None else not filled
    if sign in "-e-c-f" and "/dev/davinci" in text_of(word):
        return True
    return None


def _compare(left: Word, sign: str, right: Word, pattern: bool) -> bool | None:
    if reason(left) or reason(right):
        return None
    one, two = text_of(left), text_of(right)
    if sign in ("=", "==", "!="):
        if pattern and any(letter in two for letter in "*?["):
            if len(one) > 1000 or len(two) > 200 or two.count("*") > 8:
                return None
            equal = fnmatch.fnmatchcase(one, two)
        else:
            equal = one == two
        return equal == (sign != "!=")
    if sign in _NUMERIC and _INTEGER.fullmatch(one.strip()) and _INTEGER.fullmatch(two.strip()):
        return bool(_NUMERIC[sign](int(one), int(two)))
    if sign in ("<", ">"):
        return one < two if sign == "<" else one > two
    return None


def condition(scan: Scanner, start: int, end: int, state: State) -> bool | None:
    """The answer of a test command between ``start`` and ``end`` in the source."""
    text = scan.text
    double = text.startswith("[[", start)
    if double:
        at, stop = start + 2, text.rfind("]]", start, end)
    elif text.startswith("[", start):
        at, stop = start + 1, text.rfind("]", start, end)
    else:
        at, stop = start + len("test"), end
    words: list[Word] = []
    while True:
        at = _BLANKS.match(text, at, stop).end()  # type: ignore[union-attr]
        if at >= stop:
            break
        match = _OPERATORS.match(text, at, stop)
        if match is not None:
            words.append([Piece(match.group(), scan.source, at, match.end() - at)])
            at = match.end()
            continue
        pieces, after = scan.word(at, stop, state)
        if after == at:
            return None
        words.append([piece for piece in pieces if piece.source.text or piece.text])
        at = after
    return Test(words, double).answer()
