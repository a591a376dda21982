"""``$(( … ))``, ``let`` and ``(( … ))``: 64-bit integer arithmetic as bash does it, over text."""

from __future__ import annotations

import re
from collections.abc import Callable

_TOKEN = re.compile(
    r"\s*(?:(0[xX][0-9a-fA-F]+|\d+#\w+|\d+)|([A-Za-z_]\w*)"
    r"|(\*\*|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||\+\+|--|[-+*/%&|^]=|[-+*/%<>=!~&|^?:(),]))"
)
_BINARY = {
    "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, "<=": 7, ">": 7, ">=": 7,
    "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10, "**": 12,
}  # fmt: skip
_ASSIGN = frozenset(("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="))
_DEPTH = 60


class NotANumber(Exception):
    """The expression is not arithmetic that can be worked out."""


class Arithmetic:
    """Works out one expression. ``read`` gives a variable's number, ``write`` takes an assignment."""

    def __init__(self, text: str, read: Callable[[str], int], write: Callable[[str, int], None]) -> None:
        self.read, self.write = read, write
        self.tokens: list[tuple[str, str, str]] = []
        self.next = self.depth = 0
        position = 0
        text = text.rstrip()
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None or len(self.tokens) > 2000:
                raise NotANumber
            number, name, sign = match.groups(default="")
            self.tokens.append((number, name, sign))
            position = match.end()

    def value(self) -> int:
        """The number. Raises :class:`NotANumber`."""
        if not self.tokens:
            return 0
        number = self._comma()
        if self.next != len(self.tokens):
            raise NotANumber
        return number

    def _peek(self) -> str:
        return self.tokens[self.next][2] if self.next < len(self.tokens) else ""

    def _eat(self, sign: str) -> bool:
        if self._peek() != sign:
            return False
        self.next += 1
        return True

    def _comma(self) -> int:
        self.depth += 1
        if self.depth > _DEPTH:
            raise NotANumber
        number = self._assignment()
        while self._eat(","):
            number = self._assignment()
        self.depth -= 1
        return number

    def _assignment(self) -> int:
        if self.next + 1 < len(self.tokens):
            name, sign = self.tokens[self.next][1], self.tokens[self.next + 1][2]
            if name and sign in _ASSIGN:
                self.next += 2
                number = self._assignment()
                if sign != "=":
                    number = _apply(sign[:-1], self.read(name), number)
                self.write(name, number)
                return number
        number = self._binary(1)
        if self._eat("?"):
            yes = self._comma()
            if not self._eat(":"):
                raise NotANumber
            no = self._assignment()
            return yes if number else no
        return number

    def _binary(self, least: int) -> int:
        left = self._unary()
        while True:
            sign = self._peek()
            rank = _BINARY.get(sign, 0)
            if rank < least or not rank:
                return left
            self.next += 1
            right = self._binary(rank if sign == "**" else rank + 1)
            left = _apply(sign, left, right)

    def _unary(self) -> int:
        self.depth += 1
        if self.next >= len(self.tokens) or self.depth > _DEPTH:
            raise NotANumber
        number, name, sign = self.tokens[self.next]
        self.next += 1
        if number:
            result = _number(number)
        elif name:
            result = self.read(name)
            if self._peek() in ("++", "--"):
                self.write(name, result + (1 if self._peek() == "++" else -1))
                self.next += 1
        elif sign == "(":
            result = self._comma()
            if not self._eat(")"):
                raise NotANumber
        elif sign in ("++", "--") and self.next < len(self.tokens) and self.tokens[self.next][1]:
            name = self.tokens[self.next][1]
            self.next += 1
            result = self.read(name) + (1 if sign == "++" else -1)
            self.write(name, result)
        elif sign in ("-", "+", "!", "~"):
            operand = self._unary()
            result = {"-": -operand, "+": operand, "!": int(not operand), "~": ~operand}[sign]
        else:
            raise NotANumber
        self.depth -= 1
        return result


def _number(text: str) -> int:
    if len(text) > 30:
        raise NotANumber
    try:
        if "#" in text:
            base, digits = text.split("#")
            return int(digits, int(base))
        if text[:2] in ("0x", "0X"):
            return int(text, 16)
        return int(text, 8) if len(text) > 1 and text[0] == "0" else int(text)
    except ValueError:
        raise NotANumber from None


def _apply(sign: str, left: int, right: int) -> int:
    if sign in ("/", "%"):
        if right == 0:
            raise NotANumber
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return quotient if sign == "/" else left - quotient * right
    if sign == "**":
        if not 0 <= right <= 64 or abs(left) > 2**32:
            raise NotANumber
        return _wrap(left**right)
    if sign in ("<<", ">>"):
        if not 0 <= right < 64:
            raise NotANumber
        return _wrap(left << right if sign == "<<" else left >> right)
    return _wrap(_PLAIN[sign](left, right))


def _wrap(number: int) -> int:
    return (number + 2**63) % 2**64 - 2**63


_PLAIN: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "|": lambda a, b: a | b,
    "&": lambda a, b: a & b,
    "^": lambda a, b: a ^ b,
    "&&": lambda a, b: int(bool(a) and bool(b)),
    "||": lambda a, b: int(bool(a) or bool(b)),
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
    "<": lambda a, b: int(a < b),
    "<=": lambda a, b: int(a <= b),
    ">": lambda a, b: int(a > b),
    ">=": lambda a, b: int(a >= b),
}
