"""What a SQL predicate over facts can be told without running it: its names, its NULL tests, its simple terms."""

from __future__ import annotations

import re
from typing import Any

_STRING = re.compile(r"'(?:[^']|'')*'")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NULL_TEST = re.compile(
    r"\b([A-Za-z_]\w*)\s+IS\s+(?:NOT\s+)?(?:NULL|TRUE|FALSE|DISTINCT)\b|\b(?:coalesce|ifnull)\s*\(\s*([A-Za-z_]\w*)",
    re.IGNORECASE,
)
_LITERAL = r"(?:-?\d+(?:\.\d+)?|'(?:[^']|'')*'|true|false)"
_COMPARED = re.compile(rf"([a-z_]\w*)\s*(=|<>|!=|>=|<=|>|<)\s*({_LITERAL})\Z", re.IGNORECASE)
_MEMBER = re.compile(rf"([a-z_]\w*)\s+(NOT\s+)?IN\s*\(\s*({_LITERAL}(?:\s*,\s*{_LITERAL})*)\s*\)\Z", re.IGNORECASE)
_TESTED = re.compile(r"([a-z_]\w*)\s+IS\s+(NOT\s+)?(NULL|TRUE|FALSE)\Z", re.IGNORECASE)
_BARE = re.compile(r"(NOT\s+)?([a-z_]\w*)\Z", re.IGNORECASE)
_ONE = re.compile(_LITERAL, re.IGNORECASE)
_LENIENT = re.compile(r"\b(?:AND|OR|CASE|COALESCE|IFNULL|IS|EXISTS|SELECT|CONCAT|GREATEST|LEAST)\b", re.IGNORECASE)
_NOT_SPLIT = re.compile(r"\b(?:CASE|BETWEEN)\b", re.IGNORECASE)

Term = list[Any]


def names_in(sql: str) -> set[str]:
    """Words of an expression outside string literals."""
    return set(_WORD.findall(_STRING.sub("''", sql)))


def null_tested(sql: str) -> set[str]:
    """Facts whose being NULL an expression tests."""
    return {first or second for first, second in _NULL_TEST.findall(_STRING.sub("''", sql))}


def terms(sql: str, word: str, facts: set[str]) -> list[Term]:
    """The terms that ``word`` (AND or OR) joins at the top of an expression, as ``[fact, operator, literal]``.

    A term that is not simple but NULL whenever one of its facts is comes as ``["", "strict", [facts]]``; any other is left
    out, so an AND can be refuted and an OR confirmed by one of them, never the reverse.
    """
    if _NOT_SPLIT.search(_STRING.sub("''", sql)):
        return []
    other = "OR" if word == "AND" else "AND"
    if word == "AND" and len(_split(sql, other)) > 1:
        return []
    found = []
    for part in _split(sql, word):
        bare = _bared(part)
        term = _term(bare)
        if term is not None and term[0] in facts:
            found.append(term)
        elif term is None and not _LENIENT.search(_STRING.sub("''", bare)):
            found.append(["", "strict", sorted(names_in(bare) & facts)])
    return found


def _split(sql: str, word: str) -> list[str]:
    parts, depth, start, position = [], 0, 0, 0
    pattern = re.compile(rf"\s{word}\s", re.IGNORECASE)
    while position < len(sql):
        character = sql[position]
        if character == "'":
            match = _STRING.match(sql, position)
            position = match.end() if match else len(sql)
            continue
        depth += (character in "([") - (character in ")]")
        match = pattern.match(sql, position) if depth == 0 and character.isspace() else None
        if match:
            parts.append(sql[start:position])
            start = position = match.end() - 1
            continue
        position += 1
    return [*parts, sql[start:]]


def _bared(part: str) -> str:
    part = part.strip()
    while part.startswith("(") and part.endswith(")") and _closes_at_end(part):
        part = part[1:-1].strip()
    return part


def _closes_at_end(part: str) -> bool:
    depth = 0
    for position, character in enumerate(_STRING.sub(lambda match: "x" * len(match.group()), part)):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return position == len(part) - 1
    return False


def _term(part: str) -> Term | None:
    if match := _COMPARED.match(part):
        return [match[1], "<>" if match[2] == "!=" else match[2], _value(match[3])]
    if match := _MEMBER.match(part):
        return [match[1], "not in" if match[2] else "in", [_value(text) for text in _ONE.findall(match[3])]]
    if match := _TESTED.match(part):
        return [match[1], f"is {'not ' if match[2] else ''}{match[3].lower()}", None]
    if match := _BARE.match(part):
        return [match[2], "=", not match[1]]
    return None


def _value(text: str) -> Any:
    if text.startswith("'"):
        return text[1:-1].replace("''", "'")
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    return float(text) if "." in text else int(text)


def holds(term: Term, value: Any) -> bool | None:
    """Three-valued truth of a simple term for a fact's value (None is NULL); None also where Python cannot be sure."""
    _, operator, literal = term
    if operator.startswith("is"):
        tested = {"null": value is None, "true": value is True, "false": value is False}[operator.rpartition(" ")[2]]
        return tested is not operator.startswith("is not")
    if value is None:
        return None
    if operator in ("in", "not in"):
        if any(_kind(value) != _kind(each) for each in literal):
            return None
        return (value in literal) is (operator == "in")
    if _kind(value) != _kind(literal):
        return None
    if operator in ("=", "<>"):
        return bool(value == literal) is (operator == "=")
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    return bool({">": value > literal, ">=": value >= literal, "<": value < literal, "<=": value <= literal}[operator])


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, (int, float)) else type(value).__name__
