"""Where every cell stands on the evidence ladder, read once from the view ``cell_state``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ascend_compat.docs.source import Source

# from the worst: what a badge or a cell of several claims shows
ORDER = ("contradicted", "stale", "claimed", "smoke", "verified")


@dataclass(frozen=True, slots=True)
class Rung:
    """A rung, why, the run that speaks for it and when that ended."""

    state: str
    reason: str
    evidence: str | None
    ended: str | None


Key = tuple[str, str, str, str, str]


class Rungs:
    """The rung of a claim, and of a cell, which is the lowest of the features its column covers."""

    def __init__(self, source: Source) -> None:
        rows = source.rows(
            "SELECT product, release, framework, model, feature, state, reason_{l}, evidence, ended FROM cell_state "
            "WHERE state <> 'claimed' OR evidence IS NOT NULL"
        )
        self._known: dict[Key, Rung] = {}
        for row in rows:
            values: list[Any] = list(row.values())
            self._known[tuple(values[:5])] = Rung(*values[5:9])
        self._none = Rung("claimed", source.t("no recipe of it has run", "尚无配方运行"), None, None)

    def of(self, product: str, release: str, framework: str, model: str, feature: str) -> Rung:
        """The rung of one claim; a claim that nothing ran for is claimed."""
        return self._known.get((product, release, framework, model, feature), self._none)

    def lowest(
        self, product: str, release: str, framework: str, models: Iterable[str], features: Iterable[str]
    ) -> Rung:
        """The rung of a cell that stands for several models and features: never more than the least of them shows."""
        features = list(features)
        found = [self.of(product, release, framework, model, feature) for model in models for feature in features]
        return min(found, key=lambda rung: ORDER.index(rung.state), default=self._none)
