"""Which recipes reach which cells of a release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ascend_compat.errors import UsageError
from ascend_compat.recipes.fit import Fit, fit, layouts_for
from ascend_compat.recipes.job import model_of, prepare, version_of
from ascend_compat.recipes.load import recipes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascend_compat.check.engine import Engine
    from ascend_compat.recipes.job import Prepared
    from ascend_compat.recipes.load import Recipe

BUNDLE = "ascendfactory"


@dataclass(frozen=True, slots=True)
class Cell:
    """One supported cell: the recipes that reach it, each as it fits the model; without any, why none does."""

    framework: str
    model: str
    feature: str
    runs: tuple[Prepared, ...]
    why: tuple[str, ...]


def release_of(engine: Engine, framework: str | None, release: str | None) -> tuple[str, str]:
    """Product and release that runs are held to: the one named, else the newest whose table of the framework is complete."""
    if release is not None:
        found = engine.names.release(BUNDLE, release)
        if found is None:
            nearest = ", ".join(engine.names.suggest_releases(BUNDLE, release)) or "none"
            raise UsageError(f"no release of {BUNDLE} is called {release!r}; nearest: {nearest}")
        return BUNDLE, found
    wanted = framework if framework not in (None, "torch") else "llamafactory"
    return BUNDLE, str(engine.claims.release_for(BUNDLE, str(wanted))[0])


def select(
    engine: Engine,
    recipe: Recipe,
    model: Mapping[str, Any],
    release: tuple[str, str],
    devices: int | None = None,
    version: str | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Prepared:
    """A recipe on a model in the first layout that fits; in its first one where none does, for the check to say why."""
    version = version or version_of(engine, recipe.framework, *release)
    found = fit(engine, recipe, model, version, devices, overrides)
    if found.prepared is not None:
        return found.prepared
    return prepare(engine, recipe, model, version, layouts_for(recipe, devices)[0], overrides)


def reach(engine: Engine, product: str, release: str, framework: str | None = None, tiny: bool = False) -> list[Cell]:
    """Every supported cell of a release with the recipes that reach it: those of real models, or (``tiny``) the tiny ones."""
    rows = engine.con.execute(
        "SELECT framework, model, feature FROM claim WHERE product = $product AND release = $release "
        "AND status IN ('supported', 'partial') AND ($framework IS NULL OR framework = $framework) ORDER BY ALL",
        {"product": product, "release": release, "framework": framework},
    ).fetchall()
    fits: dict[tuple[str, str], list[Fit]] = {}
    cells = []
    for at, model, feature in rows:
        if (at, model) not in fits:
            fits[at, model] = _fits(engine, at, model, version_of(engine, at, product, release), tiny)
        found = fits[at, model]
        runs = tuple(entry.prepared for entry in found if entry.prepared is not None and feature in entry.features)
        cells.append(Cell(at, model, feature, runs, _why(engine, at, feature, found, tiny)))
    return cells


def _fits(engine: Engine, framework: str, model: str, version: str, tiny: bool) -> list[Fit]:
    row = model_of(engine, model)
    return [fit(engine, entry, row, version) for entry in recipes(engine.con, framework) if entry.tiny == tiny]


def _why(engine: Engine, framework: str, feature: str, fits: list[Fit], tiny: bool) -> tuple[str, ...]:
    wanting = [entry for entry in recipes(engine.con, framework) if entry.tiny == tiny]
    said = [
        f"{recipe.name}: {', '.join(entry.why)}"
        for recipe, entry in zip(wanting, fits)
        if feature in recipe.features and entry.prepared is None
    ]
    return tuple(said) or ("no recipe exercises it",)
