"""The fewest runs that touch the most unproven cells of a release.

A run takes one framework and one model family: it trains each of the family's models in turn, with as many jobs as its
features need. Nothing is inferred from one model to another, and what a rule or the memory floor settles is never run.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from ascend_compat.recipes.select import reach

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ascend_compat.check.engine import Engine
    from ascend_compat.recipes.job import Prepared
    from ascend_compat.recipes.select import Cell

# ends of a run that say nothing of the recipe, so that it is run again
AGAIN = ("killed", "no-device", "missing-cann", "disk-full", "preparation", "missing-package", "runner", "timeout")
_SETTLED = {"npu": ("verified", "contradicted"), "cpu": ("smoke", "verified", "contradicted")}


@dataclass(frozen=True, slots=True)
class Run:
    """One run: its jobs in order, the cells they touch as (model, feature), and when the oldest of these was last seen."""

    framework: str
    family: str
    jobs: tuple[Prepared, ...]
    cells: tuple[tuple[str, str], ...]
    seen: str

    @property
    def devices(self) -> int:
        """The most that one of its jobs needs."""
        return max(job.devices for job in self.jobs)

    @property
    def seconds(self) -> int:
        """The most it can take: the sum of its jobs' time limits."""
        return sum(job.recipe.time_limit for job in self.jobs)

    def key(self, product: str, release: str, device: str) -> str:
        """A name that is the same whenever the same jobs are due for the same release."""
        jobs = [[job.recipe.digest, job.model["id"], job.devices] for job in self.jobs]
        text = json.dumps([product, release, device, self.framework, self.family, jobs])
        return f"{self.framework}-{self.family.lower()}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


@dataclass(frozen=True, slots=True)
class Cover:
    """The runs, in the order in which they should run; supported cells in all, reachable ones, and those not proven yet."""

    runs: tuple[Run, ...]
    cells: int
    reachable: int
    due: int
    unreached: tuple[Cell, ...]
    pairs: int

    @property
    def jobs(self) -> int:
        """Jobs of all runs."""
        return sum(len(run.jobs) for run in self.runs)


def cover(engine: Engine, product: str, release: str, framework: str | None = None, device: str = "npu") -> Cover:
    """Plan the runs for a release. ``cpu`` takes the tiny recipes, which raise a cell to ``smoke`` and no further."""
    cells = reach(engine, product, release, framework, tiny=device == "cpu")
    states = _states(engine, product, release)
    done = _done(engine, product, release, device)
    reachable = [cell for cell in cells if cell.runs]
    due = [
        cell
        for cell in reachable
        if states.get((cell.framework, cell.model, cell.feature), ("", ""))[0] not in _SETTLED[device]
    ]
    jobs = _jobs(due, done)
    runs = _runs(jobs, due, states)
    pairs = {(job.model["id"], *pair) for run in runs for job in run.jobs for pair in _pairs(job)}
    unreached = tuple(cell for cell in cells if not cell.runs)
    return Cover(tuple(runs), len(cells), len(reachable), len(due), unreached, len(pairs))


def _states(engine: Engine, product: str, release: str) -> dict[tuple[str, str, str], tuple[str, str]]:
    rows = engine.con.execute(
        "SELECT framework, model, feature, state, ended FROM cell_state WHERE product = ? AND release = ?",
        [product, release],
    ).fetchall()
    return {(at, model, feature): (state, ended or "") for at, model, feature, state, ended in rows}


def _done(engine: Engine, product: str, release: str, device: str) -> set[tuple[str, str]]:
    """Recipe digests and models whose run is finished and answered, whatever the answer."""
    rows = engine.con.execute(
        "SELECT recipe_digest, model FROM evidence WHERE product = ? AND release = ? AND device = ? "
        "AND result <> 'skipped' AND NOT coalesce(list_contains(?, error_kind), false) "
        "AND json_array_length(json_keys(overrides)) = 0",
        [product, release, device, list(AGAIN)],
    ).fetchall()
    return {(digest, model) for digest, model in rows}


def _jobs(due: Sequence[Cell], done: set[tuple[str, str]]) -> list[Prepared]:
    """Greedy cover, one model and framework after the other: the job with the most cells that no chosen one touches.

    Of equals the one that brings more new pairs of features together, then the one that needs fewer devices and less time.
    """
    wanted: dict[tuple[str, str], set[str]] = {}
    offers: dict[tuple[str, str], dict[str, Prepared]] = {}
    for cell in due:
        at = (cell.framework, cell.model)
        runs = [run for run in cell.runs if (run.recipe.digest, cell.model) not in done]
        if runs:
            wanted.setdefault(at, set()).add(cell.feature)
            offers.setdefault(at, {}).update({run.recipe.name: run for run in runs})
    chosen = []
    for at, features in wanted.items():
        left, seen = set(features), set[tuple[str, str]]()
        while left:
            best = max(
                offers[at].values(),
                key=lambda job: (
                    len(left.intersection(job.recipe.features)),
                    len(set(_pairs(job)) - seen),
                    -job.devices,
                    -job.recipe.time_limit,
                    job.recipe.name,
                ),
            )
            chosen.append(best)
            left.difference_update(best.recipe.features)
            seen.update(_pairs(best))
    return chosen


def _pairs(job: Prepared) -> Iterable[tuple[str, str]]:
    return combinations(sorted(job.recipe.features), 2)


def _runs(
    jobs: Sequence[Prepared], due: Sequence[Cell], states: Mapping[tuple[str, str, str], tuple[str, str]]
) -> list[Run]:
    groups: dict[tuple[str, str], list[Prepared]] = {}
    for job in jobs:
        groups.setdefault((job.recipe.framework, str(job.model["family"])), []).append(job)
    runs = []
    for (framework, family), members in groups.items():
        touched = {(str(job.model["id"]), feature) for job in members for feature in job.recipe.features}
        cells = sorted(
            (cell.model, cell.feature)
            for cell in due
            if cell.framework == framework and (cell.model, cell.feature) in touched
        )
        seen = min(states.get((framework, *cell), ("", ""))[1] for cell in cells)
        members.sort(key=lambda job: (job.devices, str(job.model["id"]), job.recipe.name))
        runs.append(Run(framework, family, tuple(members), tuple(cells), seen))
    return sorted(runs, key=lambda run: (run.seen, -len(run.cells) / len(run.jobs), run.framework, run.family))


def plain(found: Cover, product: str, release: str, device: str) -> dict[str, Any]:
    """The plan as data."""
    return {
        "schema_version": 1,
        "product": product,
        "release": release,
        "device": device,
        "cells": found.cells,
        "reachable": found.reachable,
        "due": found.due,
        "covered": sum(len(run.cells) for run in found.runs),
        "runs": len(found.runs),
        "jobs": found.jobs,
        "feature_pairs": found.pairs,
        "plan": [
            {
                "key": run.key(product, release, device),
                "framework": run.framework,
                "family": run.family,
                "devices": run.devices,
                "at_most_seconds": run.seconds,
                "cells": [list(cell) for cell in run.cells],
                "jobs": [
                    {"recipe": job.recipe.name, "model": job.model["id"], "devices": job.devices} for job in run.jobs
                ],
            }
            for run in found.runs
        ],
        "unreached": [
            {"framework": cell.framework, "model": cell.model, "feature": cell.feature, "why": list(cell.why)}
            for cell in found.unreached
        ],
    }
