"""What a table document says, cell by cell and feature by feature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ascend_compat.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator

STATUSES = ("supported", "partial", "unsupported", "not-applicable", "withdrawn", "unknown")


@dataclass(frozen=True, slots=True)
class Cell:
    """One column of one model. ``text`` is the page's own wording where the status does not say it all."""

    model: str
    framework: str
    column: str
    status: str
    condition: dict[str, Any] | None
    text: str | None
    source: Any
    label: str


@dataclass(frozen=True, slots=True)
class Claim:
    """What a cell says of one feature its column covers."""

    model: str
    framework: str
    feature: str
    column: str
    status: str
    condition: dict[str, Any] | None
    source: Any


def expand(body: dict[str, Any]) -> tuple[list[Cell], list[Claim]]:
    """Every cell and every claim of a ``table`` document, in its own order.

    A row that names several models states each of them. Raises :class:`DataError` for a cell that is not stated, or
    whose words its column does not explain.
    """
    cells: list[Cell] = []
    claims: list[Claim] = []
    for row in body["rows"]:
        for column in body["columns"]:
            stated = stated_cell(row, column)
            meaning = read_cell(stated, column)
            source = _source(stated, row, column, body)
            for model in row["models"]:
                framework, name = column["framework"], column["id"]
                status, condition, text, by_feature = meaning
                cells.append(Cell(model, framework, name, status, condition, text, source, row["label"]))
                for feature, said in by_feature.items():
                    kept = condition if said in (status, "partial") else None
                    claims.append(Claim(model, framework, feature, name, said, kept, source))
    return cells, claims


def stated_cell(row: dict[str, Any], column: dict[str, Any]) -> Any:
    """What a row states for a column: a status, the page's words, a list of them, or a mapping."""
    stated = row.get(column["framework"])
    if isinstance(stated, dict):
        stated = stated.get(column["id"])
    if stated is None:
        raise DataError(f"row {row['label']}: {column['framework']} {column['id']} is not stated")
    return stated


def read_cell(stated: Any, column: dict[str, Any]) -> tuple[str, dict[str, Any] | None, str | None, dict[str, str]]:
    """Status, condition, the page's words, and the status of each feature of the column."""
    features: list[str] = column["features"]
    if isinstance(stated, dict):
        status = stated["status"]
        claims = dict.fromkeys(features, status) | stated.get("claims", {})
        return status, stated.get("condition"), stated.get("text"), claims
    if isinstance(stated, str) and stated in STATUSES:
        return stated, None, None, dict.fromkeys(features, stated)
    words = stated if isinstance(stated, list) else [stated]
    meanings = list(_meanings(words, column))
    text = ", ".join(words)
    named = {feature for meaning in meanings for feature in meaning.get("features", [])}
    if named:
        unlisted = column.get("unlisted", "unsupported")
        claims = {feature: "supported" if feature in named else unlisted for feature in features}
        return "supported", None, text, claims
    meant: str = meanings[0].get("status", "supported")
    return meant, meanings[0].get("condition"), text, dict.fromkeys(features, meant)


def _meanings(words: list[str], column: dict[str, Any]) -> Iterator[dict[str, Any]]:
    texts = column.get("texts", {})
    for word in words:
        if word not in texts:
            raise DataError(f"column {column['framework']} {column['id']} does not explain {word!r}")
        yield texts[word]


def _source(stated: Any, row: dict[str, Any], column: dict[str, Any], body: dict[str, Any]) -> Any:
    own = stated.get("source") if isinstance(stated, dict) else None
    return own or row.get("source") or column.get("source") or body.get("source")
