"""What a setting's value means under its key's type."""

from __future__ import annotations

import json
import re

from ascend_compat.jobs.model import Scalar, Unresolved, Value
from ascend_compat.jobs.spec import Key
from ascend_compat.jobs.yaml_tree import plain

FactValue = Scalar | list[int] | list[str]
_TRUE = frozenset(("true", "yes", "on", "1", "y"))
_FALSE = frozenset(("false", "no", "off", "0", "n"))
_SPLIT = re.compile(r"[,\s]+")
SKIP = object()


class WrongType(ValueError):
    """A value that its key's type does not take."""


def as_words(value: Value) -> str:
    """A value as a user would write it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, dict)):
        return json.dumps(value, ensure_ascii=False, default=str)
    return "null" if value is None else str(value)


def hydra_value(text: str) -> Value:
    """A hydra override's text as its grammar reads it: quotes off, ``[a,b]`` a list, ``null`` None."""
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    if text.startswith("[") and text.endswith("]"):
        return [hydra_value(part) for part in _parts(text[1:-1])]
    return plain(text)


def _parts(text: str) -> list[str]:
    parts, depth, quote, current = [], 0, "", ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "[{":
            depth += 1
        elif letter in "]}":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(current)
            current = ""
            continue
        current += letter
    return [part for part in [*parts, current] if part.strip()]


def unresolved_in(value: Value) -> Unresolved | None:
    """The first part of a value that is not known."""
    if isinstance(value, Unresolved):
        return value
    inner: list[Value] = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    for part in inner:
        found = unresolved_in(part)
        if found is not None:
            return found
    return None


def typed(value: Value, key: Key) -> FactValue | object:
    """The fact value a setting gives; :data:`SKIP` where it states nothing. Raises :class:`WrongType`."""
    mapping = key.raw.get("values")
    if mapping:
        word = as_words(value)
        for spelling in (word, word.lower()):
            if spelling in mapping:
                meant = mapping[spelling]
                return SKIP if meant is None else meant
    if value is None:
        return None
    if key.type == "flag":
        on = _boolean(value)
        if key.raw.get("no"):
            return not on
        return on if on else SKIP
    return _CONVERT[key.type](value)


def _boolean(value: Value) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise WrongType


def _integer(value: Value) -> int:
    if isinstance(value, str):
        value = plain(value.strip().strip("'\"")) if value.strip() else value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise WrongType
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")) or value != int(value):
            raise WrongType
        value = int(value)
    if abs(value) >= 2**63:
        raise WrongType
    return value


def _number(value: Value) -> float | int:
    if isinstance(value, str):
        try:
            return float(value.strip().strip("'\""))
        except ValueError:
            raise WrongType from None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise WrongType
    return value


def _text(value: Value) -> str:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return " ".join(str(item) for item in value)
    return as_words(value)


def _integers(value: Value) -> list[int]:
    if isinstance(value, str):
        value = [part for part in _SPLIT.split(value.strip("[]() '\"")) if part]
    return [_integer(item) for item in (value if isinstance(value, list) else [value])]


def _texts(value: Value) -> list[str]:
    if isinstance(value, str):
        return [part.strip().strip("'\"") for part in value.strip("[]").split(",") if part.strip()]
    return [as_words(item) for item in (value if isinstance(value, list) else [value])]


_CONVERT = {
    "integer": _integer,
    "number": _number,
    "text": _text,
    "boolean": _boolean,
    "integers": _integers,
    "texts": _texts,
}
