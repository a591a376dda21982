"""How jobs say things: the keys of every framework, by the fact they set."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import duckdb

    from ascend_compat.docs.source import Source


class Keys:
    """Keys and features of every framework that has them."""

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        rows = con.execute("SELECT framework, body FROM framework_spec ORDER BY framework").fetchall()
        bodies = {framework: json.loads(body) for framework, body in rows}
        self.documents: dict[str, dict[str, Any]] = {name: body["framework"] or {} for name, body in bodies.items()}
        self.keys: dict[str, list[dict[str, Any]]] = {
            name: (body["keys"] or {}).get("keys") or [] for name, body in bodies.items()
        }
        self._derived = {
            name: {entry["fact"]: entry["sql"] for entry in document.get("derived") or ()}
            for name, document in self.documents.items()
        }

    def asking(self, feature: str) -> Iterator[tuple[str, str]]:
        """Frameworks whose jobs can ask for a feature, and when they do."""
        for framework, document in self.documents.items():
            for entry in document.get("features") or ():
                if entry["feature"] == feature:
                    yield framework, entry["when"]

    def of_facts(self, framework: str, names: Iterable[str]) -> list[dict[str, Any]]:
        """Keys that set one of the facts; those of the facts that one of them is derived from where it has none itself."""
        wanted = set(names)
        found = [key for key in self.keys[framework] if key.get("fact") in wanted]
        missing = wanted - {key["fact"] for key in found}
        further = {word for fact in missing for word in _words(self._derived[framework].get(fact, ""))} - wanted
        return found + [key for key in self.keys[framework] if key.get("fact") in further]


def _words(sql: str) -> list[str]:
    import re

    return re.findall(r"[a-z_][a-z0-9_]*", sql)


def text_of(source: Source, key: dict[str, Any]) -> str:
    """When a key exists and what it may say, in brackets; empty where nothing is to be said."""
    said = []
    if key.get("choices"):
        said.append(" | ".join(str(each) for each in key["choices"][:8]))
    if key.get("since"):
        said.append(source.t(f"since {key['since']}", f"自 {key['since']}"))
    if key.get("until"):
        said.append(source.t(f"until {key['until']}", f"至 {key['until']}"))
    return f" ({'; '.join(said)})" if said else ""
