"""Questions to the built matrix, answered as plain rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ascend_compat.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb


@dataclass(frozen=True, slots=True)
class Frame:
    """Rows under named columns; every name once."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]

    def records(self) -> list[dict[str, Any]]:
        """The rows as mappings."""
        return [dict(zip(self.columns, row)) for row in self.rows]


def fetch(con: duckdb.DuckDBPyConnection, sql: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> Frame:
    """Run one of the tool's own statements."""
    result = con.execute(sql, parameters or None)
    return Frame(_distinct([column[0] for column in result.description or ()]), result.fetchall())


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    distinct: list[str] = []
    counts: dict[str, int] = {}
    for name in names:
        free = name
        while free in distinct:
            counts[name] = counts.get(name, 0) + 1
            free = f"{name}_{counts[name]}"
        distinct.append(free)
    return tuple(distinct)


def select(con: duckdb.DuckDBPyConnection, sql: str) -> Frame:
    """Run a user's statement, which must be one query; raises :class:`UsageError` with one sentence otherwise."""
    import duckdb

    try:
        statements = con.extract_statements(sql)
        if len(statements) != 1:
            raise UsageError(f"expected one SQL query, found {len(statements)} statements")
        if statements[0].type not in (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN):
            raise UsageError(
                f"only queries are allowed (SELECT, FROM, WITH, DESCRIBE, EXPLAIN), not {statements[0].type.name}"
            )
        return fetch(con, sql)
    except duckdb.Error as error:
        raise UsageError(_sentence(error)) from error
    except (RuntimeError, OverflowError, MemoryError) as error:
        raise UsageError(f"the query failed: {' '.join(str(error).split()) or 'its answer is too large'}") from error


def _sentence(error: Exception) -> str:
    """The first paragraph of a database message, on one line."""
    words = " ".join(str(error).split("\n\nLINE ")[0].split())
    return f"the query failed: {words or type(error).__name__}"


_LISTS = {
    "models": "SELECT id, name_{l} AS name, family, type, modality, params, model_type FROM model ORDER BY family, total_params, id",
    "frameworks": "SELECT id, name_{l} AS name, product, array_to_string(aliases, ', ') AS aliases FROM framework ORDER BY id",
    "features": 'SELECT id, "group", name_{l} AS name, what_{l} AS what FROM feature',
    "products": "SELECT p.id, name_{l} AS name, count(r.release) AS releases, arg_max(r.release, r.ordinal) AS newest "
    "FROM product p LEFT JOIN release r ON r.product = p.id GROUP BY ALL ORDER BY 1",
    "releases": "SELECT r.product, r.release, r.date, string_agg(rf.framework || ' ' || rf.completeness, ', ' ORDER BY rf.framework) "
    "AS tables, r.note_{l} AS note FROM release r LEFT JOIN release_framework rf USING (product, release) "
    "WHERE (r.product = $product OR $product IS NULL) GROUP BY r.product, r.release, r.date, r.note_{l}, r.ordinal ORDER BY r.product, r.ordinal",
    "columns": "SELECT product, release, framework, \"column\", heading_{l} AS heading, array_to_string(features, ', ') AS features "
    "FROM table_column WHERE (product = $product OR $product IS NULL) ORDER BY product, release, ordinal",
    "codes": "SELECT code, name, severity, message_{l} AS message FROM code ORDER BY code",
    "rules": "SELECT id, framework, topic, severity, since, until, message_{l} AS message FROM rule ORDER BY framework, id, since_ordinal",
    "facts": "SELECT name, type, unit, {l} AS meaning FROM fact ORDER BY name",
    "stacks": "SELECT id, kind, path FROM stack_table ORDER BY id",
}
LISTS = tuple(_LISTS)


def listing(con: duckdb.DuckDBPyConnection, what: str, language: str, product: str | None = None) -> Frame:
    """One of :data:`LISTS`; ``product`` narrows releases and columns."""
    sql = _LISTS[what].replace("{l}", language)
    return fetch(con, sql, {"product": product} if "$product" in sql else ())


def conflicts(con: duckdb.DuckDBPyConnection) -> Frame:
    """Claims that two products state differently: one grants what the other denies, each as its newest release says."""
    return fetch(
        con,
        """
        WITH said AS (
            SELECT cl.*, r.ordinal FROM claim cl JOIN release r USING (product, release)
            WHERE status <> 'unknown'
            QUALIFY row_number() OVER (PARTITION BY cl.product, model, framework, feature ORDER BY r.ordinal DESC) = 1
        )
        SELECT a.model, a.framework, a.feature,
               a.product AS product_a, a.release AS release_a, a.status AS status_a, a.source AS source_a,
               b.product AS product_b, b.release AS release_b, b.status AS status_b, b.source AS source_b
        FROM said a JOIN said b ON a.product < b.product
             AND (a.model, a.framework, a.feature) = (b.model, b.framework, b.feature)
        WHERE (a.status IN ('supported', 'partial')) <> (b.status IN ('supported', 'partial'))
        ORDER BY ALL
        """,
    )
