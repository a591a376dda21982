"""Does the matrix still say what it said? Two states compared: claims, defaults, rules, and the verdicts of known jobs."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from ascend_compat.check import sides
from ascend_compat.check.finding import VERDICTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from ascend_compat.check.sides import Firing, Side

KINDS = ("lost", "changed", "became unknown", "gained", "added")
_GRANTS = frozenset(("supported", "partial"))
# tables that decide what a rule says of given facts; where none differs, no rule can answer differently
_RULE_TABLES = ("rule", "rule_set", "rule_base", "framework_spec", "fact", "model", "release")

_CLAIMS = (
    "SELECT product, release, framework, model, feature, status, condition FROM claim "
    "ORDER BY product, release, framework, model, feature"
)
_CELLS = (
    'SELECT product, release, framework, model, "column", status, condition FROM cell '
    'ORDER BY product, release, framework, model, "column"'
)
_DEFAULTS = """
WITH listed AS (
    SELECT rf.product, rf.framework, rf.release, rf.completeness, r.ordinal FROM release_framework rf
    JOIN release r USING (product, release) WHERE rf.completeness IN ('full', 'partial')
), chosen AS (
    SELECT product, framework,
           coalesce(arg_max(release, ordinal) FILTER (completeness = 'full'), arg_max(release, ordinal)) AS release
    FROM listed GROUP BY product, framework
)
SELECT c.product, c.framework, cl.model, cl.feature, cl.status, cl.condition, c.release
FROM chosen c JOIN claim cl USING (product, framework, release) ORDER BY ALL
"""
# what names alone are answered, as ascend_compat.check.claims has it: a variant asks for its base, an absent framework says no
_NAMES = """
WITH asked AS (
    SELECT r.product, r.release, f.framework, m.id AS model,
           CASE WHEN m.variant_of IS NOT NULL AND NOT EXISTS (
               SELECT 1 FROM cell c WHERE c.product = r.product AND c.release = r.release AND c.model = m.id
           ) THEN m.variant_of ELSE m.id END AS listed
    FROM release r CROSS JOIN model m
    JOIN (SELECT DISTINCT product, framework FROM release_framework) f ON f.product = r.product
), absent AS (
    SELECT r.product, r.release, f.framework FROM release r
    JOIN (SELECT DISTINCT product, framework FROM release_framework) f USING (product)
    WHERE EXISTS (SELECT 1 FROM release_framework x WHERE x.product = r.product AND x.release = r.release AND x.completeness <> 'absent')
      AND NOT EXISTS (SELECT 1 FROM release_framework x WHERE x.product = r.product AND x.release = r.release
                      AND x.framework = f.framework AND x.completeness <> 'absent')
)
SELECT a.product, a.release, a.framework, a.model,
       CASE WHEN n.framework IS NOT NULL THEN 'not in the release' ELSE
       coalesce(string_agg(cl.feature || '=' || cl.status, ' ' ORDER BY cl.feature) FILTER (cl.status <> 'unknown'), '') END AS said
FROM asked a LEFT JOIN absent n USING (product, release, framework)
LEFT JOIN claim cl ON (cl.product, cl.release, cl.framework, cl.model) = (a.product, a.release, a.framework, a.listed)
GROUP BY a.product, a.release, a.framework, a.model, n.framework ORDER BY ALL
"""
_RULES = (
    "SELECT framework, id, severity, when_sql, requires_sql, since, until FROM rule "
    "ORDER BY framework, id, since_ordinal NULLS FIRST, until_ordinal NULLS LAST"
)


_EVIDENCE = (
    "SELECT product, release, framework, model, feature, state FROM cell_state WHERE state <> 'claimed' ORDER BY ALL"
)
_RUNGS = ("claimed", "smoke", "verified")


@dataclass(slots=True)
class Change:
    """One answer that is not what it was. ``reason`` is the declaration that lets it through; None without one."""

    part: str
    kind: str
    key: dict[str, str]
    before: str | None
    after: str | None
    reason: str | None = None
    codes: tuple[str, ...] = ()

    @property
    def needs_reason(self) -> bool:
        """Whether it fails the comparison when nobody declared it: everything but what is wholly new."""
        return self.kind != "added" and self.reason is None


@dataclass(slots=True)
class Difference:
    """Everything that changed between two states, and how much was compared."""

    base: str
    now: str
    changes: list[Change] = field(default_factory=list)
    compared: dict[str, int] = field(default_factory=dict)

    @property
    def undeclared(self) -> list[Change]:
        """Changes that need a reason and have none."""
        return [change for change in self.changes if change.needs_reason]


def compare(base: Side, now: Side, folders: Sequence[Path] = ()) -> Difference:
    """What ``now`` answers differently from ``base``; a function of the two databases and the job files in ``folders``."""
    difference = Difference(base.name, now.name)
    found = difference.changes
    found += _statements(base, now, difference)
    found += _defaults(base, now, difference)
    found += _rules(base, now, difference)
    if any(_table(base, name) != _table(now, name) for name in _RULE_TABLES):
        found += _fired(base, now, difference)
    found += _jobs(base, now, folders, difference)
    found += _evidence(base, now, difference)
    _declare(found, [entry for entry in now.declared if entry not in base.declared])
    return difference


def _table(side: Side, name: str) -> list[tuple[Any, ...]]:
    return side.rows(f"SELECT * FROM {name} ORDER BY ALL")


def _kind(before: str, after: str) -> str:
    if after == "unknown" != before:
        return "became unknown"
    if after in _GRANTS and before not in _GRANTS:
        return "gained"
    return "lost" if before in _GRANTS and after not in _GRANTS else "changed"


def _said(status: str, condition: str | None) -> str:
    return f"{status} ({condition})" if condition else status


def _statements(base: Side, now: Side, difference: Difference) -> Iterator[Change]:
    """Claims; then cells that changed without moving a claim, and questions by names that no changed claim explains."""
    moved: set[tuple[Any, ...]] = set()
    names = ("product", "release", "framework", "model")
    for part, sql, last in (("claim", _CLAIMS, "feature"), ("cell", _CELLS, "column")):
        old = {row[:5]: row[5:] for row in base.rows(sql)}
        new = {row[:5]: row[5:] for row in now.rows(sql)}
        difference.compared[part] = len(old.keys() | new.keys())
        for key in [*old, *(key for key in new if key not in old)]:
            if old.get(key) == new.get(key) or (part == "cell" and key[:4] in moved):
                continue
            if part == "claim":
                moved.add(key[:4])
            before, after = old.get(key, ("unknown", None)), new.get(key, ("unknown", None))
            if key not in old and after[0] == "unknown":
                continue
            kind = "added" if key not in old else _kind(before[0], after[0])
            yield Change(part, kind, dict(zip((*names, last), key)), _said(*before), _said(*after))
    old_names = {row[:4]: row[4] for row in base.rows(_NAMES)}
    new_names = {row[:4]: row[4] for row in now.rows(_NAMES)}
    shared = dict(now.rows("SELECT id, coalesce(variant_of, id) FROM model"))
    difference.compared["names"] = len(old_names.keys() | new_names.keys())
    for group, answer in old_names.items():
        other = new_names.get(group)
        if other != answer and not {group, (*group[:3], shared.get(group[3]))} & moved:
            kind = "became unknown" if not other else "gained" if not answer else "changed"
            yield Change("names", kind, dict(zip(names, group)), answer or "unknown", other or "unknown")


def _defaults(base: Side, now: Side, difference: Difference) -> Iterator[Change]:
    """What is answered without naming a release, where that release is another one than before."""
    old = {row[:4]: row[4:] for row in base.rows(_DEFAULTS)}
    new = {row[:4]: row[4:] for row in now.rows(_DEFAULTS)}
    difference.compared["default"] = len(old.keys() | new.keys())
    was = {key[:2]: row[2] for key, row in old.items()}
    is_ = {key[:2]: row[2] for key, row in new.items()}
    for key in [*old, *(key for key in new if key not in old)]:
        if was.get(key[:2]) == is_.get(key[:2]):
            continue
        said = [side.get(key, ("unknown", None))[:2] for side in (old, new)]
        if said[0] == said[1]:
            continue
        kind = "added" if key[:2] not in was else _kind(said[0][0], said[1][0])
        named = dict(zip(("product", "framework", "model", "feature"), key))
        named["release"] = f"{was.get(key[:2], '-')} -> {is_.get(key[:2], '-')}"
        yield Change("default", kind, named, _said(*said[0]), _said(*said[1]))


def _rules(base: Side, now: Side, difference: Difference) -> Iterator[Change]:
    """Rules that are gone, new, or say another thing."""
    old, new = _by_rule(base), _by_rule(now)
    difference.compared["rule"] = len(old.keys() | new.keys())
    for key in [*old, *(key for key in new if key not in old)]:
        before, after = old.get(key), new.get(key)
        if before == after:
            continue
        kind = "added" if before is None else "lost" if after is None else "changed"
        told = _told(before, after)
        yield Change("rule", kind, {"framework": key[0], "rule": key[1]}, *told)


_Window = tuple[str, "str | None", str, "str | None", "str | None"]


def _by_rule(side: Side) -> dict[tuple[str, str], list[_Window]]:
    found: dict[tuple[str, str], list[_Window]] = {}
    for framework, rule, *window in side.rows(_RULES):
        found.setdefault((framework, rule), []).append((window[0], window[1], window[2], window[3], window[4]))
    return found


def _told(before: list[_Window] | None, after: list[_Window] | None) -> tuple[str | None, str | None]:
    """Only what differs of two versions of a rule, in words."""

    def words(windows: list[_Window], parts: Iterable[str]) -> str:
        told = []
        for severity, when, requires, since, until in windows:
            one = {
                "severity": severity,
                "when": f"when {when or 'always'}",
                "requires": f"requires {requires}",
                "window": f"{since or 'first'}..{until or 'newest'}",
            }
            told.append(" ".join(one[part] for part in parts))
        return "; ".join(told)

    if before is None or after is None:
        whole = ("severity", "when", "requires", "window")
        return (words(before, whole) if before else None, words(after, whole) if after else None)
    parts = [
        name
        for name, pick in (
            ("severity", slice(0, 1)),
            ("when", slice(1, 2)),
            ("requires", slice(2, 3)),
            ("window", slice(3, 5)),
        )
        if [window[pick] for window in before] != [window[pick] for window in after]
    ]
    return words(before, parts), words(after, parts)


def _fired(base: Side, now: Side, difference: Difference) -> Iterator[Change]:
    """Rules that fire elsewhere: on examples at every version, and on the grid of parallel sizes."""
    before, after = sides.fired(base, base), sides.fired(now, base)
    for framework, (examples, grid) in before.items():
        yield from _moved("example", framework, examples, after[framework][0], difference)
        yield from _moved("grid", framework, _unversioned(grid), _unversioned(after[framework][1]), difference)


def _unversioned(firing: Firing) -> Firing:
    return {name.rpartition("@")[0]: broken for name, broken in firing.items()}


def _moved(part: str, framework: str, old: Firing, new: Firing, difference: Difference) -> Iterator[Change]:
    shared = [name for name in old if name in new]
    difference.compared[part] = difference.compared.get(part, 0) + len(shared)
    counts: dict[str, list[str]] = {}
    for name in shared:
        for rule in old[name] ^ new[name]:
            counts.setdefault(rule, []).append(name)
    for rule, names in sorted(counts.items()):
        before = sum(rule in old[name] for name in names)
        after = sum(rule in new[name] for name in names)
        kind = "lost" if not before else "gained" if not after else "changed"
        key = {
            "framework": framework,
            "rule": rule,
            "cases": str(len(names)),
            "of": str(len(shared)),
            "first": names[0],
        }
        yield Change(part, kind, key, f"breaks {before}", f"breaks {after}")


def _jobs(base: Side, now: Side, folders: Sequence[Path], difference: Difference) -> Iterator[Change]:
    """Known job files that answer differently."""
    old, new = sides.job_reports(base, folders), sides.job_reports(now, folders)
    difference.compared["job"] = len(old.keys() | new.keys())
    for name in sorted(old.keys() | new.keys()):
        codes = []
        for reports in (old, new):
            report = reports.get(name)
            found = report.findings if report else []
            codes.append({finding.code for finding in found if finding.severity != "note"})
        before, after = (reports[name].verdict if name in reports else None for reports in (old, new))
        if before == after and codes[0] == codes[1]:
            continue
        kind = "changed"
        if before and after and before != after:
            kind = "lost" if VERDICTS.index(after) > VERDICTS.index(before) else "gained"
        report = new.get(name) or old[name]
        key = {"file": name, "framework": report.framework or "", "product": report.product or ""}
        told = [
            f"{verdict or 'no job'} {' '.join(sorted(one))}".rstrip() for verdict, one in zip((before, after), codes)
        ]
        yield Change("job", kind, key, told[0], told[1], codes=tuple(sorted(codes[0] ^ codes[1])))


def _evidence(base: Side, now: Side, difference: Difference) -> Iterator[Change]:
    """The ratchet: cells that runs had shown to work and that are proven less now, or have become stale or contradicted."""
    old, new = ({row[:5]: row[5] for row in side.rows(_EVIDENCE)} for side in (base, now))
    keys = [*old, *(key for key in new if key not in old)]
    difference.compared["evidence"] = len(keys)
    for key in keys:
        before, after = old.get(key, "claimed"), new.get(key, "claimed")
        if before == after:
            continue
        if after in _RUNGS and before in _RUNGS:
            kind = "lost" if _RUNGS.index(after) < _RUNGS.index(before) else "added"
        else:
            kind = "added" if after in _RUNGS else "lost" if before in _RUNGS[1:] else "changed"
        names = ("product", "release", "framework", "model", "feature")
        yield Change("evidence", kind, dict(zip(names, key)), before, after)


def _declare(changes: Iterable[Change], entries: Sequence[Mapping[str, Any]]) -> None:
    changes = list(changes)
    for change in changes:
        change.reason = next((_english(entry) for entry in entries if _matches(entry["match"], change)), None)
    reasons = {change.key["rule"]: change.reason for change in changes if "rule" in change.key and change.reason}
    claimed = next((change.reason for change in changes if change.part in ("claim", "default") and change.reason), None)
    for change in changes:
        if change.part in ("example", "grid") and change.reason is None:
            change.reason = reasons.get(change.key["rule"])
        if change.part == "job" and change.reason is None:
            found = [reasons.get(code) or (claimed if code.startswith("AC1") else None) for code in change.codes]
            if found and all(found):
                change.reason = found[0]
            elif not change.codes:
                change.reason = claimed


def _english(entry: Mapping[str, Any]) -> str:
    reason = entry["reason"]
    return str(reason["en"] if isinstance(reason, dict) else reason)


def _matches(match: Mapping[str, str], change: Change) -> bool:
    """Whether every pattern of an entry fits the change."""
    known = {"part": change.part, "kind": change.kind, "before": change.before or "", "after": change.after or ""}
    known |= change.key
    return all(name in known and fnmatchcase(known[name], pattern) for name, pattern in match.items())
