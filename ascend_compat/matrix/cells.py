"""What one cell of a support table says, whatever form its column has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

STATUSES = ("supported", "partial", "not-applicable", "unsupported", "withdrawn", "unknown")


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell, spelled out. ``features`` says of single features what differs from ``status``."""

    status: str
    text: str | None = None
    condition: dict[str, Any] | None = None
    note: Any = None
    source: Any = None
    features: dict[str, str] | None = None

    @property
    def condition_en(self) -> str | None:
        """The condition in English."""
        return self.condition.get("en") if self.condition else None

    @property
    def condition_zh(self) -> str | None:
        """The condition in Chinese."""
        return (self.condition.get("zh") or self.condition.get("en")) if self.condition else None

    @property
    def note_en(self) -> str | None:
        """The note in English."""
        return self.note.get("en") if isinstance(self.note, dict) else self.note

    @property
    def note_zh(self) -> str | None:
        """The note in Chinese."""
        return self.note.get("zh") if isinstance(self.note, dict) else self.note


def cell_of(said: Any, column: dict[str, Any]) -> Cell:
    """Read a cell: a status, a text of the column's ``texts``, a list of such texts, or a mapping.

    Raises ValueError for a text the column does not define.
    """
    if isinstance(said, dict):
        status = str(said.get("status", "unknown"))
        if status not in STATUSES:
            raise ValueError(f"{status!r} is no status")
        condition = said.get("condition")
        if isinstance(condition, str):
            condition = {"en": condition, "zh": condition}
        text = said.get("text")
        known = (column.get("texts") or {}).get(text)
        features = said.get("claims")
        if known is not None and not features:
            features = _granted([known], column)
        return Cell(
            status,
            None if text is None else str(text),
            condition or (known or {}).get("condition"),
            said.get("note"),
            said.get("source"),
            features,
        )
    if isinstance(said, str) and said in STATUSES:
        return Cell(said)
    words = [str(word) for word in said] if isinstance(said, list) else [str(said)]
    texts = column.get("texts") or {}
    for word in words:
        if word not in texts:
            raise ValueError(f"{word!r} is neither a status nor among the column's texts")
    meanings = [texts[word] or {} for word in words]
    conditions = [meaning["condition"] for meaning in meanings if meaning.get("condition")]
    statuses = {str(meaning.get("status", "supported")) for meaning in meanings}
    status = statuses.pop() if len(statuses) == 1 else "partial"
    return Cell(
        status,
        ", ".join(words),
        _joined(conditions),
        features=_granted(meanings, column),
    )


def _granted(meanings: list[dict[str, Any]], column: dict[str, Any]) -> dict[str, str] | None:
    if not any(meaning.get("features") is not None for meaning in meanings):
        return None
    unlisted = column.get("unlisted", "unsupported")
    features = dict.fromkeys(column.get("features") or (), unlisted)
    for meaning in meanings:
        for feature in meaning.get("features") or ():
            features[feature] = str(meaning.get("status", "supported"))
    return features


def _joined(conditions: list[dict[str, Any]]) -> dict[str, Any] | None:
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    return {
        "en": "; ".join(dict.fromkeys(str(condition["en"]) for condition in conditions)),
        "zh": "；".join(dict.fromkeys(str(condition["zh"]) for condition in conditions)),
    }


def feature_statuses(cell: Cell, column: dict[str, Any]) -> dict[str, str]:
    """What the cell says of every feature its column covers."""
    return {**dict.fromkeys(column.get("features") or (), cell.status), **(cell.features or {})}
