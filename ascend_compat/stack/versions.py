"""Versions of the Ascend stack as keys that compare: PyPI's, CANN's, the driver's and Megatron branch names alike.

The order is that of the registries in ``matrix/stacks/`` (tested against them): development builds, then alpha, beta and
release candidates, then the release, then its post releases. CANN's ``8.0.0.alpha002`` came after ``8.0.RC3`` and sorts so.
``matrix/macros.py`` gives rules the same order as the SQL macro ``version_key``.
"""

from __future__ import annotations

import re
from functools import lru_cache

# below every number, so that a version that stops sorts before one that goes on
_END = -2
_TAGS = {"dev": -6, "alpha": -5, "a": -5, "beta": -4, "b": -4, "rc": -3, "c": -3, "post": -1}
_TOKEN = re.compile(r"\d+|[a-z]+")
_LOCAL = re.compile(r"[+@].*")
_BUILD = re.compile(r"\.b\d+$")
_SHORT = (re.compile(r"^([^0-9]*[0-9]+)$"), re.compile(r"^([^0-9]*[0-9]+\.[0-9]+)$"))
_ZEROS = re.compile(r"^([^0-9]*[0-9]+\.[0-9]+\.[0-9]+)(\.0+)+$")
_DIGITS = 18


@lru_cache(maxsize=4096)
def version_key(version: str) -> tuple[int, ...]:
    """A version as integers that compare; empty when it holds no number.

    A local part (``+cpu``, ``@commit``) and a CANN build tag (``.B150``) do not count; ``2.7`` equals ``2.7.0``.
    """
    text = _BUILD.sub("", _LOCAL.sub("", version.strip().lower()))
    if _SHORT[0].match(text):
        text += ".0"
    if _SHORT[1].match(text):
        text += ".0"
    text = _ZEROS.sub(r"\1", text)
    key: list[int] = []
    number = False
    for token in _TOKEN.findall(text):
        if token.isdigit():
            key.append(int(token[:_DIGITS]))
            number = True
        elif token in _TAGS and number:
            key.append(_TAGS[token])
    return (*key, _END) if number else ()


def release_of(version: str) -> str:
    """The release a build belongs to: ``2.7.1.post2`` and ``2.7.1.dev20250724`` are of ``2.7.1``, ``2.5.1+cpu`` of ``2.5.1``."""
    text = _LOCAL.sub("", version.strip())
    return re.sub(r"[.\-_]?(?:post|dev|rc|alpha|beta|a|b|c)\.?\d*.*$", "", text, flags=re.IGNORECASE)


def cann_name(version: str) -> str:
    """A CANN version as the tables write it: ``8.2.rc1`` is ``8.2.RC1``, ``V100R001`` and build tags are left out."""
    text = version.strip().lstrip("vV")
    text = re.sub(r"\.?[Bb]\d{3,}$", "", text)
    text = re.sub(r"[.\-]?rc\.?(\d)", r".RC\1", text, flags=re.IGNORECASE)
    return re.sub(r"[.\-]?(alpha|beta)\.?(\d)", r".\1\2", text, flags=re.IGNORECASE)
