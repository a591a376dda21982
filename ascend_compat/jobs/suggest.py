"""The known key nearest to a misspelt one."""

from __future__ import annotations

from collections.abc import Collection
from difflib import SequenceMatcher, get_close_matches

_CUTOFF = 0.72


def nearest(name: str, known: Collection[str]) -> str | None:
    """The known key a user most likely meant; None when nothing is close.

    A key whose last part is spelt the same but stands in another section comes first, then the closest spelling.
    """
    if "." in name:
        last = name.rpartition(".")[2]
        same = [key for key in known if key.rpartition(".")[2] == last and "." in key]
        if same:
            return max(same, key=lambda key: (_common(key, name), -len(key)))
    folded = {key.replace("-", "_").lower(): key for key in known}
    wanted = name.replace("-", "_").lower()
    longer = [key for key in folded if key.startswith(wanted)]
    if longer:
        return folded[min(longer, key=lambda key: (len(key), key))]
    size = len(wanted)
    pool = [key for key in folded if abs(len(key) - size) <= max(3, size // 3)]
    if "." in wanted:
        last = wanted.rpartition(".")[2]
        pool = [key for key in pool if _alike(key.rpartition(".")[2], last)]
    found = get_close_matches(wanted, pool, n=1, cutoff=_CUTOFF)
    return folded[found[0]] if found else None


def _alike(one: str, other: str) -> bool:
    matcher = SequenceMatcher(None, one, other)
    return matcher.quick_ratio() >= _CUTOFF and matcher.ratio() >= _CUTOFF


def _common(one: str, other: str) -> int:
    return len(set(one.split(".")) & set(other.split(".")))
