"""What a predicate comes to for facts that are known, without DuckDB: most rules never have to be compiled.

Answers are DuckDB's, in three-valued logic, or ``UNSURE`` where it is not certain what DuckDB would say; trees come from
:mod:`ascend_compat.matrix.build_trees`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class _Unsure:
    __slots__ = ()

    def __repr__(self) -> str:
        return "UNSURE"


UNSURE: Final = _Unsure()
_LARGE = 2**62
_INTEGER = 2**31
# relative difference below which a computed fraction is not compared here
_NEAR = 1e-9
_LONG = 4096


class _Computed(float):
    """A number that arithmetic made; near another one, its last digits are DuckDB's to say."""

    __slots__ = ()


def settle(tree: Any, facts: Mapping[str, Any]) -> Any:
    """The value of a tree: a Python value, None for NULL, or ``UNSURE``.

    ``facts`` gives each fact's value; one it leaves out is NULL, one it holds as ``UNSURE`` is not the same for all jobs.
    """
    if type(tree) is not list:
        return tree
    operator = tree[0]
    if operator == "fact":
        return facts.get(tree[1])
    if operator == "and":
        return _all(tree, facts, False)
    if operator == "or":
        return _all(tree, facts, True)
    if operator == "case":
        return _case(tree, facts)
    if operator == "coalesce":
        return _coalesce(tree, facts)
    if operator == "?":
        return UNSURE
    values = [settle(argument, facts) for argument in tree[1:]]
    if operator in _STRICT:
        if None in values:
            return None
        if UNSURE in values or operator == "strict":
            return UNSURE
    elif operator == "in" and values[0] is None:
        return None
    elif UNSURE in values:
        return UNSURE
    return _ACTIONS[operator](operator, values)


def breaks(when: Any, requires: Any, facts: Mapping[str, Any]) -> Any:
    """Whether ``when AND NOT requires`` holds for two trees; None also where it is certain only that it does not."""
    asked = settle(when, facts)
    if asked is False:
        return False
    kept = settle(requires, facts)
    if kept is True:
        return False
    if asked is None or kept is None:
        return None
    if asked is not UNSURE and kept is not UNSURE:
        return asked is True
    if asked is UNSURE and _holds_null(when, "and", facts):
        return None
    return None if kept is UNSURE and _holds_null(requires, "or", facts) else UNSURE


def _holds_null(tree: Any, operator: str, facts: Mapping[str, Any]) -> bool:
    """Whether a NULL among what ``operator`` joins keeps the whole from being decisive."""
    return tree[0] == operator and any(settle(part, facts) is None for part in tree[1:])


def _all(tree: Sequence[Any], facts: Mapping[str, Any], decisive: bool) -> Any:
    """AND and OR: one decisive side settles it, whatever the others are."""
    found: Any = not decisive
    for index in range(1, len(tree)):
        value = settle(tree[index], facts)
        if value is decisive:
            return decisive
        if value is None:
            if found is not UNSURE:
                found = None
        elif value is not (not decisive):
            found = UNSURE
    return found


def _case(tree: Sequence[Any], facts: Mapping[str, Any]) -> Any:
    for index in range(1, len(tree) - 1, 2):
        chosen = settle(tree[index], facts)
        if chosen is True:
            return settle(tree[index + 1], facts)
        if chosen is not False and chosen is not None:
            return UNSURE
    return settle(tree[-1], facts)


def _coalesce(tree: Sequence[Any], facts: Mapping[str, Any]) -> Any:
    for index in range(1, len(tree)):
        value = settle(tree[index], facts)
        if value is not None:
            return value
    return None


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    return "text" if isinstance(value, str) else "list"


def _alike(left: Any, right: Any) -> bool:
    kind = _kind(left)
    return kind != "list" and kind == _kind(right)


def _close(left: Any, right: Any) -> bool:
    if type(left) is _Computed or type(right) is _Computed:
        return bool(abs(left - right) <= _NEAR * max(abs(left), abs(right)))
    return False


def _compare(operator: str, values: Sequence[Any]) -> Any:
    left, right = values
    if not _alike(left, right) or _close(left, right):
        return UNSURE
    if operator == "=":
        return left == right
    if operator == "<>":
        return left != right
    if _kind(left) != "number":
        return UNSURE
    if operator == ">":
        return left > right
    if operator == "<":
        return left < right
    return left >= right if operator == ">=" else left <= right


def _distinct(operator: str, values: Sequence[Any]) -> Any:
    left, right = values
    if left is None or right is None:
        return (left is right) is (operator == "same")
    if not _alike(left, right) or _close(left, right):
        return UNSURE
    return (left == right) is (operator == "same")


def _not(_: str, values: Sequence[Any]) -> Any:
    (value,) = values
    return not value if isinstance(value, bool) else UNSURE


def _null(operator: str, values: Sequence[Any]) -> Any:
    return (values[0] is None) is (operator == "null")


def _in(_: str, values: Sequence[Any]) -> Any:
    value = values[0]
    unknown = False
    for other in values[1:]:
        if other is None:
            unknown = True
        elif other is UNSURE or not _alike(value, other) or _close(value, other):
            return UNSURE
        elif value == other:
            return True
    return None if unknown else False


def _calculate(operator: str, values: Sequence[Any]) -> Any:
    left, right = values
    if _kind(left) != "number" or _kind(right) != "number":
        return UNSURE
    whole = isinstance(left, int) and isinstance(right, int)
    if operator == "/":
        return UNSURE if right == 0 else _Computed(left / right)
    if operator in ("//", "%"):
        if left < 0 or right <= 0 or type(left) is _Computed or type(right) is _Computed:
            return UNSURE
        if operator == "//":
            return left // right if whole else UNSURE
        return left % right
    result = left + right if operator == "+" else left - right if operator == "-" else left * right
    if not -_LARGE < result < _LARGE:
        return UNSURE
    return result if whole else _Computed(result)


def _cast(_: str, values: Sequence[Any]) -> Any:
    kind, value = values
    if kind == "VARCHAR":
        return value if isinstance(value, str) else UNSURE
    if kind == "BOOLEAN":
        return value if isinstance(value, bool) else UNSURE
    if kind == "DOUBLE":
        return _Computed(value) if _kind(value) == "number" else UNSURE
    if not isinstance(value, int):
        return UNSURE
    return int(value) if abs(value) < (_INTEGER if kind == "INTEGER" else _LARGE) else UNSURE


def _like(operator: str, values: Sequence[Any]) -> Any:
    text, pattern = values
    inner = pattern.strip("%") if isinstance(pattern, str) else "%"
    if not isinstance(text, str) or not inner or any(letter in inner for letter in "%_\\"):
        return UNSURE
    if pattern.startswith("%"):
        found = inner in text if pattern.endswith("%") else text.endswith(inner)
    else:
        found = text.startswith(inner) if pattern.endswith("%") else text == inner
    return found is (operator == "~~")


def _text(operator: str, values: Sequence[Any]) -> Any:
    first = values[0]
    if operator == "len":
        return len(first) if isinstance(first, list) else UNSURE
    if operator == "lower":
        return first.lower() if isinstance(first, str) and first.isascii() else UNSURE
    second = values[1]
    if operator == "matches":
        if not isinstance(first, str) or len(first) > _LONG or not first.isascii() or "\n" in first:
            return UNSURE
        return re.search(second, first) is not None
    return second in first if isinstance(first, str) and isinstance(second, str) else UNSURE


def _has(_: str, values: Sequence[Any]) -> Any:
    """``list_contains``; a NULL in an empty list is false or NULL, as DuckDB's plan has it."""
    held, value = values
    if held is None:
        return None
    if value is None or not isinstance(held, list) or not all(_alike(each, value) for each in held):
        return UNSURE
    return value in held


_ACTIONS = {
    **dict.fromkeys(("=", "<>", ">", ">=", "<", "<="), _compare),
    **dict.fromkeys(("distinct", "same"), _distinct),
    **dict.fromkeys(("null", "stated"), _null),
    "in": _in,
    **dict.fromkeys(("+", "-", "*", "/", "//", "%"), _calculate),
    **dict.fromkeys(("~~", "!~~"), _like),
    **dict.fromkeys(("len", "lower", "contains", "matches"), _text),
    "list_contains": _has,
    "not": _not,
    "cast": _cast,
}
# NULL when an argument is
_STRICT = frozenset(("strict", *(set(_ACTIONS) - {"distinct", "same", "null", "stated", "in", "list_contains"})))
