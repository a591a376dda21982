"""``ascend-compat recipe``: the recipes there are, one of them, and its job files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ascend_compat.cli.options import language, language_option, write
from ascend_compat.errors import UsageError

if TYPE_CHECKING:
    from ascend_compat.check.engine import Engine
    from ascend_compat.recipes.load import Recipe

_FORM = click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)


@click.group()
def recipe() -> None:
    """Small declared jobs that can really run."""


@recipe.command("list")
@click.option("--framework", help="Only recipes of this framework.")
@click.option("--unreached", is_flag=True, help="Instead: the supported cells of a release that no recipe reaches.")
@click.option("--release", help="With --unreached: the AscendFactory release (default: the newest).")
@_FORM
@language_option
def list_(framework: str | None, unreached: bool, release: str | None, form: str, lang: str | None) -> None:
    """List the recipes, and the features each exercises."""
    from ascend_compat.check.engine import Engine
    from ascend_compat.matrix.store import connect
    from ascend_compat.recipes.load import recipes

    engine = Engine(connect())
    named = _framework(engine, framework)
    if unreached:
        _unreached(engine, named, release, form)
        return
    found = recipes(engine.con, named)
    if form == "json":
        write(json.dumps([_plain(entry) for entry in found], ensure_ascii=False, indent=2))
        return
    spoken = language(lang)
    width = max((len(entry.name) for entry in found), default=0)
    for entry in found:
        title = entry.title_zh if spoken == "zh" else entry.title_en
        write(f"{entry.name:<{width}}  {title}  [{', '.join(entry.features)}]")


@recipe.command()
@click.argument("name")
@_FORM
@language_option
def show(name: str, form: str, lang: str | None) -> None:
    """Show one recipe, with what it inherits."""
    import yaml

    from ascend_compat.matrix.store import connect
    from ascend_compat.recipes.load import recipe as find

    found = find(connect(), name)
    if form == "json":
        write(json.dumps({**_plain(found), **found.body}, ensure_ascii=False, indent=2))
    else:
        write(yaml.safe_dump({**found.body, "digest": found.digest}, sort_keys=False, allow_unicode=True).rstrip())


@recipe.command()
@click.argument("name")
@click.option("--model", help="The model (default: the recipe's own).")
@click.option("--devices", type=click.IntRange(1, 16384), help="Devices (default: the least the model fits on).")
@click.option("--release", help="The AscendFactory release whose framework version reads the job.")
@click.option("--framework-version", help="The framework version that reads the job.")
@click.option("--set", "given", multiple=True, metavar="FACT=VALUE", help="Set a fact by hand; may be repeated.")
@click.option("--bundle", is_flag=True, help="As an AscendFactory file.")
@click.option("--out", type=click.Path(file_okay=False), help="Write the files there instead of printing them.")
@click.option("--to", "target", type=click.Choice(["slurm", "volcano", "modelarts"]), help="Wrap it for a cluster.")
def render(
    name: str,
    model: str | None,
    devices: int | None,
    release: str | None,
    framework_version: str | None,
    given: tuple[str, ...],
    bundle: bool,
    out: str | None,
    target: str | None,
) -> None:
    """Write the job of recipe NAME in its framework's own form."""
    from ascend_compat.check.engine import Engine
    from ascend_compat.matrix.store import connect
    from ascend_compat.recipes.job import model_of, render_job, write_files
    from ascend_compat.recipes.load import recipe as find
    from ascend_compat.recipes.select import release_of, select
    from ascend_compat.recipes.wrap import wrap

    engine = Engine(connect())
    found = find(engine.con, name)
    at = release_of(engine, found.framework, release)
    chosen = model_of(engine, model or found.model)
    prepared = select(engine, found, chosen, at, devices, framework_version, parse_facts(engine, given))
    rendered = render_job(engine, prepared, bundle)
    if target:
        rendered = wrap(rendered, prepared, target)
    if out:
        write(str(write_files(rendered, Path(out))))
        return
    for file, text in rendered.files.items():
        if len(rendered.files) > 1:
            write(f"# ---- {file}")
        write(text.rstrip("\n"))


def parse_facts(engine: Engine, given: tuple[str, ...]) -> dict[str, Any]:
    """``fact=value`` words as typed facts; raises :class:`UsageError` for an unknown fact or a value of another type."""
    facts: dict[str, Any] = {}
    for word in given:
        name, equals, text = word.partition("=")
        kind = engine.types.get(name)
        if not equals or kind is None:
            from difflib import get_close_matches

            nearest = ", ".join(get_close_matches(name, engine.types, 3, 0.5))
            raise UsageError(
                f"--set {word}: write FACT=VALUE with a known fact" + (f"; nearest: {nearest}" if nearest else "")
            )
        facts[name] = _typed(word, text, kind)
    return facts


def _typed(word: str, text: str, kind: str) -> Any:
    try:
        if text in ("null", ""):
            return None
        if kind == "integer":
            return int(text)
        if kind == "number":
            return float(text)
        if kind == "boolean":
            return {"true": True, "false": False}[text.lower()]
    except (ValueError, KeyError):
        raise UsageError(f"--set {word}: expected a value of type {kind}") from None
    if kind in ("integers", "texts"):
        parts = [part for part in text.strip("[]").split(",") if part]
        return (
            [int(part) for part in parts]
            if kind == "integers" and all(part.strip().isdigit() for part in parts)
            else parts
        )
    return text


def _framework(engine: Engine, name: str | None) -> str | None:
    if name is None or name == "torch":
        return name
    found = engine.names.framework(name)
    if found is None:
        nearest = ", ".join(engine.names.suggest_frameworks(name)) or "none"
        raise UsageError(f"no framework is called {name!r}; nearest: {nearest}")
    return found


def _unreached(engine: Engine, framework: str | None, release: str | None, form: str) -> None:
    from ascend_compat.recipes.select import reach, release_of

    at = release_of(engine, framework, release)
    rows = [
        {"framework": cell.framework, "model": cell.model, "feature": cell.feature, "why": list(cell.why)}
        for cell in reach(engine, *at, framework)
        if not cell.runs
    ]
    if form == "json":
        write(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    for row in rows:
        write(f"{row['framework']}  {row['model']}  {row['feature']}: {'; '.join(row['why'])}")
    write(f"{len(rows)} supported cells of {' '.join(at)} are reached by no recipe")


def _plain(found: Recipe) -> dict[str, Any]:
    return {
        "name": found.name,
        "framework": found.framework,
        "title": {"en": found.title_en, "zh": found.title_zh},
        "features": list(found.features),
        "model": found.model,
        "model_kind": found.body["model"]["kind"],
        "devices": found.devices,
        "time_limit": found.time_limit,
        "digest": found.digest,
    }
