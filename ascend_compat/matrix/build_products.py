"""Products, their releases, and what the tables of those releases claim."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ascend_compat.errors import DataError
from ascend_compat.matrix.build import Table, in_both, json_text, of_kind
from ascend_compat.matrix.tables import STATUSES, read_cell, stated_cell

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ascend_compat.matrix.documents import Document

# of two columns that claim one feature, the one that says more, and the more cautious of two that both say something
_CAUTION = {status: rank for rank, status in enumerate(("unknown", *(s for s in STATUSES if s != "unknown")))}


def tables(documents: Sequence[Document]) -> dict[str, Table]:
    """``product``, ``release``, ``release_framework``, ``table_column``, ``cell``, ``claim`` and ``cell_history``, by name."""
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
            dict.fromkeys(
                (
                    *("product", "release", "framework", "completeness", "version", "assumed", "assumed_from"),
                    *("stages", "note_en", "note_zh", "source"),
                ),
                "VARCHAR",
            ),
        ),
    }
    for document in of_kind(documents, "product"):
        _product(document, found)
    found.update(_claims(documents, {(row["product"], row["release"]) for row in found["release"].rows}))
    found["cell_history"] = _history(found)
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
                completeness=said.get("table", "none"),
                version=_date(said.get("version")) or "unknown",
                assumed=_date(said.get("assumed")),
                assumed_from=said.get("assumed_from"),
                stages=json_text(said.get("stages")),
                note_en=note_en,
                note_zh=note_zh,
                source=json_text(_first(said.get("source"))),
            )


def _date(value: Any) -> str | None:
    return None if value is None else str(value)


def _first(source: Any) -> Any:
    """The leading source where a document names several."""
    return source[0] if isinstance(source, list) else source


def _claims(documents: Sequence[Document], releases: set[tuple[str, str]]) -> dict[str, Table]:
    place = ("product", "release", "model", "framework")
    column = Table(
        "table_column",
        {
            **dict.fromkeys(("product", "release", "framework", "column", "group_en", "group_zh"), "VARCHAR"),
            **dict.fromkeys(("heading_en", "heading_zh", "form"), "VARCHAR"),
            "ordinal": "INTEGER",
            "features": "VARCHAR[]",
            "path": "VARCHAR",
        },
    )
    cell = Table(
        "cell",
        {
            **dict.fromkeys((*place, "column", "status", "condition", "condition_zh", "condition_json"), "VARCHAR"),
            **dict.fromkeys(("text", "note_en", "note_zh", "label", "series_en", "series_zh"), "VARCHAR"),
            **dict.fromkeys(("heading_en", "heading_zh", "source", "path"), "VARCHAR"),
            "row_ordinal": "INTEGER",
            "column_ordinal": "INTEGER",
        },
    )
    claim = Table(
        "claim",
        dict.fromkeys(
            (*place, "feature", "status", "condition", "condition_zh", "condition_json", "source", "column"), "VARCHAR"
        ),
    )
    best: dict[tuple[str, ...], dict[str, Any]] = {}
    for document in of_kind(documents, "table"):
        body = document.body
        product, release = str(body["product"]), str(body["release"])
        if (product, release) not in releases:
            raise DataError(f"{document.path}: {product} has no release {release}")
        for ordinal, said in enumerate(body.get("columns") or ()):
            group_en, group_zh = in_both(said.get("group"))
            heading_en, heading_zh = in_both(said.get("heading"))
            column.add(
                product=product,
                release=release,
                framework=said["framework"],
                column=said["id"],
                group_en=group_en,
                group_zh=group_zh,
                heading_en=heading_en,
                heading_zh=heading_zh,
                form=said.get("form"),
                ordinal=ordinal,
                features=list(said.get("features") or ()),
                path=document.path,
            )
        for row in _rows(document, product, release):
            features = row.pop("_features")
            cell.add(**row)
            for feature, status in features.items():
                key = (product, release, row["model"], row["framework"], feature)
                held = best.get(key)
                if held is None or _CAUTION[status] > _CAUTION[held["status"]]:
                    names = ("condition", "condition_zh", "condition_json")
                    condition = {name: row[name] if status in (row["status"], "partial") else None for name in names}
                    best[key] = {
                        **dict(zip((*place, "feature"), key)),
                        "status": status,
                        **condition,
                        "source": row["source"],
                        "column": row["column"],
                    }
    claim.rows = list(best.values())
    return {"table_column": column, "cell": cell, "claim": claim}


def _rows(document: Document, product: str, release: str) -> Iterator[dict[str, Any]]:
    body = document.body
    columns = list(enumerate(body.get("columns") or ()))
    for number, row in enumerate(body.get("rows") or ()):
        series_en, series_zh = in_both(row.get("series"))
        for ordinal, column in columns:
            heading_en, heading_zh = in_both(column.get("heading"))
            try:
                stated = stated_cell(row, column)
                status, condition, text, features = read_cell(stated, column)
            except DataError as error:
                raise DataError(f"{document.path}: {error}") from error
            own = stated if isinstance(stated, dict) else {}
            note_en, note_zh = in_both(own.get("note") or row.get("note"))
            condition_en, condition_zh = in_both(condition)
            source = own.get("source") or row.get("source") or column.get("source") or body.get("source")
            for model in row.get("models") or ():
                yield {
                    "product": product,
                    "release": release,
                    "model": model,
                    "framework": column["framework"],
                    "column": column["id"],
                    "status": status,
                    "condition": condition_en,
                    "condition_zh": condition_zh,
                    "condition_json": json_text(condition),
                    "text": text,
                    "note_en": note_en,
                    "note_zh": note_zh,
                    "label": row.get("label"),
                    "series_en": series_en,
                    "series_zh": series_zh,
                    "heading_en": heading_en,
                    "heading_zh": heading_zh,
                    "source": json_text(_first(source)),
                    "path": document.path,
                    "row_ordinal": number,
                    "column_ordinal": ordinal,
                    "_features": dict(features),
                }


def _history(found: dict[str, Table]) -> Table:
    """Spans of releases over which a claim stayed the same; a release that does not state it neither ends nor starts one."""
    table = Table(
        "cell_history",
        dict.fromkeys(
            (
                *("product", "model", "framework", "feature", "column", "since", "until", "last_stated", "status"),
                *("condition", "condition_zh"),
            ),
            "VARCHAR",
        ),
    )
    ordinals = {(row["product"], row["release"]): row["ordinal"] for row in found["release"].rows}
    stated: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in found["claim"].rows:
        if row["status"] != "unknown":
            key = tuple(row[name] for name in ("product", "model", "framework", "feature"))
            stated.setdefault(key, []).append(row)
    for key, rows in stated.items():
        rows.sort(key=lambda row: ordinals[(row["product"], row["release"])])
        spans: list[dict[str, Any]] = []
        for row in rows:
            if spans and (spans[-1]["status"], spans[-1]["condition"]) == (row["status"], row["condition"]):
                spans[-1]["last_stated"] = row["release"]
                continue
            if spans:
                spans[-1]["until"] = spans[-1]["last_stated"]
            spans.append(
                {
                    **dict(zip(("product", "model", "framework", "feature"), key)),
                    "column": row["column"],
                    "since": row["release"],
                    "until": None,
                    "last_stated": row["release"],
                    "status": row["status"],
                    "condition": row["condition"],
                    "condition_zh": row["condition_zh"],
                }
            )
        table.rows += spans
    return table
