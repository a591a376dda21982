"""How claims change from release to release. What a release does not state is neither a gain nor a loss."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascend_compat.matrix.query import fetch

if TYPE_CHECKING:
    import duckdb

    from ascend_compat.matrix.query import Frame

CHANGES = ("added", "lost", "changed", "newly stated", "became unknown")
_CONDITION = {"en": "condition", "zh": "condition_zh"}

_DIFF = """
WITH before AS (SELECT * FROM claim WHERE product = $product AND release = $old AND status <> 'unknown'),
     after AS (SELECT * FROM claim WHERE product = $product AND release = $new AND status <> 'unknown'),
     complete AS (SELECT framework FROM release_framework WHERE product = $product AND release = $old AND completeness = 'full'),
     listed AS (SELECT DISTINCT model, framework FROM cell WHERE product = $product AND release = $old),
     both_sides AS (
        SELECT coalesce(a.model, b.model) AS model, coalesce(a.framework, b.framework) AS framework,
               coalesce(a.feature, b.feature) AS feature, coalesce(b.status, 'unknown') AS before, coalesce(a.status, 'unknown') AS after,
               b.{condition} AS condition_before, a.{condition} AS condition_after
        FROM before b FULL JOIN after a ON (a.model, a.framework, a.feature) = (b.model, b.framework, b.feature)
     )
SELECT * FROM (SELECT CASE
         WHEN after = 'unknown' THEN 'became unknown'
         WHEN before = 'unknown' THEN CASE
            WHEN after IN ('supported', 'partial') AND framework IN (FROM complete) AND (model, framework) NOT IN (FROM listed)
            THEN 'added' ELSE 'newly stated' END
         WHEN after IN ('supported', 'partial') AND before NOT IN ('supported', 'partial') THEN 'added'
         WHEN before IN ('supported', 'partial') AND after NOT IN ('supported', 'partial') THEN 'lost'
         ELSE 'changed'
       END AS change,
       model, framework, feature, before, after, condition_before, condition_after
FROM both_sides
WHERE (before, condition_before) IS DISTINCT FROM (after, condition_after)
  AND (framework = $framework OR $framework IS NULL) AND (model = $model OR $model IS NULL))
ORDER BY list_position(['added', 'lost', 'changed', 'newly stated', 'became unknown'], change), framework, model, feature
"""

_HISTORY = """
SELECT h.product, h.framework, h.feature, h.status, h.{condition} AS condition, h.since, s.date AS since_date, h.until, h.last_stated
FROM cell_history h JOIN release s ON s.product = h.product AND s.release = h.since
WHERE h.model = $model AND (h.framework = $framework OR $framework IS NULL) AND (h.feature = $feature OR $feature IS NULL)
  AND (h.product = $product OR $product IS NULL)
ORDER BY h.product, h.framework, h.feature, s.ordinal
"""


def diff(
    con: duckdb.DuckDBPyConnection,
    product: str,
    old: str,
    new: str,
    framework: str | None = None,
    model: str | None = None,
    language: str = "en",
) -> Frame:
    """What differs from one release to another, as one of :data:`CHANGES` a row.

    ``added`` and ``lost`` are grants that came and went between two statements; a model that a complete table did not list before
    and that is granted now is ``added`` too. ``newly stated`` was unknown before; ``became unknown`` is no longer stated.
    """
    parameters = {"product": product, "old": old, "new": new, "framework": framework, "model": model}
    return fetch(con, _DIFF.format(condition=_CONDITION[language]), parameters)


def history(
    con: duckdb.DuckDBPyConnection,
    model: str,
    framework: str | None = None,
    feature: str | None = None,
    product: str | None = None,
    language: str = "en",
) -> Frame:
    """Spans of releases over which a model's claims stayed the same; ``until`` is NULL for what still stands."""
    parameters = {"model": model, "framework": framework, "feature": feature, "product": product}
    return fetch(con, _HISTORY.format(condition=_CONDITION[language]), parameters)
