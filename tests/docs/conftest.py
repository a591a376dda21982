"""All pages in both languages, made once, and the plain files they become."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from docs_reading import PLANNED, Made

from ascend_compat.docs.build import LANGUAGES, pages
from ascend_compat.docs.layouts import Layouts


@pytest.fixture(scope="session")
def made(con: duckdb.DuckDBPyConnection) -> Made:
    """Every page as data, by language."""
    layouts = Layouts(con, PLANNED)
    return {language: pages(con, language, layouts) for language in LANGUAGES}


@pytest.fixture(scope="session")
def site(con: duckdb.DuckDBPyConnection, made: Made, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Markdown documentation in a folder."""
    from ascend_compat.docs.build import write_pages

    out = tmp_path_factory.mktemp("docs")
    write_pages(con, made, out, "markdown")
    return out
