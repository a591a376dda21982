"""Recipes: small declared jobs that can really run."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ascend_compat.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import duckdb


@dataclass(frozen=True, slots=True)
class Recipe:
    """One recipe, completed by the one it is like. ``digest`` is that of its content; evidence is held to it."""

    name: str
    framework: str
    features: tuple[str, ...]
    title_en: str
    title_zh: str
    digest: str
    body: Mapping[str, Any]

    @property
    def tiny(self) -> bool:
        """Whether it trains a model scaled down from the architecture facts, not a checkpoint."""
        return bool(self.body["model"]["kind"] == "tiny")

    @property
    def model(self) -> str:
        """The model it runs on unless another is asked for."""
        return str(self.body["model"]["id"])

    @property
    def layouts(self) -> list[dict[str, Any]]:
        """Sizes to try in order: ``devices`` and the facts that go with them."""
        return list(self.body["layouts"])

    @property
    def devices(self) -> int:
        """Devices of the first layout."""
        return int(self.layouts[0]["devices"])

    @property
    def time_limit(self) -> int:
        """Seconds after which a run of it is ended."""
        return int(self.body["time_limit"])

    @property
    def steps(self) -> int:
        """Training steps; 1 where the framework counts epochs."""
        facts = self.body["facts"]
        return int(facts.get("max_steps") or facts.get("train_iters") or self.body.get("steps") or 1)

    def fits(self, model: Mapping[str, Any]) -> bool:
        """Whether it is meant for models of this type and modality."""
        wanted = self.body.get("for") or {}
        if self.tiny and model["id"] != self.model:
            return False
        text_only = self.framework in ("mindspeed-llm", "mindspeed-rl")
        if text_only and model.get("modality") not in (None, "text"):
            return False
        return all(model.get(name) == value for name, value in wanted.items())


def recipes(con: duckdb.DuckDBPyConnection, framework: str | None = None) -> list[Recipe]:
    """Every recipe (of a framework), in the order of their names."""
    rows = con.execute(
        "SELECT name, framework, features, title_en, title_zh, digest, body FROM recipe "
        "WHERE $framework IS NULL OR framework = $framework ORDER BY name",
        {"framework": framework},
    ).fetchall()
    return [
        Recipe(name, at, tuple(features), english, chinese, digest, json.loads(body))
        for name, at, features, english, chinese, digest, body in rows
    ]


def recipe(con: duckdb.DuckDBPyConnection, name: str) -> Recipe:
    """One recipe by name; raises :class:`UsageError` with the nearest names where there is none."""
    known = {found.name: found for found in recipes(con)}
    if name not in known:
        from difflib import get_close_matches

        nearest = get_close_matches(name, known, 3, 0.5)
        hint = f"nearest: {', '.join(nearest)}" if nearest else "see: ascend-compat recipe list"
        raise UsageError(f"no recipe is called {name!r}; {hint}")
    return known[name]
