"""Builds the documentation: pages as data first, then the form asked for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ascend_compat.docs.layouts import Layouts
from ascend_compat.docs.rungs import Rungs
from ascend_compat.docs.source import Source

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    import duckdb

    from ascend_compat.docs.page import Page

LANGUAGES = ("en", "zh")


def pages(con: duckdb.DuckDBPyConnection, language: str, layouts: Layouts) -> list[Page]:
    """Every page in one language, in reading order."""
    from ascend_compat.docs.keys import Keys
    from ascend_compat.docs.pages import (
        explorer,
        features,
        frameworks,
        health,
        home,
        matrix,
        models,
        recipes,
        releases,
        rules,
        stacks,
    )

    source, keys = Source(con, language), Keys(con)
    rungs = Rungs(source)
    return [
        *home.pages(source),
        *explorer.pages(source, rungs),
        *matrix.pages(source, rungs),
        *models.pages(source, rungs, layouts),
        *features.pages(source, keys),
        *frameworks.pages(source, keys),
        *rules.pages(source, keys),
        *rules.codes(source),
        *releases.pages(source),
        *stacks.pages(source),
        *recipes.pages(source),
        *health.pages(source),
    ]


def build(
    con: duckdb.DuckDBPyConnection,
    out: Path,
    languages: Sequence[str],
    form: str,
    planned: Collection[str] | None = None,
) -> int:
    """Write the documentation below ``out`` and return how many pages there are. ``form`` is ``html`` or ``markdown``.

    ``planned`` names the models whose layouts are looked for; by default all of them.
    """
    layouts = Layouts(con, planned)
    made = {language: pages(con, language, layouts) for language in languages}
    write_pages(con, made, out, form)
    return sum(map(len, made.values()))


def write_pages(con: duckdb.DuckDBPyConnection, made: Mapping[str, Sequence[Page]], out: Path, form: str) -> None:
    """Write pages that are made already, their JSON twins and the lists of them."""
    from ascend_compat.docs import listing, markdown, site

    if form == "html":
        site.render(made, out)
    for language, own in made.items():
        for page in own:
            if form == "markdown":
                write(out / language / f"{page.id}.md", markdown.render(page))
            write(out / language / f"{page.id}.json", twin(page, language))
    listing.write_all(con, made, out, form)


def twin(page: Page, language: str) -> str:
    """A page's JSON twin as text."""
    return json.dumps(page.twin(language), ensure_ascii=False, indent=1) + "\n"


def write(path: Path, text: str) -> None:
    """Write a file, its folder first; a page is whole or the old one, and what a killed build left is written over."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.write_text(text, encoding="utf-8", newline="\n")
    part.replace(path)
