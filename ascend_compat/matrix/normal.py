"""The one spelling under which differently written names meet."""

from __future__ import annotations

import re

_POINT = re.compile(r"(?<=\d)(?:point|p)(?=\d)")
_TOKEN = re.compile(r"\d+(?:\.\d+)*|[a-z]+|[^\W\d_a-z]+")


def normal(text: str) -> str:
    """A name in lower-case tokens of letters or digits joined by ``-``: ``Qwen2.5_7B`` is ``qwen-2.5-7-b``.

    A point between digits stays, so that sizes and versions cannot run into one another.
    """
    return "-".join(_TOKEN.findall(_POINT.sub(".", text.casefold())))


def squashed(text: str) -> str:
    """A name without any separator, for vocabularies in which no two names differ by separators alone."""
    return re.sub(r"[\W_]+", "", text.casefold().replace("+", "plus"))


def release_key(text: object) -> str:
    """A release's spelling without case and without a leading ``v``; empty for None."""
    name = str(text or "").strip().casefold()
    return name[1:] if name[:1] == "v" and name[1:2].isdigit() else name
