"""Recipes into their table: each with what it inherits, and the digest evidence of it is held to."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from ascend_compat.errors import DataError
from ascend_compat.matrix.build import Table, json_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

_MERGED = ("facts", "settings", "families", "model", "data", "expect", "tolerance", "experts")


def recipe_files() -> list[Path]:
    """Every recipe of the installed data, by name."""
    from ascend_compat.resources import runners_dir

    return sorted((runners_dir() / "recipes").glob("*.yaml"))


def read_recipes() -> list[dict[str, Any]]:
    """Every recipe, completed by the one it is like; raises :class:`DataError` for one like no other."""
    from ascend_compat.matrix.documents import load_document

    bodies: dict[str, dict[str, Any]] = {}
    for file in recipe_files():
        body = load_document(file, file.parent).body
        bodies[str(body.get("name"))] = body
    return [_complete(name, bodies, ()) for name in bodies]


def table(recipes: Iterable[Mapping[str, Any]]) -> Table:
    """The table ``recipe``."""
    made = Table(
        "recipe",
        {
            "name": "VARCHAR",
            "framework": "VARCHAR",
            "features": "VARCHAR[]",
            "title_en": "VARCHAR",
            "title_zh": "VARCHAR",
            "digest": "VARCHAR",
            "body": "VARCHAR",
        },
    )
    for body in recipes:
        made.add(
            name=body["name"],
            framework=body["framework"],
            features=list(body["features"]),
            title_en=body["title"]["en"],
            title_zh=body["title"]["zh"],
            digest=digest_of(body),
            body=json_text(body),
        )
    return made


def digest_of(body: Mapping[str, Any]) -> str:
    """``sha256:…`` of a document's content, whatever the order of its keys; its titles say nothing of what runs."""
    content = {name: value for name, value in body.items() if name not in ("title", "digest")}
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def _complete(name: str, bodies: Mapping[str, dict[str, Any]], seen: tuple[str, ...]) -> dict[str, Any]:
    body = bodies[name]
    like = body.get("like")
    if like is None:
        return _without_nulls(body)
    if like not in bodies or like in seen:
        raise DataError(f"recipe {name} is like {like}, which is no recipe before it")
    made = dict(_complete(like, bodies, (*seen, name)))
    for key, value in body.items():
        if key in _MERGED and _mappings(made.get(key), value):
            made[key] = _merged(made[key], value)
        else:
            made[key] = value
    made.pop("like")
    return _without_nulls(made)


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    both = {name: _merged(below[name], value) for name, value in above.items() if _mappings(below.get(name), value)}
    return {**below, **above, **both}


def _mappings(*values: Any) -> bool:
    return all(isinstance(value, dict) for value in values)


def _without_nulls(body: dict[str, Any]) -> dict[str, Any]:
    """A recipe in which what it states as null, to undo an inherited value, is gone."""
    return {
        key: {name: item for name, item in value.items() if item is not None} if key in _MERGED else value
        for key, value in body.items()
    }
