"""The layout of a recipe that a model can really use: the first that no rule and no memory floor forbids."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ascend_compat.check.memory import DEVICE_GIB, floor_gib
from ascend_compat.errors import UsageError
from ascend_compat.recipes.job import prepare, render_job, understand, write_files

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascend_compat.check.engine import Engine
    from ascend_compat.recipes.job import Prepared, Understood
    from ascend_compat.recipes.load import Recipe


@dataclass(frozen=True, slots=True)
class Fit:
    """A recipe on a model in a layout it can use; without one ``prepared`` is None and ``why`` names what forbids each."""

    prepared: Prepared | None
    features: tuple[str, ...]
    why: tuple[str, ...] = ()


def fit(
    engine: Engine,
    recipe: Recipe,
    model: Mapping[str, Any],
    version: str,
    devices: int | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Fit:
    """The first layout of a recipe that the model, the version's rules and a device's memory allow.

    ``devices`` asks for exactly that many. A recipe that a model does not fit at all gives the reasons, in short words.
    """
    if not recipe.fits(model):
        return Fit(None, (), ("not for this kind of model",))
    why: dict[str, None] = {}
    least: float | None = None
    for layout in layouts_for(recipe, devices):
        prepared = prepare(engine, recipe, model, version, layout, overrides)
        if recipe.framework == "torch":
            return Fit(prepared, recipe.features)
        floor = None if recipe.tiny else _floor(prepared)
        if floor is not None and floor > DEVICE_GIB:
            least = min(floor, least or floor)
            continue
        with tempfile.TemporaryDirectory(prefix="ascend-compat-") as folder:
            try:
                main = write_files(render_job(engine, prepared), Path(folder))
            except UsageError as error:
                return Fit(None, (), (str(error),))
            found = understand(engine, recipe, main, version)
        reasons = forbidding(recipe, found)
        if not reasons:
            return Fit(prepared, tuple(name for name in recipe.features if name in found.features))
        why.update(dict.fromkeys(reasons))
    if least is not None:
        why[f"at least {least:.0f} GiB a device of {DEVICE_GIB:.0f}"] = None
    return Fit(None, (), tuple(why))


def layouts_for(recipe: Recipe, devices: int | None) -> list[dict[str, Any]]:
    """A recipe's layouts; with a number of devices those of that size, else its first at that size."""
    if devices is None:
        return recipe.layouts
    same = [layout for layout in recipe.layouts if layout["devices"] == devices]
    return same or [{**recipe.layouts[0], "devices": devices}]


def _floor(prepared: Prepared) -> float | None:
    """The least memory of one device in GiB, from the sizes alone."""
    facts = prepared.facts
    split = 1
    for name in ("tensor_parallel", "pipeline_parallel", "context_parallel"):
        split *= int(facts.get(name) or 1)
    sizes = {"world_size": prepared.devices, "data_parallel": max(1, prepared.devices // split), **facts}
    return floor_gib(prepared.recipe.framework, sizes, prepared.model)


def forbidding(recipe: Recipe, found: Understood) -> list[str]:
    """Rules that call the job impossible, and the recipe's features that it does not reach."""
    broken = [rule.id for rule in found.outcome.broken if rule.severity == "impossible"]
    return broken + [f"does not reach {name}" for name in recipe.features if name not in found.features]
