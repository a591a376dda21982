"""Rules as SQL: which of a framework's rules a batch of jobs breaks, in one statement.

A rule breaks when its ``when`` is true and its ``requires`` is false; NULL (a fact that is unset or unknown) breaks
nothing. A rule that tests NULL itself is silent about a fact that is unknown, which is not the same as unset.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ascend_compat.matrix.predicates import holds, names_in, null_tested, terms

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import duckdb

SQL_TYPES = {
    "integer": "BIGINT",
    "number": "DOUBLE",
    "text": "VARCHAR",
    "boolean": "BOOLEAN",
    "integers": "BIGINT[]",
    "texts": "VARCHAR[]",
}
BIGINT_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule as the database holds it. ``facts`` are the declared facts its SQL names.

    ``refuting`` are simple terms of ``when`` each of which must hold; ``confirming`` simple terms of ``requires`` each of
    which is enough (see :mod:`ascend_compat.matrix.predicates`).
    """

    id: str
    framework: str
    topic: str
    severity: str
    when: str | None
    requires: str
    message_en: str
    message_zh: str
    ways_out: list[dict[str, Any]]
    since: str | None
    until: str | None
    source: dict[str, Any]
    rests_on: str
    facts: tuple[str, ...]
    null_tested: tuple[str, ...]
    refuting: tuple[list[Any], ...] = ()
    confirming: tuple[list[Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Types of the declared facts, and how a framework derives facts it is not told."""

    types: Mapping[str, str]
    derived: Sequence[tuple[str, str]]
    features: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Row:
    """The facts one job states, defaults or takes from its model; ``unknown`` are stated but not resolvable."""

    facts: Mapping[str, Any]
    unknown: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one row came to: broken rules, undecided rules, features asked for, derived facts."""

    broken: tuple[Rule, ...]
    undecided: tuple[Rule, ...]
    features: tuple[str, ...]
    derived: dict[str, Any]


def load_rules(
    con: duckdb.DuckDBPyConnection,
    frameworks: Sequence[str],
    ordinals: Mapping[str, float | None] | None,
    types: Mapping[str, str],
) -> list[Rule]:
    """Rules of the frameworks, valid at each framework's version ordinal.

    An ordinal of None keeps only rules without a window; ``ordinals`` None keeps every rule.
    """
    marks = ", ".join("?" for _ in frameworks)
    rows = con.execute(
        "SELECT id, framework, topic, severity, when_sql, requires_sql, message_en, message_zh, ways_out, since, until, "
        f"source, rests_on, since_ordinal, until_ordinal FROM rule WHERE framework IN ({marks}) ORDER BY id",
        list(frameworks),
    ).fetchall()
    rules = []
    taken: set[str] = set()
    for row in rows:
        if row[0] in taken:
            continue
        if ordinals is not None and not _in_window(ordinals.get(row[1]), row[9], row[10], row[13], row[14]):
            continue
        taken.add(row[0])
        sql = f"{row[4] or ''} {row[5]}"
        facts = tuple(sorted(name for name in names_in(sql) if name in types))
        rules.append(
            Rule(
                *row[:8],
                ways_out=json.loads(row[8]) if row[8] else [],
                since=row[9],
                until=row[10],
                source=json.loads(row[11]) if row[11] else {},
                rests_on=row[12] or "reading",
                facts=facts,
                null_tested=tuple(sorted(null_tested(sql) & set(facts))),
                refuting=tuple(terms(row[4], "AND", set(facts))) if row[4] else (),
                confirming=tuple(terms(row[5], "OR", set(facts))),
            )
        )
    return rules


def _in_window(at: float | None, since: str | None, until: str | None, first: float | None, last: float | None) -> bool:
    if since is None and until is None:
        return True
    if at is None:
        return False
    return (since is None or (first is not None and first <= at)) and (
        until is None or (last is not None and at <= last)
    )


def evaluate(
    con: duckdb.DuckDBPyConnection, rows: Sequence[Row], rules: Sequence[Rule], vocabulary: Vocabulary
) -> list[Outcome]:
    """Evaluate every rule and feature over every row in one statement.

    A statement that DuckDB refuses at run time (an overflow, a bad cast) is repeated with each expression under TRY,
    so that one wild value leaves only its own rule undecided.
    """
    import duckdb

    if not rows:
        return []
    derived = {name for name, _ in vocabulary.derived}
    live = [rule for rule in rules if any(_can_break(rule, row, derived) for row in rows)]
    try:
        return _run(con, rows, live, vocabulary, guard="{}")
    except (duckdb.OutOfRangeException, duckdb.ConversionException, duckdb.InvalidInputException):
        return _run(con, rows, live, vocabulary, guard="TRY({})")


def _can_break(rule: Rule, row: Row, derived: set[str]) -> bool:
    """False when a simple term alone keeps the rule silent, so that its SQL need not be compiled for this row.

    Terms over facts that are unknown, or that are still to be derived, decide nothing here.
    """

    def settled(name: str) -> bool:
        return name not in row.unknown and (row.facts.get(name) is not None or name not in derived)

    for terms_, silencing in ((rule.refuting, False), (rule.confirming, True)):
        for name, operator, literal in terms_:
            if operator == "strict":
                if any(settled(fact) and row.facts.get(fact) is None for fact in literal):
                    return False
            elif settled(name):
                value = row.facts.get(name)
                truth = holds([name, operator, literal], value)
                if truth is silencing or (truth is None and value is None):
                    return False
    return True


def _run(
    con: duckdb.DuckDBPyConnection, rows: Sequence[Row], rules: Sequence[Rule], vocabulary: Vocabulary, guard: str
) -> list[Outcome]:
    needed: set[str] = set()
    for rule in rules:
        needed.update(rule.facts)
    for _, when in vocabulary.features:
        needed.update(name for name in names_in(when) if name in vocabulary.types)
    derivations = _needed_derivations(vocabulary, needed)
    given = sorted(needed | {name for name, _ in derivations})

    derived_names = {name for name, _ in derivations}
    unknown = [_unknown_closure(row, derivations) for row in rows]
    source, parameters = _values(rows, given, derived_names, unknown, vocabulary.types)
    for level in levels(derivations):
        made = []
        for name, sql in level:
            value = f"CAST({sql} AS {_sql_type(name, vocabulary)})"
            if any(name in names for names in unknown):
                value = f"CASE WHEN list_contains(_unknown, '{name}') THEN NULL ELSE {value} END"
            made.append(f"coalesce(given_{name}, {guard.format(value)}) AS {name}")
        source = f"SELECT *, {', '.join(made)} FROM ({source})"

    columns = [guard.format(_broken(rule)) for rule in rules]
    columns += [guard.format(f"coalesce({when}, false)") for _, when in vocabulary.features]
    columns += [name for name, _ in derivations]
    statement = f"WITH job AS MATERIALIZED ({source}) SELECT {', '.join(columns) or 'NULL'} FROM job ORDER BY _row"
    outcomes = []
    n_rules, n_features = len(rules), len(vocabulary.features)
    for values in con.execute(statement, parameters).fetchall():
        verdicts = values[:n_rules]
        features = values[n_rules : n_rules + n_features]
        outcomes.append(
            Outcome(
                broken=tuple(rule for rule, verdict in zip(rules, verdicts) if verdict),
                undecided=tuple(rule for rule, verdict in zip(rules, verdicts) if verdict is None),
                features=tuple(name for (name, _), asked in zip(vocabulary.features, features) if asked),
                derived=dict(zip((name for name, _ in derivations), values[n_rules + n_features :])),
            )
        )
    return outcomes


def levels(derivations: Sequence[tuple[str, str]]) -> list[list[tuple[str, str]]]:
    """Derivations in layers, each using facts of the layers below only.

    One SELECT a layer keeps an expression from being copied into every expression that uses it.
    """
    depth: dict[str, int] = {}
    layers: list[list[tuple[str, str]]] = []
    for name, sql in derivations:
        depth[name] = max((depth[word] + 1 for word in names_in(sql) - {name} if word in depth), default=0)
        while len(layers) <= depth[name]:
            layers.append([])
        layers[depth[name]].append((name, sql))
    return layers


def _needed_derivations(vocabulary: Vocabulary, needed: set[str]) -> list[tuple[str, str]]:
    """Derivations in order; inputs of a needed one become needed too. Every derivation is kept: reports show them."""
    for name, sql in reversed(vocabulary.derived):
        needed.add(name)
        needed.update(word for word in names_in(sql) if word in vocabulary.types)
    return list(vocabulary.derived)


def _unknown_closure(row: Row, derivations: Iterable[tuple[str, str]]) -> list[str]:
    unknown = set(row.unknown)
    for name, sql in derivations:
        if row.facts.get(name) is None and names_in(sql) & unknown:
            unknown.add(name)
    return sorted(unknown)


def _broken(rule: Rule) -> str:
    broken = f"NOT ({rule.requires})" if not rule.when else f"({rule.when}) AND NOT ({rule.requires})"
    for name in rule.null_tested:
        broken = f"CASE WHEN {name} IS NULL AND list_contains(_unknown, '{name}') THEN NULL ELSE ({broken}) END"
    return broken


def _sql_type(name: str, vocabulary: Vocabulary) -> str:
    return SQL_TYPES[vocabulary.types[name]]


def _values(
    rows: Sequence[Row], names: Sequence[str], derived: set[str], unknown: Sequence[list[str]], types: Mapping[str, str]
) -> tuple[str, list[Any]]:
    """The rows as a table expression; text goes in as parameters, never as SQL.

    What all rows share is written once, as constants. Derivable facts are named ``given_…``.
    """
    parameters: list[Any] = []
    first = rows[0].facts
    shared = [name for name in names if all(row.facts.get(name) == first.get(name) for row in rows)]
    constants = []
    for name in shared:
        literal = _literal(first.get(name), types[name], parameters)
        constants.append(f"CAST({literal} AS {SQL_TYPES[types[name]]}) AS {_given(name, derived)}")
    varying = [name for name in names if name not in set(shared)]
    lines = []
    for number, row in enumerate(rows):
        cells = [str(number), f"[{', '.join(_quoted(name) for name in unknown[number])}]::VARCHAR[]"]
        for name in varying:
            literal = _literal(row.facts.get(name), types[name], parameters)
            cells.append(f"CAST({literal} AS {SQL_TYPES[types[name]]})" if number == 0 else literal)
        lines.append(f"({', '.join(cells)})")
    header = ", ".join(["_row", "_unknown", *(_given(name, derived) for name in varying)])
    select = ", ".join(["*", *constants])
    return f"SELECT {select} FROM (VALUES {', '.join(lines)}) AS given({header})", parameters


def _given(name: str, derived: set[str]) -> str:
    return f"given_{name}" if name in derived else name


def _quoted(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"


def _literal(value: Any, kind: str, parameters: list[Any]) -> str:
    if value is None:
        return "NULL"
    if kind == "boolean" and isinstance(value, bool):
        return "true" if value else "false"
    if kind == "integer" and isinstance(value, int) and abs(value) <= BIGINT_MAX:
        return str(int(value))
    if kind == "number" and isinstance(value, (int, float)):
        parameters.append(float(value))
        return "?"
    if kind == "text":
        parameters.append(str(value))
        return "?"
    if kind in ("integers", "texts") and isinstance(value, list):
        parameters.append(value)
        return f"CAST(? AS {SQL_TYPES[kind]})"
    return "NULL"
