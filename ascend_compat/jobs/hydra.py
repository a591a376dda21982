"""Hydra's override words: ``a.b=c``, ``+a.b=c``, ``++a.b=c``, ``~a.b``, lists, dicts, quotes and references."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ascend_compat.jobs.model import Scalar, Value

_KEY = re.compile(r"(\+\+|\+|~)?([A-Za-z_$][\w$./:@-]*|\.)")
_INTEGER = re.compile(r"[+-]?(?:0|[1-9](?:_?\d)*)")
_FLOAT = re.compile(
    r"[+-]?(?:(?:\d(?:_?\d)*\.(?:\d(?:_?\d)*)?|\.\d(?:_?\d)*)(?:[eE][+-]?\d+)?|\d(?:_?\d)*[eE][+-]?\d+|inf|nan)",
    re.IGNORECASE,
)
_PLAIN = re.compile(r"[^\s\\,:=\[\]{}()'\"$]+|[=]")
_MAX_DEPTH = 40


class Malformed(Exception):
    """Hydra's grammar refuses the word at character ``at``."""

    def __init__(self, at: int, en: str, zh: str) -> None:
        super().__init__(en)
        self.at, self.en, self.zh = at, en, zh


@dataclass(frozen=True, slots=True)
class Override:
    """One override. ``start`` is the character at which its value begins; -1 where it has none (``~a.b``)."""

    prefix: str
    key: str
    value: Value
    start: int


def parse(word: str) -> Override:
    """The override that ``word`` is. Raises :class:`Malformed`."""
    match = _KEY.match(word)
    if match is None:
        raise Malformed(0, "a key is expected", "此处应为键名")
    prefix, key, end = match.group(1) or "", match.group(2), match.end()
    if end == len(word):
        if prefix == "~":
            return Override(prefix, key, None, -1)
        raise Malformed(end, "= is missing after the key", "键名后缺少 =")
    if word[end] != "=":
        raise Malformed(end, f"{word[end]!r} cannot stand in a key", f"键名中不能出现 {word[end]!r}")
    return Override(prefix, key, _Reader(word, end + 1).whole(), end + 1)


class _Reader:
    """Reads a value of hydra's grammar."""

    def __init__(self, text: str, at: int) -> None:
        self.text, self.at, self.depth = text, at, 0

    def whole(self) -> Value:
        self._blanks()
        if self.at >= len(self.text):
            return ""
        values = [self._element()]
        self._blanks()
        while self._next(","):
            values.append(self._element())
            self._blanks()
        if self.at < len(self.text):
            letter = self.text[self.at]
            raise Malformed(self.at, f"{letter!r} is not expected here", f"此处不应出现 {letter!r}")
        return values[0] if len(values) == 1 else ",".join(str(value) for value in values)

    def _blanks(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in " \t\n":
            self.at += 1

    def _next(self, sign: str) -> bool:
        self._blanks()
        if self.text.startswith(sign, self.at):
            self.at += 1
            return True
        return False

    def _element(self) -> Value:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise Malformed(self.at, "brackets are nested too deep", "括号嵌套过深")
        self._blanks()
        start = self.text[self.at : self.at + 1]
        value: Value
        if start == "[":
            value = self._list()
        elif start == "{":
            value = self._dict()
        elif start and start in "'\"":
            value = self._quoted(start)
            self._blanks()
        else:
            value = self._primitive()
        self.depth -= 1
        return value

    def _list(self) -> list[Value]:
        opened = self.at
        self.at += 1
        items: list[Value] = []
        if self._next("]"):
            return items
        while True:
            items.append(self._element())
            if self._next("]"):
                return items
            if not self._next(","):
                raise Malformed(
                    min(self.at, len(self.text) - 1) if self.at < len(self.text) else opened,
                    "the list is not closed",
                    "列表未闭合",
                )

    def _dict(self) -> dict[str, Value]:
        opened = self.at
        self.at += 1
        items: dict[str, Value] = {}
        if self._next("}"):
            return items
        while True:
            name = self._element()
            if not self._next(":"):
                raise Malformed(
                    self.at if self.at < len(self.text) else opened,
                    "a dict entry needs key:value",
                    "字典项应写作 键:值",
                )
            items[str(name)] = self._element()
            if self._next("}"):
                return items
            if not self._next(","):
                raise Malformed(self.at if self.at < len(self.text) else opened, "the dict is not closed", "字典未闭合")

    def _quoted(self, quote: str) -> str:
        opened = self.at
        self.at += 1
        letters: list[str] = []
        while self.at < len(self.text):
            letter = self.text[self.at]
            if letter == "\\" and self.text[self.at + 1 : self.at + 2] in (quote, "\\"):
                letters.append(self.text[self.at + 1])
                self.at += 2
                continue
            self.at += 1
            if letter == quote:
                return "".join(letters)
            letters.append(letter)
        raise Malformed(opened, "the quote is not closed", "引号未闭合")

    def _primitive(self) -> Value:
        start = self.at
        letters: list[str] = []
        plain = True
        while self.at < len(self.text):
            letter = self.text[self.at]
            match = _PLAIN.match(self.text, self.at)
            if match is not None:
                letters.append(match.group())
                self.at = match.end()
            elif letter == "\\" and self.at + 1 < len(self.text):
                letters.append(self.text[self.at + 1])
                plain = False
                self.at += 2
            elif letter == "$" and self.text.startswith("${", self.at):
                letters.append(self._reference())
                plain = False
            elif letter == "(":
                letters.append(self._call())
                plain = False
            elif self._plain_here(letter):
                letters.append(letter)
                self.at += 1
            else:
                break
        if self.at == start:
            letter = self.text[start : start + 1]
            if letter in ("", ",", "]", "}"):
                shown = repr(letter) if letter else "the end"
                raise Malformed(start, f"a value is expected before {shown}", f"{letter or '结尾'} 之前应有值")
            raise Malformed(start, f"{letter!r} is not expected here", f"此处不应出现 {letter!r}")
        text = "".join(letters).strip()
        return scalar(text) if plain else text

    def _plain_here(self, letter: str) -> bool:
        if letter == ":":
            return not (self.depth > 1 and self._inside_dict())
        return letter == "$" or (letter in " \t" and bool(self.text[self.at :].strip(" \t")) and self._more_words())

    def _inside_dict(self) -> bool:
        head = self.text[: self.at]
        return head.rfind("{") > head.rfind("[") or (head.count("{") > head.count("}"))

    def _more_words(self) -> bool:
        rest = self.text[self.at :].lstrip(" \t")
        return rest[0] not in ",]}:[{'\"="

    def _reference(self) -> str:
        start, depth = self.at, 0
        while self.at < len(self.text):
            if self.text.startswith("${", self.at):
                depth += 1
                self.at += 1
            elif self.text[self.at] == "}":
                depth -= 1
                if not depth:
                    self.at += 1
                    return self.text[start : self.at]
            self.at += 1
        raise Malformed(start, "${ is not closed", "${ 未闭合")

    def _call(self) -> str:
        end = self.text.find(")", self.at)
        if end < 0:
            raise Malformed(self.at, "the bracket is not closed", "括号未闭合")
        call = self.text[self.at : end + 1]
        self.at = end + 1
        return call


def scalar(text: str) -> Scalar:
    """An unquoted value as hydra types it: true, false, null, integer, number, or the text."""
    lowered = text.lower()
    if lowered in ("true", "false"):
        return lowered == "true"
    if lowered == "null":
        return None
    if len(text) < 300:
        if _INTEGER.fullmatch(text):
            return int(text.replace("_", ""))
        if _FLOAT.fullmatch(text):
            return float(text.replace("_", ""))
    return text
