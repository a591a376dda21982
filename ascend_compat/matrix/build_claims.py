"""What the tables of releases claim: columns, cells, claims feature by feature, and their history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ascend_compat.errors import DataError
from ascend_compat.matrix.build import Table, first_source, in_both, json_text, of_kind
from ascend_compat.matrix.tables import STATUSES, read_cell, stated_cell

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ascend_compat.matrix.documents import Document

# of two columns that claim one feature, the one that says more, and the more cautious of two that both say something
_CAUTION = {status: rank for rank, status in enumerate(("unknown", *(s for s in STATUSES if s != "unknown")))}
_CONDITION = ("condition", "condition_zh", "condition_json")
_NO_CONDITION = dict.fromkeys(_CONDITION)
_CELL = {
    **dict.fromkeys(("product", "release", "model", "framework", "column", "status", *_CONDITION), "VARCHAR"),
    **dict.fromkeys(("text", "note_en", "note_zh", "label", "series_en", "series_zh"), "VARCHAR"),
    **dict.fromkeys(("heading_en", "heading_zh", "source", "path"), "VARCHAR"),
    "row_ordinal": "INTEGER",
    "column_ordinal": "INTEGER",
}
_CLAIM = (
    *("product", "release", "model", "framework", "feature", "status", *_CONDITION, "source", "column"),
    *("heading_en", "heading_zh"),
)
_COLUMN = {
    **dict.fromkeys(("product", "release", "framework", "column", "group_en", "group_zh"), "VARCHAR"),
    **dict.fromkeys(("heading_en", "heading_zh", "form"), "VARCHAR"),
    "ordinal": "INTEGER",
    "features": "VARCHAR[]",
    "path": "VARCHAR",
}


def tables(documents: Sequence[Document], ordinals: Mapping[tuple[str, str], int]) -> list[Table]:
    """``table_column``, ``cell``, ``claim`` and ``cell_history``; ``ordinals`` are the places of (product, release)."""
    column, cell = Table("table_column", _COLUMN), Table("cell", _CELL)
    claim = Table("claim", dict.fromkeys(_CLAIM, "VARCHAR"))
    best: dict[tuple[str, ...], dict[str, Any]] = {}
    for document in of_kind(documents, "table"):
        product, release = str(document.body["product"]), str(document.body["release"])
        if (product, release) not in ordinals:
            raise DataError(f"{document.path}: {product} has no release {release}")
        columns = [_column(document, said, at) for at, said in enumerate(document.body.get("columns") or ())]
        column.rows += columns
        for shared, models, features in _cells(document, columns):
            cell.rows += [{**shared, "model": model} for model in models]
            for feature, status in features.items():
                conditional = status in (shared["status"], "partial")
                said = {
                    **(shared if conditional else {**shared, **_NO_CONDITION}),
                    "feature": feature,
                    "status": status,
                }
                for model in models:
                    key = (product, release, model, shared["framework"], feature)
                    held = best.get(key)
                    if held is None or _CAUTION[status] > _CAUTION[held["status"]]:
                        best[key] = {**said, "model": model}
    claim.rows = list(best.values())
    return [column, cell, claim, _history(ordinals, claim.rows)]


def _column(document: Document, said: dict[str, Any], ordinal: int) -> dict[str, Any]:
    group_en, group_zh = in_both(said.get("group"))
    heading_en, heading_zh = in_both(said.get("heading"))
    return {
        "product": str(document.body["product"]),
        "release": str(document.body["release"]),
        "framework": said["framework"],
        "column": said["id"],
        "group_en": group_en,
        "group_zh": group_zh,
        "heading_en": heading_en,
        "heading_zh": heading_zh,
        "form": said.get("form"),
        "ordinal": ordinal,
        "features": list(said.get("features") or ()),
        "path": document.path,
    }


def _cells(
    document: Document, columns: Sequence[dict[str, Any]]
) -> Iterator[tuple[dict[str, Any], list[str], dict[str, str]]]:
    """Every cell of a table, without its model; the models it stands for; the status of each feature."""
    body = document.body
    texts: dict[int, tuple[Any, str | None]] = {}

    def text_of(value: Any) -> str | None:
        """The same few objects are written thousands of times; each is kept, so that its id stays its own."""
        if id(value) not in texts:
            texts[id(value)] = (value, json_text(value))
        return texts[id(value)][1]

    for number, row in enumerate(body.get("rows") or ()):
        series_en, series_zh = in_both(row.get("series"))
        for column, head in zip(body["columns"], columns):
            try:
                stated = stated_cell(row, column)
                status, condition, text, features = read_cell(stated, column)
            except DataError as error:
                raise DataError(f"{document.path}: {error}") from error
            own = stated if isinstance(stated, dict) else {}
            note_en, note_zh = in_both(own.get("note") or row.get("note"))
            condition_en, condition_zh = in_both(condition)
            source = own.get("source") or row.get("source") or column.get("source") or body.get("source")
            cell = {
                **{
                    name: head[name]
                    for name in ("product", "release", "framework", "column", "heading_en", "heading_zh")
                },
                "status": status,
                "condition": condition_en,
                "condition_zh": condition_zh,
                "condition_json": text_of(condition),
                "text": text,
                "note_en": note_en,
                "note_zh": note_zh,
                "label": row.get("label"),
                "series_en": series_en,
                "series_zh": series_zh,
                "source": text_of(first_source(source)),
                "path": document.path,
                "row_ordinal": number,
                "column_ordinal": head["ordinal"],
            }
            yield cell, row.get("models") or [], features


def _history(ordinals: Mapping[tuple[str, str], int], claims: list[dict[str, Any]]) -> Table:
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
    stated: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in claims:
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
