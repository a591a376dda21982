"""A site's own defaults: ``ascend-compat.toml`` in the working directory or one above it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ascend_compat.errors import UsageError

_LINE = re.compile(r'^\s*(\w+)\s*=\s*"([^"]*)"\s*(?:#.*)?$')
_KNOWN = ("product", "release")
_MAX_BYTES = 100_000


@dataclass(frozen=True, slots=True)
class Site:
    """What a site says where the command line does not."""

    product: str | None = None
    release: str | None = None


def site_settings(start: Path | None = None) -> Site:
    """Settings of the nearest ``ascend-compat.toml``; raises :class:`UsageError` on a line it does not know.

    The file holds ``key = "text"`` lines only, a subset of TOML that needs no parser on Python 3.10.
    """
    folder = start or Path.cwd()
    for place in (folder, *folder.parents):
        path = place / "ascend-compat.toml"
        if path.is_file():
            return _read(path)
    return Site()


def _read(path: Path) -> Site:
    values: dict[str, str] = {}
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise UsageError(f"{path} is larger than {_MAX_BYTES // 1000} kB")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {error}") from None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.match(line)
        if match is None or match.group(1) not in _KNOWN:
            raise UsageError(f'{path}:{number}: expected {" or ".join(_KNOWN)} = "…", found {line.strip()!r}')
        values[match.group(1)] = match.group(2)
    return Site(**values)
