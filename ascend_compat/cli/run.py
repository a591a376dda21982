"""``ascend-compat run``: check a recipe, run it, keep what it showed."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ascend_compat.cli.options import language, language_option, wants_colour, write

if TYPE_CHECKING:
    from ascend_compat.evidence.run import Checked


@click.command()
@click.argument("name", metavar="RECIPE")
@click.option("--model", help="The model (default: the recipe's own).")
@click.option("--device", type=click.Choice(["npu", "cpu"]), default="npu", show_default=True)
@click.option("--devices", type=click.IntRange(1, 16384), help="Devices (default: the least the model fits on).")
@click.option(
    "--python", type=click.Path(), help="The interpreter that holds the framework (default: of `make runners`)."
)
@click.option("--release", help="The AscendFactory release it speaks for (default: the newest complete one).")
@click.option("--framework-version", help="The framework version that reads the job.")
@click.option("--set", "given", multiple=True, metavar="FACT=VALUE", help="Set a fact by hand; may be repeated.")
@click.option("--probe", is_flag=True, help="Run it although the check refuses it, to test a claim of no support.")
@click.option("--out", type=click.Path(file_okay=False), help="Where the run's folder goes.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@language_option
def run(
    name: str,
    model: str | None,
    device: str,
    devices: int | None,
    python: str | None,
    release: str | None,
    framework_version: str | None,
    given: tuple[str, ...],
    probe: bool,
    out: str | None,
    form: str,
    lang: str | None,
) -> None:
    """Run RECIPE and keep the evidence.

    Exit code: 0 it passed, 1 it was refused, failed or was skipped, 2 wrong usage, 3 the result could not be written.
    """
    import json

    from ascend_compat.check.engine import Engine
    from ascend_compat.cli.recipe import parse_facts
    from ascend_compat.evidence.document import now
    from ascend_compat.evidence.run import REFUSED, document, keep, order_for, python_for, ready, start
    from ascend_compat.matrix.store import connect
    from ascend_compat.recipes.job import model_of
    from ascend_compat.recipes.load import recipe as find
    from ascend_compat.recipes.select import release_of, select

    engine = Engine(connect())
    recipe = find(engine.con, name)
    at = release_of(engine, recipe.framework, release)
    chosen = model_of(engine, model or recipe.model)
    prepared = select(engine, recipe, chosen, at, devices, framework_version, parse_facts(engine, given))
    folder = Path(out).resolve() if out else None
    order = order_for(at, device, python or "", recipe.name, probe=probe, out=folder)
    checked = ready(engine, prepared, order, 0)
    spoken = language(lang)
    if checked.report is not None and checked.verdict in REFUSED:
        _say(checked, spoken)
        if not probe:
            if not out:
                shutil.rmtree(checked.folder.parent, ignore_errors=True)
            click.echo(_refused(engine, checked, spoken), err=True)
            sys.exit(1)
    order.python = python_for(python)
    began = now()
    with Progress(prepared.name, int(prepared.facts.get("max_steps") or prepared.facts.get("train_iters") or 0)) as bar:
        record, heard = start(engine, checked, order, bar.take)
    body = document(engine, order, prepared, [record], heard.start, began)
    path = keep(body)
    if form == "json":
        write(json.dumps(body, ensure_ascii=False, indent=2))
    else:
        write(f"{record['result']}: {prepared.name} on {device}, {path}")
        if record["error"]:
            write(f"  {record['error']['kind']}: {record['error']['reason']}")
    sys.exit(130 if heard.interrupted else 0 if record["result"] == "pass" else 1)


def _say(checked: Checked, spoken: str) -> None:
    """Why the check refuses the job, on stderr."""
    from ascend_compat.report.formats import render

    assert checked.report is not None
    click.echo(render("text", [checked.report], spoken, wants_colour("auto")), err=True)


def _refused(engine: Any, checked: Checked, spoken: str) -> str:
    prepared = checked.prepared
    words = {"recipe": prepared.recipe.name, "model": prepared.model["id"], "verdict": checked.verdict}
    finding = engine.catalogue.finding("AC4005", words)
    return f"{finding.code}: {finding.message.in_language(spoken)}"


class Progress:
    """A bar on stderr with the step, the loss and the throughput; one line a run where stderr is no terminal."""

    def __init__(self, label: str, steps: int) -> None:
        self._label, self._steps = label, steps
        self._bar: Any = None
        self._step = 0

    def __enter__(self) -> Progress:
        if self._steps and sys.stderr.isatty():
            self._bar = click.progressbar(
                length=self._steps, label=self._label, file=sys.stderr, show_pos=True, item_show_func=_shown
            )
            self._bar.__enter__()
        return self

    def __exit__(self, *given: Any) -> None:
        if self._bar is not None:
            self._bar.__exit__(*given)

    def take(self, event: dict[str, Any]) -> None:
        """Shows a step."""
        if event.get("event") != "step":
            return
        step = int(event.get("step") or 0)
        if self._bar is None:
            click.echo(f"{self._label}: step {step}, {_shown(event)}", err=True)
        else:
            self._bar.update(max(0, step - self._step), event)
        self._step = max(step, self._step)


def _shown(event: dict[str, Any] | None) -> str:
    if not event:
        return ""
    loss, speed = event.get("loss"), event.get("tokens_per_second")
    words = [f"loss {loss:.4f}" if isinstance(loss, float) else f"loss {loss}"]
    return ", ".join([*words, f"{speed:.0f} token/s"] if isinstance(speed, (int, float)) else words)
