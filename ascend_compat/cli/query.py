"""``show``, ``list``, ``history``, ``diff``, ``conflicts`` and ``sql``: reading the matrix."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ascend_compat.cli.options import language, language_option, write
from ascend_compat.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    import duckdb

    from ascend_compat.matrix.names import Names
    from ascend_compat.matrix.query import Frame

    F = TypeVar("F", bound="Callable[..., Any]")

_BUNDLE = "ascendfactory"
_FORMATS = ("table", "json", "csv", "markdown", "parquet")
_WHAT = ("models", "frameworks", "features", "releases", "products", "columns", "codes", "rules", "facts", "stacks")


def _format_options(function: F) -> F:
    function = click.option(
        "--output",
        type=click.Path(dir_okay=False),
        help="Write to this file instead of the terminal (parquet needs it).",
    )(function)
    return click.option("--format", "form", type=click.Choice(_FORMATS), default="table", show_default=True)(function)


@click.command()
@click.argument("name")
@click.argument("version", required=False)
@click.option("--product", help="Whose release, where several products have one of that name.")
@click.option("--format", "form", type=click.Choice(["table", "json", "markdown"]), default="table", show_default=True)
@language_option
def show(name: str, version: str | None, product: str | None, form: str, lang: str | None) -> None:
    """Everything known of NAME: a model, framework, feature, release, product or series.

    With VERSION: what the version tables say of a torch-npu, torch, cann, vllm, vllm-ascend or python version, or of a chip.
    """
    import json

    from ascend_compat.matrix.cards import card, suggestions
    from ascend_compat.report.tables import render

    con = _connect()
    if version is not None:
        from ascend_compat.stack.page import COMPONENTS, page, page_text

        rows = page(con, name, version)
        if rows is None:
            raise UsageError(f"no table names {name} {version}; versions are shown of {', '.join(COMPONENTS)}")
        write(
            json.dumps(rows, ensure_ascii=False, indent=1)
            if form == "json"
            else page_text(rows, name, version, language(lang))
        )
        return
    found = card(con, name, language(lang), _product(con, product) if product else None)
    if found is None:
        raise UsageError(_unknown("model, framework, feature or release", name, suggestions(con, name)))
    if form == "json":
        write(json.dumps(found.record(), ensure_ascii=False, indent=1, default=str))
        return
    mark = "# " if form == "markdown" else ""
    parts = [mark + found.title]
    for _, title, frame in found.sections:
        if frame.rows:
            parts.append(f"{mark and '#' + mark}{title}\n{mark and chr(10)}{render(frame, form)}")
    write("\n\n".join(parts))


@click.command("list")
@click.argument("what", type=click.Choice(_WHAT))
@click.option("--product", help="Only this product's releases or columns.")
@_format_options
@language_option
def list_(what: str, product: str | None, form: str, output: str | None, lang: str | None) -> None:
    """List models, frameworks, features, releases, products, columns, codes, rules, facts or stacks."""
    from ascend_compat.matrix.query import listing

    con = _connect()
    _emit(listing(con, what, language(lang), _product(con, product) if product else None), form, output)


@click.command()
@click.argument("model")
@click.option("--framework", help="Only this framework.")
@click.option("--feature", help="Only this feature.")
@click.option("--product", help="Only this product's releases.")
@_format_options
@language_option
def history(
    model: str,
    framework: str | None,
    feature: str | None,
    product: str | None,
    form: str,
    output: str | None,
    lang: str | None,
) -> None:
    """Since when and until when MODEL is supported, feature by feature; an open end still stands."""
    from ascend_compat.matrix import history as changes

    con = _connect()
    names = _names(con)
    match = names.model(model)
    if match is None:
        raise UsageError(_unknown("model", model, names.suggest_models(model)))
    frame = changes.history(
        con,
        match.id,
        _framework(names, framework),
        _feature(names, feature),
        _product(con, product) if product else None,
        language(lang),
    )
    _emit(frame, form, output)


@click.command()
@click.argument("old")
@click.argument("new")
@click.option("--product", default=_BUNDLE, show_default=True, help="Whose releases.")
@click.option("--framework", help="Only this framework.")
@click.option("--model", help="Only this model.")
@_format_options
@language_option
def diff(
    old: str,
    new: str,
    product: str,
    framework: str | None,
    model: str | None,
    form: str,
    output: str | None,
    lang: str | None,
) -> None:
    """What changed from release OLD to NEW: added, lost, changed, newly stated, became unknown (which is no loss)."""
    from ascend_compat.matrix import history as changes

    con = _connect()
    names = _names(con)
    owner = _product(con, product)
    releases = (_release(names, owner, old), _release(names, owner, new))
    match = names.model(model) if model else None
    if model and match is None:
        raise UsageError(_unknown("model", model, names.suggest_models(model)))
    spoken = language(lang)
    frame = changes.diff(con, owner, *releases, _framework(names, framework), match.id if match else None, spoken)
    if form == "table" and output is None:
        from ascend_compat.report.changes import render

        write(render(frame, owner, *releases, spoken))
        return
    _emit(frame, form, output)


@click.command()
@_format_options
@language_option
def conflicts(form: str, output: str | None, lang: str | None) -> None:
    """Claims that two products state differently, each as its newest release says."""
    from ascend_compat.matrix import query

    _emit(query.conflicts(_connect()), form, output)


@click.command()
@click.argument("query")
@_format_options
def sql(query: str, form: str, output: str | None) -> None:
    """Run one read-only SQL QUERY over the views (docs/views.md); ``-`` reads it from stdin."""
    from ascend_compat.matrix.query import select

    text = sys.stdin.buffer.read().decode("utf-8", "replace") if query == "-" else query
    _emit(select(_connect(), text), form, output)


def _connect() -> duckdb.DuckDBPyConnection:
    from ascend_compat.matrix.store import connect

    return connect()


def _names(con: duckdb.DuckDBPyConnection) -> Names:
    from ascend_compat.matrix.names import Names

    return Names(con)


def _product(con: duckdb.DuckDBPyConnection, written: str) -> str:
    names = _names(con)
    product = names.product(written)
    if product is None:
        raise UsageError(_unknown("product", written, names.suggest_products(written)))
    return product


def _release(names: Names, product: str, written: str) -> str:
    release = names.release(product, written)
    if release is None:
        raise UsageError(_unknown(f"release of {product}", written, names.suggest_releases(product, written)))
    return release


def _framework(names: Names, written: str | None) -> str | None:
    framework = names.framework(written) if written else None
    if written and framework is None:
        raise UsageError(_unknown("framework", written, names.suggest_frameworks(written)))
    return framework


def _feature(names: Names, written: str | None) -> str | None:
    feature = names.feature(written) if written else None
    if written and feature is None:
        raise UsageError(_unknown("feature", written, names.suggest_features(written)))
    return feature


def _unknown(kind: str, written: str, suggestions: list[str]) -> str:
    nearest = f"; nearest: {', '.join(suggestions)}" if suggestions else ""
    return f"no {kind} is called {written!r}{nearest}"


def _emit(frame: Frame, form: str, output: str | None) -> None:
    from ascend_compat.report import tables

    try:
        if form == "parquet":
            if output is None:
                raise UsageError("parquet is a file format: name the file with --output")
            tables.write_parquet(frame, Path(output))
        elif output is not None:
            Path(output).write_text(tables.render(frame, form) + "\n", encoding="utf-8", newline="")
        else:
            write(tables.render(frame, form))
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UsageError(f"cannot write {output}: {error.strerror or error}") from error
    except Exception as error:
        if type(error).__module__.partition(".")[0] != "polars":
            raise
        raise UsageError(f"{form} cannot hold these rows: {' '.join(str(error).split())}") from error
