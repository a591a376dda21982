"""Millions of jobs at once: facts in a Parquet file, one verdict a row, from the rules and claims that a single check uses.

A row gives a job's facts by name, and ``model`` by id; a column that is left out, or NULL, is a fact that is unset.
Nothing is read from job files here, so that no default of a framework is filled in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ascend_compat.check.claims import BUNDLE
from ascend_compat.check.finding import VERDICTS
from ascend_compat.check.rules import SQL_TYPES, Settled, levels, typed_fact
from ascend_compat.errors import UsageError
from ascend_compat.matrix.driver import ZERO_DIVISION, duckdb
from ascend_compat.matrix.predicates import names_in
from ascend_compat.matrix.settle import UNSURE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascend_compat.check.engine import Engine
    from ascend_compat.check.finding import Verdict
    from ascend_compat.check.rules import Rule, Vocabulary

_RANKS = {"unknown": 1, "unsupported": 2, "not-applicable": 2, "withdrawn": 2}
_IMPOSSIBLE = 3
_VERDICTS: Sequence[Verdict] = VERDICTS[: _IMPOSSIBLE + 1]


@dataclass(frozen=True)
class Audit:
    """What a file of jobs came to: rows by verdict, and by the rule they break."""

    framework: str
    version: str
    product: str
    release: str | None
    jobs: int
    verdicts: dict[Verdict, int]
    broken: dict[str, int]


def audit(
    engine: Engine,
    path: str,
    framework: str,
    version: str | None = None,
    product: str | None = None,
    release: str | None = None,
    output: str | None = None,
) -> Audit:
    """Checks every row of a Parquet file; with ``output``, writes each row's number and verdict there, too.

    Rules run where the input and the output are the only files that can be opened. Raises :class:`UsageError` for a file that
    cannot be read, or has a column that is no fact.
    """
    spec = engine.spec(framework)
    if spec is None:
        raise UsageError(f"no framework is called {framework!r}")
    version = version or spec.newest
    product = product or spec.product
    release = release or engine.claims.release_for(product, framework)[0]
    rules = engine.rules(framework, version, release if product == BUNDLE else None)
    vocabulary = engine.vocabulary(framework)
    con = _connection(path, output)
    try:
        given = _columns(con, path, vocabulary)
        _claims(con, engine, framework, product, release, [name for name, _ in vocabulary.features])
        least = 1 if release is None else 2 if engine.claims.framework_missing(product, release, framework) else 0
        jobs, facts = _shared(con, path, given, vocabulary)
        settled = Settled(facts, rules, vocabulary)
        try:
            plan = _Plan(path, given, vocabulary, settled, least, "{}")
            counts = con.execute(plan.counts()).fetchall()[0]
        except (duckdb.OutOfRangeException, duckdb.ConversionException, duckdb.InvalidInputException):
            plan = _Plan(path, given, vocabulary, settled, least, "TRY({})")
            counts = con.execute(plan.counts()).fetchall()[0]
        if output is not None:
            con.execute(f"COPY ({plan.verdicts()}) TO {_text(output)} (FORMAT parquet, USE_TMP_FILE false)")
    finally:
        con.close()
    verdicts = dict(zip(_VERDICTS, counts))
    broken = {rule.id: jobs for rule, verdict in zip(rules, settled.verdicts) if verdict is True}
    broken |= {rule.id: count for rule, count in zip(settled.rules, counts[len(_VERDICTS) :]) if count}
    return Audit(framework, version, product, release, jobs, verdicts, dict(sorted(broken.items())))


def _connection(path: str, output: str | None) -> duckdb.DuckDBPyConnection:
    from ascend_compat.matrix.macros import MACROS

    con = duckdb.connect()
    for macro in MACROS:
        con.execute(macro)
    allowed = ", ".join(_text(name) for name in (path, output) if name is not None)
    con.execute(f"SET allowed_paths = [{allowed}]")
    for setting in (
        *(f"{name} = {value}" for name, value in ZERO_DIVISION.items()),
        "enable_external_access = false",
        "preserve_insertion_order = false",
        "memory_limit = '1500MB'",
        "lock_configuration = true",
    ):
        con.execute(f"SET {setting}")
    return con


def _columns(con: duckdb.DuckDBPyConnection, path: str, vocabulary: Vocabulary) -> list[str]:
    try:
        con.execute(f"SELECT * FROM read_parquet({_text(path)}) LIMIT 0")
    except duckdb.Error as error:
        raise UsageError(f"cannot read {path} as Parquet: {' '.join(str(error).split())}") from None
    names = [str(column[0]) for column in con.description or ()]
    strange = [name for name in names if name not in vocabulary.types]
    if strange:
        raise UsageError(f"{path}: no fact is called {strange[0]!r}")
    return names


def _claims(
    con: duckdb.DuckDBPyConnection,
    engine: Engine,
    framework: str,
    product: str,
    release: str | None,
    features: Sequence[str],
) -> None:
    """One row a model, one column a feature: how far its status lowers the verdict."""
    columns = "".join(f", c{at} UTINYINT" for at in range(len(features)))
    con.execute(f"CREATE TABLE _claim (_model VARCHAR{columns})")
    places = {feature: at for at, feature in enumerate(features)}
    rows: dict[str, list[int]] = {}
    for model, feature, status in engine.con.execute(
        "SELECT model, feature, status FROM claim WHERE product = ? AND release = ? AND framework = ?",
        [product, release, framework],
    ).fetchall():
        row = rows.setdefault(model, [1] * len(features))
        if feature in places:
            row[places[feature]] = _RANKS.get(status, 0)
    if rows:
        lines = ", ".join(f"({_text(model)}{''.join(f', {rank}' for rank in row)})" for model, row in rows.items())
        con.execute(f"INSERT INTO _claim VALUES {lines}")


def _shared(
    con: duckdb.DuckDBPyConnection, path: str, given: Sequence[str], vocabulary: Vocabulary
) -> tuple[int, dict[str, Any]]:
    """Rows of the file, and every fact that is the same in all of them; ``UNSURE`` for one that is not."""
    columns = "".join(f', min("{name}"), max("{name}"), count("{name}")' for name in given)
    jobs, *ends = con.execute(f"SELECT count(*){columns} FROM read_parquet({_text(path)})").fetchall()[0]
    facts = {}
    for at, name in enumerate(given):
        low, high, count = ends[3 * at : 3 * at + 3]
        one = count == 0 or (count == jobs and low == high)
        facts[name] = typed_fact(low, vocabulary.types[name]) if one else UNSURE
    return jobs, facts


class _Plan:
    """Statements over one file: what the shared facts settle is in them as constants."""

    def __init__(
        self, path: str, given: Sequence[str], vocabulary: Vocabulary, settled: Settled, least: int, guard: str
    ) -> None:
        self._settled, self._guard, self._least = settled, guard, least
        self._features = vocabulary.features
        self._source = _source(path, given, vocabulary, settled, guard)

    def counts(self) -> str:
        """Rows of each verdict, then rows that break each rule that is not settled."""
        rules = self._settled.rules
        flags = "".join(f", {self._flag(rule)} AS r{at}" for at, rule in enumerate(rules))
        rank = self._rank([f"r{at}" for at in range(len(rules))])
        columns = [f"count_if(_rank = {value})" for value in range(len(_VERDICTS))]
        columns += [f"count_if(r{at})" for at in range(len(rules))]
        return (
            f"SELECT {', '.join(columns)} FROM (SELECT *, {rank} AS _rank FROM (SELECT *{flags} FROM ({self._source})))"
        )

    def verdicts(self) -> str:
        """Each row's number and verdict."""
        rank = self._rank([self._flag(rule) for rule in self._settled.rules])
        names = ", ".join(_text(name) for name in _VERDICTS)
        return (
            f"SELECT _row AS row, list_extract([{names}], CAST({rank} AS BIGINT) + 1) AS verdict FROM ({self._source})"
        )

    def _flag(self, rule: Rule) -> str:
        broken = f"({rule.when}) AND NOT ({rule.requires})" if rule.when else f"NOT ({rule.requires})"
        return self._guard.format(f"({broken})")

    def _rank(self, flags: Sequence[str]) -> str:
        """A row's place among the verdicts."""
        settled = self._settled
        if any(rule.severity == "impossible" for rule in settled.broken):
            return str(_IMPOSSIBLE)
        forbidding = [flag for rule, flag in zip(settled.rules, flags) if rule.severity == "impossible"]
        impossible = " OR ".join(f"coalesce({flag}, false)" for flag in forbidding) or "false"
        asked = {name: f"coalesce({self._guard.format(f'({when})')}, false)" for name, when in settled.features}
        asked |= {name: "true" for name, value in settled.asked.items() if value is True}
        if self._least == 0 and asked:
            ranks = [f"CASE WHEN _name IS NULL OR NOT ({' OR '.join(asked.values())}) THEN 1 ELSE 0 END"]
            for at, (name, _) in enumerate(self._features):
                if name in asked:
                    ranks.append(f"CASE WHEN {asked[name]} THEN coalesce(c{at}, 1) ELSE 0 END")
        else:
            ranks = [str(self._least or 1)]
        return f"CASE WHEN {impossible} THEN {_IMPOSSIBLE} ELSE greatest({', '.join(ranks)}) END"


def _source(path: str, given: Sequence[str], vocabulary: Vocabulary, settled: Settled, guard: str) -> str:
    """The rows with every fact still asked for, each derivation in a layer above those it uses."""
    derived = {name for name, _ in settled.derivations}
    needed = {fact for rule in settled.rules for fact in rule.facts} | derived
    for _, sql in (*settled.features, *settled.derivations):
        needed.update(name for name in names_in(sql) if name in vocabulary.types)
    columns = ["file_row_number AS _row"]
    columns += ["model AS _name" if "model" in given else "NULL::VARCHAR AS _name"]
    for name in sorted(needed):
        kind = SQL_TYPES[vocabulary.types[name]]
        value = f'CAST("{name}" AS {kind})' if name in given else _constant(settled.derived.get(name), kind)
        columns.append(f'{value} AS "{"given_" if name in derived else ""}{name}"')
    source = f"SELECT {', '.join(columns)} FROM read_parquet({_text(path)}, file_row_number = true)"
    for level in levels(settled.derivations):
        made = []
        for name, sql in level:
            value = guard.format(f"CAST({sql} AS {SQL_TYPES[vocabulary.types[name]]})")
            made.append(f"coalesce(given_{name}, {value}) AS {name}")
        source = f"SELECT *, {', '.join(made)} FROM ({source})"
    return f"SELECT * FROM ({source}) LEFT JOIN _claim ON _model = _name"


def _constant(value: Any, kind: str) -> str:
    if value is None:
        return f"CAST(NULL AS {kind})"
    literal = f"[{', '.join(_text(str(item)) for item in value)}]" if isinstance(value, list) else _text(str(value))
    return f"CAST({literal} AS {kind})"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
