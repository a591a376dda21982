"""``ascend-compat verify``: the fewest runs that prove the most cells."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ascend_compat.cli.options import write
from ascend_compat.errors import UsageError

if TYPE_CHECKING:
    from ascend_compat.check.engine import Engine
    from ascend_compat.evidence.cover import Cover

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@click.command()
@click.option("--release", required=True, help="The AscendFactory release.")
@click.option("--framework", help="Only this framework.")
@click.option("--budget", default="8h", show_default=True, help="No run starts after this time (90s, 30m, 8h, 2d).")
@click.option("--plan", "only_plan", is_flag=True, help="Print the runs, start none.")
@click.option(
    "--device",
    type=click.Choice(["npu", "cpu"]),
    default="npu",
    show_default=True,
    help="cpu: the tiny recipes, for smoke.",
)
@click.option("--engine", "engine_name", type=click.Choice(["local", "ray"]), default="local", show_default=True)
@click.option("--python", type=click.Path(), help="The interpreter that holds the framework (and Ray).")
@click.option("--ray-address", help="The Ray cluster (default: the one this host belongs to).")
@click.option(
    "--simulated-npus",
    type=click.IntRange(1, 64),
    help="With ray: a local cluster that declares this many NPUs; evidence says so.",
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def verify(
    release: str,
    framework: str | None,
    budget: str,
    only_plan: bool,
    device: str,
    engine_name: str,
    python: str | None,
    ray_address: str | None,
    simulated_npus: int | None,
    form: str,
) -> None:
    """Choose the fewest runs that touch the most unproven cells of a release, and run them.

    Runs that are finished are not repeated: after a kill, the same command goes on. Exit code: 0 every run passed.
    """
    from ascend_compat.check.engine import Engine
    from ascend_compat.evidence.cover import cover, plain
    from ascend_compat.evidence.run import python_for
    from ascend_compat.evidence.store import layer
    from ascend_compat.matrix.store import connect
    from ascend_compat.recipes.select import release_of

    seconds = _seconds(budget)
    engine = Engine(connect())
    layer(engine.con)
    named = engine.names.framework(framework) if framework else None
    if framework and named is None:
        raise UsageError(
            f"no framework is called {framework!r}; nearest: {', '.join(engine.names.suggest_frameworks(framework)) or 'none'}"
        )
    at = release_of(engine, named, release)
    found = cover(engine, *at, named, device)
    if only_plan:
        write(
            json.dumps(plain(found, *at, device), ensure_ascii=False, indent=2) if form == "json" else _text(found, at)
        )
        return
    chosen = python_for(python)
    runs = [
        {
            **entry,
            "product": at[0],
            "release": at[1],
            "device": device,
            "python": chosen,
            "simulated": bool(simulated_npus),
        }
        for entry in plain(found, *at, device)["plan"]
    ]
    if engine_name == "ray":
        sys.exit(_ray(runs, chosen, ray_address, simulated_npus))
    sys.exit(_local(engine, runs, seconds))


def _seconds(text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", text.strip())
    if match is None:
        raise UsageError(f"--budget {text}: write a number and a unit, as in 90s, 30m, 8h, 2d")
    return float(match.group(1)) * _UNITS[match.group(2)]


def _local(engine: Engine, runs: list[dict[str, Any]], budget: float) -> int:
    from ascend_compat.evidence.worker import work

    began, bad = time.monotonic(), 0
    for number, run in enumerate(runs, 1):
        if time.monotonic() - began > budget:
            write(f"the budget is spent; {len(runs) - number + 1} runs are left for the next time")
            return 1
        label = f"[{number}/{len(runs)}] {run['framework']} {run['family']}"

        def shown(name: str, event: dict[str, Any], label: str = label) -> None:
            if event.get("event") == "end":
                click.echo(f"{label} {name}: {event.get('result')} {event.get('kind') or ''}".rstrip(), err=True)

        path, result, stopped = work(engine, run, shown)
        if stopped:
            write(f"{label}: stopped; the same command goes on from here")
            return 130
        bad += result != "pass"
        write(f"{label}: {result}, {path}")
    return 1 if bad else 0


def _ray(runs: list[dict[str, Any]], python: str, address: str | None, simulated: int | None) -> int:
    from ascend_compat.evidence import engine_ray
    from ascend_compat.evidence.store import runs_dir
    from ascend_compat.files import write_whole

    folder = runs_dir() / "verify"
    tasks = []
    for run in runs:
        path = folder / f"{run['key']}.run.json"
        write_whole(path, json.dumps(run))
        command = [sys.executable, "-m", "ascend_compat.evidence.worker", str(path)]
        tasks.append({"key": run["key"], "devices": run["devices"], "command": command})
    asked = folder / "tasks.json"
    write_whole(asked, json.dumps({"address": address, "local_npus": simulated, "tasks": tasks}))
    process = subprocess.Popen([python, str(Path(engine_ray.__file__)), str(asked)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout:
        for line in process.stdout:
            try:
                said = json.loads(line)
            except ValueError:
                continue
            write(f"{said['key']}: status {said['status']} on {said['node']}, {said['output']}")
    return process.wait()


def _text(found: Cover, at: tuple[str, str]) -> str:
    covered = sum(len(run.cells) for run in found.runs)
    lines = [
        f"{' '.join(at)}: {found.cells} supported cells, {found.reachable} reached by a recipe, {found.due} not proven yet",
        f"{len(found.runs)} runs ({found.jobs} jobs) touch {covered} of them, {found.pairs} pairs of features",
    ]
    for number, run in enumerate(found.runs, 1):
        lines.append(
            f"{number:3} {run.framework} {run.family}: {len(run.cells)} cells, {len(run.jobs)} jobs, {run.devices} devices, at most {run.seconds / 3600:.1f} h"
        )
        lines += [f"      {job.recipe.name} {job.model['id']} ({job.devices})" for job in run.jobs]
    if found.unreached:
        lines.append(
            f"{len(found.unreached)} cells no recipe reaches; see: ascend-compat recipe list --unreached --release {at[1]}"
        )
    return "\n".join(lines)
