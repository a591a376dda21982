"""``ascend-compat regress``: no verdict changes unknowingly."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import click

from ascend_compat.cli.options import language, language_option, write

FORMATS = ("text", "markdown", "json")


@click.command()
@click.option("--base", required=True, help="A git revision, or a database file (*.duckdb) of an earlier build.")
@click.option(
    "--corpus", multiple=True, type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of known job files; may be repeated (default: tests/corpus beside the matrix).",
)  # fmt: skip
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True)
@language_option
def regress(base: str, corpus: tuple[Path, ...], form: str, lang: str | None) -> None:
    """Compare the matrix with BASE: claims, default answers, rules, and the verdicts of known and generated jobs.

    Exit code: 0 the same or declared in matrix/CHANGES.yaml, 1 an undeclared change, 2 not comparable.
    """
    from ascend_compat.check import sides
    from ascend_compat.check.regress import compare
    from ascend_compat.report.regress import render
    from ascend_compat.resources import data_root, matrix_dir

    root = data_root()
    folders = list(corpus) or [folder for folder in [root / "tests" / "corpus"] if folder.is_dir()]
    with (
        tempfile.TemporaryDirectory(prefix="ascend-compat-") as folder,
        sides.base_side(base, root) as old,
        sides.built(matrix_dir(), Path(folder) / "now.duckdb", "this matrix") as new,
    ):
        difference = compare(old, new, folders)
    write(render(form, difference, language(lang)))
    sys.exit(1 if difference.undeclared else 0)
