"""``ascend-compat evidence``: what runs have shown."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ascend_compat.cli.options import language, language_option, write
from ascend_compat.errors import UsageError

if TYPE_CHECKING:
    import duckdb

_FORM = click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)


@click.group()
def evidence() -> None:
    """What runs of recipes have shown."""


@evidence.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path())
@click.option("--commit", is_flag=True, help="Among the reviewed evidence of the matrix, not the user's own.")
@language_option
def add(paths: tuple[str, ...], commit: bool, lang: str | None) -> None:
    """Take evidence documents in; one that was edited or is not sound is refused, and then none is taken."""
    from ascend_compat.evidence.document import read
    from ascend_compat.evidence.store import committed_dir, find, own_dir
    from ascend_compat.evidence.verdict import complaints
    from ascend_compat.files import write_whole
    from ascend_compat.matrix.store import connect

    con = connect()
    found = [find(path) for path in paths]
    wrong = [entry for path in found for entry in complaints(con, path) if entry.code != "AC4003"]
    if wrong:
        click.echo("\n".join(_sentence(con, entry.code, entry.words, language(lang)) for entry in wrong), err=True)
        sys.exit(1)
    for path in found:
        target = (committed_dir() if commit else own_dir()) / f"{read(path)['id']}.json"
        if target.exists() and target.read_bytes() != path.read_bytes():
            raise UsageError(f"{target} is there already, and is another document")
        write_whole(target, path.read_text(encoding="utf-8"))
        write(str(target))


@evidence.command("list")
@_FORM
def list_(form: str) -> None:
    """List every job of every run, the newest first."""
    con = _layered()
    names = ("id", "result", "recipe", "model", "device", "release", "features", "error_kind", "ended", "path")
    rows = [
        dict(zip(names, row))
        for row in con.execute(f"SELECT {', '.join(names)} FROM evidence ORDER BY ended DESC, id").fetchall()
    ]
    if form == "json":
        write(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    for row in rows:
        kind = f" ({row['error_kind']})" if row["error_kind"] else ""
        write(f"{row['id']}  {row['result']}{kind}  {row['recipe']}@{row['model']}  {row['device']}  {row['release']}")
    if not rows:
        write("no evidence; a run makes some: ascend-compat run RECIPE --device cpu")


@evidence.command()
@click.argument("name", metavar="ID|FILE")
@_FORM
@language_option
def show(name: str, form: str, lang: str | None) -> None:
    """Show one document, and the rung of each cell it speaks of."""
    from ascend_compat.evidence.document import read
    from ascend_compat.evidence.store import find

    body = read(find(name))
    if form == "json":
        write(json.dumps(body, ensure_ascii=False, indent=2))
        return
    stack = body.get("stack") or {}
    known = ", ".join(f"{key} {value}" for key, value in stack.items() if isinstance(value, str))
    device = body.get("device") or {}
    write(
        f"{body.get('id')}: {body.get('result')} on {device.get('count')} {device.get('kind')}, {body.get('start')} to {body.get('end')}"
    )
    write(f"  {known}")
    for job in body.get("jobs") or ():
        write(
            f"  {job['recipe']}@{job['model']}: {job['result']}"
            + (f" ({job['error']['kind']}: {job['error']['reason']})" if job["error"] else "")
        )
        for metric in job["metrics"]:
            values = metric["values"]
            shown = ", ".join(map(str, values[:5])) + (f", … ({len(values)})" if len(values) > 5 else "")
            write(f"    {metric['name']} [{metric['unit']}]: {shown}")
    reason = "reason_zh" if language(lang) == "zh" else "reason_en"
    rows = (
        _layered()
        .execute(
            f"SELECT model, feature, state, {reason} FROM cell_state WHERE evidence = ? ORDER BY ALL", [body.get("id")]
        )
        .fetchall()
    )
    for model, feature, state, why in rows:
        write(f"  {model} {feature}: {state}, {why}")


@evidence.command()
@click.argument("names", nargs=-1, metavar="[ID|FILE]...")
@language_option
def verify(names: tuple[str, ...], lang: str | None) -> None:
    """Check documents (default: all): their form, that nobody edited them, their log, and their recipe.

    Exit code: 0 all can be believed, 1 one cannot. Evidence of an older recipe is a remark: its cells are stale.
    """
    from ascend_compat.evidence.store import files, find
    from ascend_compat.evidence.verdict import complaints
    from ascend_compat.matrix.store import connect

    con = connect()
    chosen = [find(name) for name in names] or files()
    bad = 0
    for path in chosen:
        found = complaints(con, path)
        for entry in found:
            write(_sentence(con, entry.code, entry.words, language(lang)))
        bad += any(entry.code != "AC4003" for entry in found)
    write(f"{len(chosen)} documents, {bad} not to be believed")
    sys.exit(1 if bad else 0)


def _layered() -> duckdb.DuckDBPyConnection:
    from ascend_compat.evidence.store import layer
    from ascend_compat.matrix.store import connect

    con = connect()
    layer(con)
    return con


def _sentence(con: duckdb.DuckDBPyConnection, code: str, words: dict[str, Any], spoken: str) -> str:
    from ascend_compat.check.catalogue import Catalogue

    finding = Catalogue(con).finding(
        code, {name: Path(value).name if name == "log" else value for name, value in words.items()}
    )
    return f"{finding.code} {finding.severity}: {finding.message.in_language(spoken)}"
