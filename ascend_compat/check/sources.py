"""Where something is written, as documents state it and as one address."""

from __future__ import annotations

import json
from typing import Any


def parsed(source: str) -> dict[str, Any]:
    """A source column of the database as the document it came from."""
    if source.startswith("{"):
        parsed = json.loads(source)
        if isinstance(parsed, dict):
            return parsed
    return {"url": source}


def address_of(source: str) -> str:
    """The address of a source column."""
    return address(parsed(source))


def address(source: dict[str, Any]) -> str:
    """A source document as one address: a page, or ``repo:path@commit``."""
    if "url" in source:
        return str(source["url"])
    place = str(source.get("path", ""))
    if source.get("line"):
        place += f":{source['line']}"
    commit = str(source.get("commit", ""))[:12]
    return f"{source.get('repo', '')}:{place}" + (f"@{commit}" if commit else "")
