"""What the text of a SQL predicate over facts tells: its names, its NULL tests."""

from __future__ import annotations

import re
from functools import lru_cache

_STRING = re.compile(r"'(?:[^']|'')*'")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NULL_TEST = re.compile(
    r"\b([A-Za-z_]\w*)\s+IS\s+(?:NOT\s+)?(?:NULL|TRUE|FALSE|DISTINCT)\b|\b(?:coalesce|ifnull)\s*\(\s*([A-Za-z_]\w*)",
    re.IGNORECASE,
)


@lru_cache(maxsize=4096)
def names_in(sql: str) -> frozenset[str]:
    """Words of an expression outside string literals."""
    return frozenset(_WORD.findall(_STRING.sub("''", sql)))


def null_tested(sql: str) -> set[str]:
    """Facts whose being NULL an expression tests."""
    return {first or second for first, second in _NULL_TEST.findall(_STRING.sub("''", sql))}
