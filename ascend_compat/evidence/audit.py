"""How much is known of every release's cells: counts of each rung, what fails the audit, and a ratchet that may not fall."""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ascend_compat.errors import UsageError
from ascend_compat.evidence.store import committed_dir
from ascend_compat.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    import duckdb

STATES = ("claimed", "smoke", "verified", "contradicted", "stale")
_PROVEN = ("smoke", "verified")


@dataclass(slots=True)
class Line:
    """One release and framework: its stated cells, how many of them a claim supports, and the count of each rung."""

    product: str
    release: str
    framework: str
    cells: int
    supported: int
    states: dict[str, int]
    waived: int = 0

    @property
    def key(self) -> str:
        """The line's name in a ratchet."""
        return f"{self.product} {self.release} {self.framework}"

    def share(self, state: str) -> float:
        """The part of the stated cells on a rung, from 0 to 1."""
        return self.states[state] / self.cells if self.cells else 0.0


@dataclass(slots=True)
class Audit:
    """Every line, the worst first; the cells that fail it, and where a ratchet fell."""

    lines: list[Line]
    failing: list[dict[str, Any]] = field(default_factory=list)
    fallen: list[str] = field(default_factory=list)
    expired: list[str] = field(default_factory=list)

    def total(self, state: str) -> int:
        """Cells on a rung in all lines."""
        return sum(line.states[state] for line in self.lines)

    @property
    def passed(self) -> bool:
        """Whether nothing fails it."""
        return not (self.failing or self.fallen)


def audit(
    con: duckdb.DuckDBPyConnection,
    product: str | None = None,
    release: str | None = None,
    framework: str | None = None,
    fail_on: Iterable[str] = (),
    today: datetime.date | None = None,
) -> Audit:
    """Count the rungs of every stated cell; cells on a rung of ``fail_on`` fail it, unless a waiver of today forgives them."""
    where = {"product": product, "release": release, "framework": framework}
    condition = " AND ".join(f"(${name}::VARCHAR IS NULL OR c.{name} = ${name})" for name in where)
    counts = ", ".join(f"count(*) FILTER (state = '{state}')" for state in STATES)
    rows = con.execute(
        f"SELECT c.product, c.release, c.framework, count(*), count(*) FILTER (claim IN ('supported', 'partial')), {counts} "
        f"FROM cell_state c JOIN release r USING (product, release) WHERE {condition} "
        "GROUP BY c.product, c.release, c.framework, r.ordinal ORDER BY r.ordinal DESC, c.product, c.framework",
        where,
    ).fetchall()
    lines = [Line(row[0], row[1], row[2], row[3], row[4], dict(zip(STATES, row[5:]))) for row in rows]
    lines.sort(
        key=lambda line: (
            -line.states["contradicted"],
            -line.states["stale"],
            line.share("verified"),
            line.share("smoke"),
        )
    )
    result = Audit(lines)
    wanted = tuple(fail_on)
    today = today or datetime.date.today()
    waivers = read_waivers()
    result.expired = [
        f"{w['release']} {w['framework']}: {w['reason']['en']}" for w in waivers if str(w["until"]) < today.isoformat()
    ]
    cursor = con.execute(
        f"SELECT c.product, c.release, c.framework, model, feature, state, reason, reason_en, reason_zh, evidence FROM cell_state c "
        f"WHERE {condition} AND state IN ('contradicted', 'stale') ORDER BY ALL",
        where,
    )
    names = [column[0] for column in cursor.description or ()]
    for row in cursor.fetchall():
        cell = dict(zip(names, row))
        if any(_forgives(waiver, cell, today) for waiver in waivers):
            key = (cell["product"], cell["release"], cell["framework"])
            next(line for line in lines if (line.product, line.release, line.framework) == key).waived += 1
        elif cell["state"] in wanted:
            result.failing.append(cell)
    return result


def read_waivers() -> list[dict[str, Any]]:
    """The waivers of the committed evidence; raises :class:`DataError` for a document that is none."""
    from ascend_compat.matrix.documents import load_document

    path = committed_dir() / "waivers.yaml"
    if not path.is_file():
        return []
    return list(load_document(path, path.parent.parent).body.get("waivers") or ())


def _forgives(waiver: dict[str, Any], cell: dict[str, Any], today: datetime.date) -> bool:
    if str(waiver["until"]) < today.isoformat():
        return False
    return all(waiver.get(name) in (None, cell[name]) for name in ("release", "framework", "model", "feature", "state"))


def ratchet(result: Audit, path: Path) -> None:
    """Hold every line to the proven cells it once had: what fell is noted; what rose, and a new line, is written down.

    Raises :class:`UsageError` for a file that is no ratchet.
    """
    before = _ratchet_file(path)
    held = dict(before)
    for line in result.lines:
        now = {state: line.states[state] for state in _PROVEN}
        # a cell that rose from smoke to verified has not fallen
        proven = {"smoke": now["smoke"] + now["verified"], "verified": now["verified"]}
        for state, count in before.get(line.key, {}).items():
            if proven.get(state, 0) < count:
                result.fallen.append(f"{line.key}: {state} {count} -> {proven.get(state, 0)}")
        if any(proven.values()) or line.key in before:
            held[line.key] = {
                state: max(count, before.get(line.key, {}).get(state, 0)) for state, count in proven.items()
            }
    if held != before or not path.exists():
        write_whole(path, json.dumps(held, indent=2, sort_keys=True) + "\n")


def _ratchet_file(path: Path) -> dict[str, dict[str, int]]:
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} is no ratchet: {' '.join(str(error).split())}") from None
    sound = isinstance(held, dict) and all(
        isinstance(line, dict) and all(isinstance(count, int) for count in line.values()) for line in held.values()
    )
    if not sound:
        raise UsageError(f"{path} is no ratchet: it holds no counts")
    return dict(held)


def table(result: Audit) -> Sequence[Sequence[str]]:
    """The lines as rows of text, the heading first."""
    rows = [["product", "release", "framework", "cells", "supported", *STATES, "waived", "verified %"]]
    for line in result.lines:
        states = [str(line.states[state]) for state in STATES]
        share = f"{100 * line.share('verified'):.1f}"
        rows.append(
            [
                line.product,
                line.release,
                line.framework,
                str(line.cells),
                str(line.supported),
                *states,
                str(line.waived),
                share,
            ]
        )
    return rows
