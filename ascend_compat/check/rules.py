"""Rules as SQL: which of a framework's rules a batch of jobs breaks, in one statement.

A rule breaks when its ``when`` is true and its ``requires`` is false; NULL (a fact that is unset or unknown) breaks
nothing. A rule that tests NULL itself is silent about a fact that is unknown, which is not the same as unset.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ascend_compat.matrix.driver import duckdb
from ascend_compat.matrix.predicates import names_in
from ascend_compat.matrix.settle import UNSURE, breaks, settle

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

SQL_TYPES = {
    "integer": "BIGINT",
    "number": "DOUBLE",
    "text": "VARCHAR",
    "boolean": "BOOLEAN",
    "integers": "BIGINT[]",
    "texts": "VARCHAR[]",
}
BIGINT_MAX = 2**63 - 1
_ASK = ["?"]
# rows up to which each is looked at alone before a statement is compiled for them
_FEW = 64


Said = tuple[str, str, list[dict[str, Any]], dict[str, Any], str]


class Words:
    """What a rule says, and where it is from; read from the database when a rule is first shown."""

    def __init__(self, con: duckdb.DuckDBPyConnection, rule: str, framework: str) -> None:
        self._con = con
        self._key = [rule, framework]
        self._held: Said | None = None

    def all(self) -> Said:
        """English and Chinese message, ways out, source, and what the rule rests on."""
        if self._held is None:
            import json

            english, chinese, ways, source, basis = self._con.execute(
                "SELECT message_en, message_zh, ways_out, source, rests_on FROM rule WHERE id = ? AND framework = ?",
                self._key,
            ).fetchall()[0]
            self._held = (english, chinese, json.loads(ways or "[]"), json.loads(source or "{}"), basis or "reading")
        return self._held


class Worded(Words):
    """The words of a rule that is in no database."""

    def __init__(self, ways_out: list[dict[str, Any]]) -> None:
        self._held = ("", "", ways_out, {}, "reading")


@dataclass(frozen=True)
class Rule:
    """One rule as the database holds it. ``facts`` are the declared facts its SQL names, in alphabetical order.

    ``trees`` are ``when`` and ``requires`` as :mod:`ascend_compat.matrix.settle` reads them.
    """

    id: str
    framework: str
    topic: str
    severity: str
    when: str | None
    requires: str
    facts: tuple[str, ...]
    null_tested: tuple[str, ...]
    words: Words
    trees: tuple[Any, Any] = (["?"], ["?"])

    @property
    def message_en(self) -> str:
        """The English sentence, with places for facts."""
        return self.words.all()[0]

    @property
    def message_zh(self) -> str:
        """The Chinese sentence, with places for facts."""
        return self.words.all()[1]

    @property
    def ways_out(self) -> list[dict[str, Any]]:
        """What a user may change, as the rule's document lists it."""
        return self.words.all()[2]

    @property
    def source(self) -> dict[str, Any]:
        """Where the rule is written."""
        return self.words.all()[3]

    @property
    def rests_on(self) -> str:
        """``proof`` or ``reading``."""
        return self.words.all()[4]


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Types of the declared facts, and how a framework derives facts it is not told; ``trees`` by the SQL they stand for."""

    types: Mapping[str, str]
    derived: Sequence[tuple[str, str]]
    features: Sequence[tuple[str, str]]
    trees: Mapping[str, Any] = field(default_factory=dict)


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
    import json

    marks = ", ".join("?" for _ in frameworks)
    sets = con.execute(
        f"SELECT framework, body FROM rule_set WHERE framework IN ({marks})", list(frameworks)
    ).fetchall()
    rules: dict[str, Rule] = {}
    for framework, body in sets:
        at = ordinals.get(framework) if ordinals is not None else None
        for name, topic, severity, when, requires, since, until, first, last, facts, tested, *trees in json.loads(body):
            if name in rules or (ordinals is not None and not _in_window(at, since, until, first, last)):
                continue
            held = tuple(fact for fact in facts if fact in types)
            sides = (trees[0], trees[1])
            words = Words(con, name, framework)
            rules[name] = Rule(name, framework, topic, severity, when, requires, held, tuple(tested), words, sides)
    return list(rules.values()) if len(sets) < 2 else sorted(rules.values(), key=lambda rule: rule.id)


def _in_window(at: float | None, since: str | None, until: str | None, first: float | None, last: float | None) -> bool:
    if since is None and until is None:
        return True
    if at is None:
        return False
    return (since is None or (first is not None and first <= at)) and (
        until is None or (last is not None and at <= last)
    )


def evaluate(
    con: duckdb.DuckDBPyConnection,
    rows: Sequence[Row],
    rules: Sequence[Rule],
    vocabulary: Vocabulary,
    *,
    wild: bool = False,
) -> list[Outcome]:
    """Evaluate every rule and feature over every row: what all rows settle at once first, the rest in one statement.

    A statement that DuckDB refuses at run time (an overflow, a bad cast) is repeated with each expression under TRY,
    so that one wild value leaves only its own rule undecided; ``wild`` rows are evaluated so at once.
    """
    if not rows:
        return []
    unknown = [unknown_closure(row, vocabulary.derived) for row in rows]
    hidden, in_all = set(unknown[0]).union(*unknown[1:]), set(unknown[0]).intersection(*unknown[1:])
    settled = Settled(_shared(rows, vocabulary.types), rules, vocabulary, hidden, in_all)
    if settled.complete:
        return [settled.outcome() for _ in rows]
    found: list[Sequence[Any] | None] = [None] * len(rows)
    if 1 < len(rows) <= _FEW:
        found = [_alone(row, names, settled, vocabulary) for row, names in zip(rows, unknown)]
    left = [number for number, values in enumerate(found) if values is None]
    if left:
        some, hid = [rows[number] for number in left], [unknown[number] for number in left]
        try:
            said = _run(con, some, hid, settled, vocabulary, guard="TRY({})" if wild else "{}")
        except (duckdb.OutOfRangeException, duckdb.ConversionException, duckdb.InvalidInputException):
            said = _run(con, some, hid, settled, vocabulary, guard="TRY({})")
        for number, values in zip(left, said):
            found[number] = values
    return [settled.outcome(values or ()) for values in found]


def _alone(row: Row, unknown: Sequence[str], settled: Settled, vocabulary: Vocabulary) -> list[Any] | None:
    """What one row's own facts say of all that the facts of every row leave open; None where that is not all."""
    hidden = frozenset(unknown)
    facts = _shared([Row({**row.facts, **settled.derived})], vocabulary.types)
    open_ = Vocabulary(vocabulary.types, settled.derivations, settled.features, vocabulary.trees)
    own = Settled(facts, settled.rules, open_, hidden, hidden)
    return [*own.verdicts, *own.asked.values(), *own.derived.values()] if own.complete else None


class Settled:
    """What facts that all rows share decide, and what is left for SQL: ``rules``, ``features`` and ``derivations``.

    ``facts`` holds ``UNSURE`` for a fact that differs; ``hidden`` facts are unknown in some rows, ``in_all`` in every row.
    """

    def __init__(
        self,
        facts: dict[str, Any],
        rules: Sequence[Rule],
        vocabulary: Vocabulary,
        hidden: AbstractSet[str] = frozenset(),
        in_all: AbstractSet[str] = frozenset(),
    ) -> None:
        self._vocabulary = vocabulary
        self._rules = rules
        self.derived: dict[str, Any] = {}
        for name, sql in vocabulary.derived:
            if facts.get(name) is None:
                made: Any = UNSURE
                if name in in_all:
                    made = None
                elif name not in hidden:
                    made = typed_value(settle(vocabulary.trees.get(sql, _ASK), facts), vocabulary.types[name])
                facts[name] = made
            if facts[name] is not UNSURE:
                self.derived[name] = facts[name]
        self.derivations = [item for item in vocabulary.derived if item[0] not in self.derived]
        self.asked = {name: settle(vocabulary.trees.get(when, _ASK), facts) for name, when in vocabulary.features}
        self.features = [item for item in vocabulary.features if self.asked[item[0]] is UNSURE]
        self.verdicts = [verdict_of(rule, facts, hidden, in_all) for rule in rules]
        self.rules = [rule for rule, verdict in zip(rules, self.verdicts) if verdict is UNSURE]

    @property
    def broken(self) -> list[Rule]:
        """Rules that every row breaks."""
        return [rule for rule, verdict in zip(self._rules, self.verdicts) if verdict is True]

    @property
    def complete(self) -> bool:
        """Whether nothing is left for SQL."""
        return not (self.rules or self.features or self.derivations)

    def outcome(self, values: Sequence[Any] = ()) -> Outcome:
        """One row's outcome; ``values`` are what SQL says of its rules, features and derivations, in that order."""
        said = iter(values)
        verdicts = [next(said) if verdict is UNSURE else verdict for verdict in self.verdicts]
        asked = {name: next(said) if value is UNSURE else value for name, value in self.asked.items()}
        derived = {name: next(said) for name, _ in self.derivations}
        return Outcome(
            broken=tuple(rule for rule, verdict in zip(self._rules, verdicts) if verdict),
            undecided=tuple(rule for rule, verdict in zip(self._rules, verdicts) if verdict is None),
            features=tuple(name for name, value in asked.items() if value),
            derived={
                name: derived[name] if name in derived else self.derived[name] for name, _ in self._vocabulary.derived
            },
        )


def _shared(rows: Sequence[Row], types: Mapping[str, str]) -> dict[str, Any]:
    """Each fact that some row states: its value, or ``UNSURE`` where rows differ."""
    first = rows[0].facts
    names = first.keys() if len(rows) == 1 else set().union(*(row.facts for row in rows))
    facts = {}
    for name in names:
        if name in types:
            value = first.get(name)
            same = all(row.facts.get(name) == value for row in rows[1:])
            facts[name] = typed_fact(value, types[name]) if same else UNSURE
    return facts


def typed_fact(value: Any, kind: str) -> Any:
    """A fact's value as the statement would hold it; None for one of another type."""
    if kind == "integer":
        return int(value) if isinstance(value, int) and abs(value) <= BIGINT_MAX else None
    if kind == "number":
        return float(value) if isinstance(value, (int, float)) else None
    if kind == "boolean":
        return value if isinstance(value, bool) else None
    if kind == "text":
        return None if value is None else str(value)
    return value if isinstance(value, list) else None


def typed_value(value: Any, kind: str) -> Any:
    """A derived value where it has the fact's type already; what a cast would make of another is DuckDB's to say."""
    if value is None or value is UNSURE:
        return value
    held = typed_fact(value, kind)
    return held if type(held) is type(value) else UNSURE


def verdict_of(rule: Rule, facts: Mapping[str, Any], hidden: AbstractSet[str], in_all: AbstractSet[str]) -> Any:
    """Whether a rule breaks: it is undecided where a NULL that it tests stands for something unknown."""
    verdict = breaks(*rule.trees, facts)
    if verdict is False or not hidden:
        return verdict
    tested = [name for name in rule.null_tested if name in hidden]
    if any(name in in_all and facts.get(name) is None for name in tested):
        return None
    return UNSURE if tested else verdict


def _run(
    con: duckdb.DuckDBPyConnection,
    rows: Sequence[Row],
    unknown: Sequence[list[str]],
    settled: Settled,
    vocabulary: Vocabulary,
    guard: str,
) -> list[tuple[Any, ...]]:
    derivations = settled.derivations
    derived_names = {name for name, _ in derivations}
    needed = {fact for rule in settled.rules for fact in rule.facts} | derived_names
    for _, sql in (*settled.features, *derivations):
        needed.update(name for name in names_in(sql) if name in vocabulary.types)
    rows = [Row({**row.facts, **settled.derived}, row.unknown) for row in rows] if settled.derived else rows
    source, parameters = _values(rows, sorted(needed), derived_names, unknown, vocabulary.types)
    for level in levels(derivations):
        made = []
        for name, sql in level:
            value = f"CAST({sql} AS {_sql_type(name, vocabulary)})"
            if any(name in names for names in unknown):
                value = f"CASE WHEN list_contains(_unknown, '{name}') THEN NULL ELSE {value} END"
            made.append(f"coalesce(given_{name}, {guard.format(value)}) AS {name}")
        source = f"SELECT *, {', '.join(made)} FROM ({source})"
    columns = [guard.format(_broken(rule)) for rule in settled.rules]
    columns += [guard.format(f"coalesce({when}, false)") for _, when in settled.features]
    columns += [name for name, _ in derivations]
    statement = f"WITH job AS MATERIALIZED ({source}) SELECT {', '.join(columns)} FROM job ORDER BY _row"
    return con.execute(statement, parameters).fetchall()


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


def unknown_closure(row: Row, derivations: Iterable[tuple[str, str]]) -> list[str]:
    """Facts unknown in a row, and those derived from one that is."""
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
