"""``ascend-compat matrix``: build, lint, import and render the reviewed data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ascend_compat.cli.options import write
from ascend_compat.errors import UsageError


@click.group()
def matrix() -> None:
    """Build, lint, import and render the matrix."""


@matrix.command()
@click.option("--force", is_flag=True, help="Build even if the database is there.")
def build(force: bool) -> None:
    """Build the database of the current matrix and print where it lies."""
    from ascend_compat.matrix import store

    write(str(store.build(force)))


@matrix.command()
@click.argument("paths", nargs=-1, type=click.Path())
def lint(paths: tuple[str, ...]) -> None:
    """Check every document: its schema, then its meaning. PATHS limit what is printed, not what is read."""
    from ascend_compat.matrix.lint import lint as run

    result = run()
    wanted = [Path(path).resolve() for path in paths]
    shown = [p for p in result.problems if not wanted or any(w == p.file or w in p.file.parents for w in wanted)]
    for problem in shown:
        write(str(problem))
    errors = sum(problem.severity == "error" for problem in shown)
    write(f"{result.documents} documents: {errors} errors, {len(shown) - errors} warnings")
    raise SystemExit(1 if errors else 0)


@matrix.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--product", required=True, help="Whose page it is.")
@click.option("--release", required=True, help="The release the page is about.")
@click.option("--framework", help="For a page about one framework that does not name it.")
@click.option("--source", help="Address of the page, for a release without a table.")
@click.option("--date", default="unknown", show_default=True, help="Date of the page (YYYY-MM-DD).")
@click.option("--write", "do_write", is_flag=True, help="Write the document; without it only the changes are shown.")
def import_(
    file: Path, product: str, release: str, framework: str | None, source: str | None, date: str, do_write: bool
) -> None:
    """Turn a vendor page's table (tab-separated text, HTML or Markdown) into a matrix document."""
    from ascend_compat.matrix.importing_files import plan
    from ascend_compat.matrix.importing_files import write as write_document

    cited: dict[str, Any] | None = {"url": source, "date": date} if source else None
    result = plan(file, product, release, framework, cited)
    body = result.imported.body
    models = sum(len(row["models"]) for row in body["rows"])
    write(f"{file}: {len(body['rows'])} rows, {models} models, {len(body['columns'])} columns")
    for line in result.imported.remarks:
        write(line)
    if result.against is None:
        write("no earlier table of these frameworks to compare with")
    else:
        write(f"{len(result.changes) or 'no'} changes against {result.against}")
    for line in result.changes:
        write(f"  {line}")
    if do_write:
        write_document(result)
        write(f"written: {result.path}")
    elif result.changes or result.against is None or not result.registered:
        write("nothing written; --write does")


@matrix.command()
@click.option("--product", required=True)
@click.option("--release", required=True)
@click.option("--framework", help="Of a release with a table a framework: which.")
@click.option("--lang", type=click.Choice(["en", "zh"]), default="zh", show_default=True)
@click.option("--format", "form", type=click.Choice(["tsv", "markdown", "html"]), default="tsv", show_default=True)
def render(product: str, release: str, framework: str | None, lang: str, form: str) -> None:
    """Print a release's table as its page shows it."""
    from ascend_compat.matrix.importing_files import product_documents
    from ascend_compat.matrix.render import page

    tables = [
        document.body
        for document in product_documents(product)
        if document.kind == "table" and str(document.body["release"]) == release
    ]
    chosen = [b for b in tables if framework is None or framework in {c["framework"] for c in b["columns"]}]
    if not chosen:
        raise UsageError(f"no table of {product} {release}{' ' + framework if framework else ''}")
    if len(chosen) > 1:
        names = ", ".join(body["framework"] for body in chosen if "framework" in body)
        raise UsageError(f"{product} {release} has a table a framework: give --framework, one of {names}")
    write(page(chosen[0], lang, form))
