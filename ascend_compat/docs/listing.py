"""What lists the pages for machines: ``index.json``, ``llms.txt``, badges; and the door to the languages."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING

from ascend_compat.docs.drawing import badge
from ascend_compat.docs.page import SCHEMA_VERSION
from ascend_compat.docs.rungs import ORDER, Rungs
from ascend_compat.docs.source import GRANTED, Source

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    import duckdb

    from ascend_compat.docs.page import Page

_NAMES = {"en": "English", "zh": "中文"}
_STANDING = """
SELECT h.product, h.last_stated, h.framework, h.model, h.feature, h.status FROM cell_history h
WHERE h.until IS NULL AND h.product = ? ORDER BY h.model, h.framework, h.feature
"""
BADGE_PRODUCT = "ascendfactory"


def write_all(con: duckdb.DuckDBPyConnection, made: Mapping[str, Sequence[Page]], out: Path, form: str) -> None:
    """Write the lists beside the pages."""
    from ascend_compat.docs.build import write
    from ascend_compat.docs.pages.explorer import script

    ending = "html" if form == "html" else "md"
    write(out / "index.json", _index(made, ending))
    write(out / "llms.txt", _llms(made, ending))
    if form == "html":
        write(out / "index.html", _door(list(made)))
        for language, pages in made.items():
            for page in pages:
                if page.kind == "explorer":
                    write(out / language / "explorer" / "data.js", script(page))
    for name, svg in badges(con):
        write(out / "badges" / f"{name}.svg", svg)


def _index(made: Mapping[str, Sequence[Page]], ending: str) -> str:
    listed = [
        {
            "id": page.id,
            "kind": page.kind,
            "language": language,
            "title": page.title,
            "page": f"{language}/{page.id}.{ending}",
            "data": f"{language}/{page.id}.json",
        }
        for language, pages in made.items()
        for page in pages
    ]
    return json.dumps({"schema_version": SCHEMA_VERSION, "pages": listed}, ensure_ascii=False, indent=1) + "\n"


def _llms(made: Mapping[str, Sequence[Page]], ending: str) -> str:
    """The llms.txt convention: a title, a summary, sections of links."""
    lines = [
        "# ascend-compat",
        "",
        "> Which model trains with which framework and feature on Ascend NPUs, per release; rules; software stacks; evidence. "
        "Every page has a JSON twin beside it; index.json lists all. A claim is what a source says, not what was run.",
    ]
    for language, pages in made.items():
        for parent in dict.fromkeys(page.parent for page in pages):
            own = [page for page in pages if page.parent == parent]
            title = next((page.title for page in pages if page.id == parent), _NAMES[language])
            lines += ["", f"## {title} ({_NAMES[language]})", ""]
            lines += [f"- [{page.title}]({language}/{page.id}.{ending}): {language}/{page.id}.json" for page in own]
    return "\n".join(lines) + "\n"


def _door(languages: Sequence[str]) -> str:
    links = " · ".join(
        f'<a lang="{name}" hreflang="{name}" href="{name}/index.html">{escape(_NAMES[name])}</a>' for name in languages
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        "<title>ascend-compat</title><style>:root{color-scheme:light dark}body{font:1.1rem/1.6 system-ui,sans-serif;margin:15vh auto;"
        "max-width:32rem;padding:0 1rem;text-align:center}a{padding:.4rem}</style></head>"
        f"<body><main><h1>ascend-compat</h1><p>{links}</p></main></body></html>\n"
    )


def badges(con: duckdb.DuckDBPyConnection) -> Iterator[tuple[str, str]]:
    """A badge for every model and for every claim of the bundle that stands: name of the file, SVG."""
    source = Source(con, "en")
    rungs = Rungs(source)
    granted: dict[str, set[str]] = {}
    lowest: dict[str, str] = {}
    for row in source.rows(_STANDING, BADGE_PRODUCT):
        model, framework, feature = row["model"], row["framework"], row["feature"]
        label = f"{source.models[model]} {source.features[feature]}"
        rung = rungs.of(row["product"], row["last_stated"], framework, model, feature).state
        told = row["status"] in GRANTED
        if told:
            granted.setdefault(model, set()).add(framework)
            lowest[model] = min(lowest.get(model, rung), rung, key=ORDER.index)
        said = f"{source.frameworks[framework]}: {source.status_words(row['status'])}" + (
            f" ({source.rung_words(rung)})" if told else ""
        )
        yield f"{framework}/{model}/{feature}", badge(label, said, rung if told else row["status"])
    for model, name in source.models.items():
        found = ", ".join(source.frameworks[each] for each in sorted(granted.get(model, ())))
        rung = lowest.get(model, "claimed")
        yield f"models/{model}", badge(name, f"{found} ({source.rung_words(rung)})" if found else "not claimed", rung)
