"""Products and their releases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ascend_compat.matrix.build import Table, first_source, in_both, json_text, of_kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascend_compat.matrix.documents import Document


def tables(documents: Sequence[Document]) -> dict[str, Table]:
    """``product``, ``release`` and ``release_framework``, by name."""
    found = {
        "product": Table(
            "product", dict.fromkeys(("id", "name_en", "name_zh", "note_en", "note_zh", "path"), "VARCHAR")
        ),
        "release": Table(
            "release",
            {
                "product": "VARCHAR",
                "release": "VARCHAR",
                "ordinal": "INTEGER",
                "date": "VARCHAR",
                "date_of": "VARCHAR",
                "inferred": "BOOLEAN",
                "note_en": "VARCHAR",
                "note_zh": "VARCHAR",
                "aliases": "VARCHAR[]",
                "pages": "VARCHAR",
                "body": "VARCHAR",
            },
        ),
        "release_framework": Table(
            "release_framework",
            {
                **dict.fromkeys(("product", "release", "framework", "completeness", "version"), "VARCHAR"),
                **dict.fromkeys(("assumed", "assumed_from", "stages", "note_en", "note_zh", "source"), "VARCHAR"),
                "ordinal": "INTEGER",
            },
        ),
    }
    for document in of_kind(documents, "product"):
        _product(document, found)
    return found


def _product(document: Document, found: dict[str, Table]) -> None:
    body = document.body
    product = str(body["id"])
    english, chinese = in_both(body.get("names"))
    note_en, note_zh = in_both(body.get("note"))
    found["product"].add(
        id=product,
        name_en=english or product,
        name_zh=chinese or product,
        note_en=note_en,
        note_zh=note_zh,
        path=document.path,
    )
    for ordinal, release in enumerate(body.get("releases") or ()):
        name = str(release["id"])
        note_en, note_zh = in_both(release.get("note"))
        found["release"].add(
            product=product,
            release=name,
            ordinal=ordinal,
            date=_date(release.get("date")),
            date_of=release.get("date_of"),
            inferred=bool(release.get("inferred")),
            note_en=note_en,
            note_zh=note_zh,
            aliases=list(release.get("aliases") or ()),
            pages=json_text(release.get("pages") or []),
            body=json_text(release),
        )
        for framework, said in (release.get("frameworks") or {}).items():
            note_en, note_zh = in_both(said.get("note"))
            found["release_framework"].add(
                product=product,
                release=name,
                framework=framework,
                ordinal=ordinal,
                completeness=said.get("table", "none"),
                version=_date(said.get("version")) or "unknown",
                assumed=_date(said.get("assumed")),
                assumed_from=said.get("assumed_from"),
                stages=json_text(said.get("stages")),
                note_en=note_en,
                note_zh=note_zh,
                source=json_text(first_source(said.get("source"))),
            )


def _date(value: Any) -> str | None:
    return None if value is None else str(value)
