"""``ascend-compat docs``: support documentation made from the matrix."""

from __future__ import annotations

from pathlib import Path

import click

from ascend_compat.cli.options import write


@click.group()
def docs() -> None:
    """Make the support documentation from the matrix."""


@docs.command()
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("site"),
    show_default=True,
    help="Folder to write to.",
)
@click.option(
    "--lang", type=click.Choice(["en", "zh", "both"]), default="both", show_default=True, help="Languages to write."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["html", "markdown"]),
    default="html",
    show_default=True,
    help="A site, or plain Markdown.",
)
def build(out: Path, lang: str, form: str) -> None:
    """Write all pages, with a JSON twin beside each."""
    from ascend_compat.docs.build import LANGUAGES
    from ascend_compat.docs.build import build as make
    from ascend_compat.matrix.store import connect

    count = make(connect(), out, LANGUAGES if lang == "both" else (lang,), form)
    write(f"{count} pages in {out}")
