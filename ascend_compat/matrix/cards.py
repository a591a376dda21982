"""Everything the matrix holds of one name, as titled sections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ascend_compat.matrix.names import Names
from ascend_compat.matrix.query import Frame, fetch

if TYPE_CHECKING:
    import duckdb

_LABELS = {
    "en": {
        "model": "Model", "framework": "Framework", "feature": "Feature", "release": "Release", "product": "Product", "series": "Series",
        "facts": "Facts", "names": "Names", "claims": "Claims of the newest release that states the framework", "tables": "Tables",
        "releases": "Releases", "features": "Features its jobs can ask for", "granted": "Models it is claimed for, by newest release",
        "columns": "Columns", "pages": "Pages", "models": "Models",
    },
    "zh": {
        "model": "模型", "framework": "框架", "feature": "特性", "release": "版本", "product": "产品", "series": "系列",
        "facts": "结构信息", "names": "名称", "claims": "各框架最新给出说明的版本的声明", "tables": "表格",
        "releases": "版本", "features": "作业可请求的特性", "granted": "各框架最新版本声明支持的模型",
        "columns": "列", "pages": "页面", "models": "模型",
    },
}  # fmt: skip

# the newest release of each product that says anything of a framework
_NEWEST = """
WITH newest AS (
    SELECT cl.product, cl.framework, arg_max(cl.release, r.ordinal) AS release FROM claim cl JOIN release r USING (product, release)
    WHERE cl.status <> 'unknown' {where} GROUP BY ALL
)
"""


@dataclass(frozen=True, slots=True)
class Card:
    """What is known of one name: its kind and id, and sections of a key, a title and rows."""

    kind: str
    id: str
    title: str
    sections: list[tuple[str, str, Frame]]

    def record(self) -> dict[str, Any]:
        """The card as one JSON-ready mapping; sections by their key."""
        return {"kind": self.kind, "id": self.id, **{key: frame.records() for key, _, frame in self.sections}}


def card(con: duckdb.DuckDBPyConnection, text: str, language: str, product: str | None = None) -> Card | None:
    """The card of a model, framework, feature, release, product or series, tried in this order; None for an unknown name.

    A release is ``6.5.906``, or ``product@release`` where several products have one of that name.
    """
    names = Names(con)
    match = names.model(text)
    if match is not None:
        return _model(con, match.id, language)
    framework = names.framework(text)
    if framework is not None:
        return _framework(con, framework, language)
    feature = names.feature(text)
    if feature is not None:
        return _feature(con, feature, language)
    found = find_release(con, text, product)
    if found is not None:
        return _release(con, *found, language)
    named = names.product(text)
    if named is not None:
        releases = fetch(
            con,
            f"SELECT release, date, note_{language} AS note FROM release WHERE product = ? ORDER BY ordinal",
            [named],
        )
        return _card("product", named, language, {"releases": releases})
    series = names.series(text)
    if series:
        models = fetch(
            con,
            f"SELECT id, name_{language} AS name, params FROM model WHERE list_contains(?, id) ORDER BY total_params",
            [series],
        )
        return _card("series", text, language, {"models": models})
    return None


def find_release(con: duckdb.DuckDBPyConnection, text: str, product: str | None = None) -> tuple[str, str] | None:
    """Product and release of ``release`` or ``product@release``; ``ascendfactory`` answers first, then the others by name."""
    names = Names(con)
    owner, at, rest = text.rpartition("@")
    if at:
        product, text = names.product(owner), rest
        if product is None:
            return None
    every = "SELECT id FROM product ORDER BY id <> 'ascendfactory', id"
    candidates = [product] if product else [row[0] for row in fetch(con, every).rows]
    for candidate in candidates:
        release = names.release(candidate, text)
        if release is not None:
            return candidate, release
    return None


def suggestions(con: duckdb.DuckDBPyConnection, text: str) -> list[str]:
    """The nearest names of any kind."""
    names = Names(con)
    products = [row[0] for row in fetch(con, "SELECT id FROM product ORDER BY id").rows]
    found = [*names.suggest_models(text)[:2], *names.suggest_frameworks(text)[:1], *names.suggest_features(text)[:1]]
    found += [release for product in products for release in names.suggest_releases(product, text)[:1]]
    return list(dict.fromkeys([*found, *names.suggest_products(text)[:1]]))[:4]


def _card(kind: str, name: str, language: str, sections: dict[str, Frame]) -> Card:
    labels = _LABELS[language]
    return Card(kind, name, f"{labels[kind]} {name}", [(key, labels[key], frame) for key, frame in sections.items()])


def _model(con: duckdb.DuckDBPyConnection, model: str, language: str) -> Card:
    whole = fetch(con, "SELECT * EXCLUDE (body, sources, hf_ids, aliases, path) FROM model WHERE id = ?", [model])
    facts = [(name, value) for name, value in zip(whole.columns, whole.rows[0]) if value is not None]
    written = fetch(con, "SELECT written, kind FROM model_alias WHERE model = ? ORDER BY kind, written", [model])
    condition = "condition" if language == "en" else "condition_zh"
    claims = fetch(
        con,
        _NEWEST.format(where="AND cl.model = $model")
        + f"SELECT product, release, framework, status, {condition} AS condition, string_agg(feature, ', ' ORDER BY feature) AS features "
        "FROM claim JOIN newest USING (product, release, framework) WHERE model = $model AND status <> 'unknown' "
        "GROUP BY ALL ORDER BY 1, 3, 4",
        {"model": model},
    )
    return _card(
        "model", model, language, {"facts": Frame(("fact", "value"), facts), "names": written, "claims": claims}
    )


def _framework(con: duckdb.DuckDBPyConnection, framework: str, language: str) -> Card:
    facts = fetch(
        con,
        f"SELECT id, name_{language} AS name, product, array_to_string(aliases, ', ') AS aliases FROM framework WHERE id = ?",
        [framework],
    )
    tables = fetch(
        con,
        'SELECT rf.product, rf.release, r.date, rf.completeness AS "table", rf.version, rf.assumed FROM release_framework rf '
        "JOIN release r USING (product, release) WHERE rf.framework = ? ORDER BY rf.product, r.ordinal",
        [framework],
    )
    columns = fetch(
        con,
        f"SELECT product, release, \"column\", heading_{language} AS heading, array_to_string(features, ', ') AS features "
        "FROM table_column JOIN release r USING (product, release) WHERE framework = ? ORDER BY product, r.ordinal, table_column.ordinal",
        [framework],
    )
    return _card("framework", framework, language, {"facts": facts, "tables": tables, "columns": columns})


def _feature(con: duckdb.DuckDBPyConnection, feature: str, language: str) -> Card:
    facts = fetch(
        con,
        f'SELECT id, "group", name_{language} AS name, what_{language} AS what FROM feature WHERE id = ?',
        [feature],
    )
    granted = fetch(
        con,
        _NEWEST.format(where="AND cl.feature = $feature")
        + "SELECT product, release, framework, status, count(*) AS models, string_agg(model, ', ' ORDER BY model) AS which "
        "FROM claim JOIN newest USING (product, release, framework) WHERE feature = $feature AND status <> 'unknown' "
        "GROUP BY ALL ORDER BY 1, 3, 4",
        {"feature": feature},
    )
    return _card("feature", feature, language, {"facts": facts, "granted": granted})


def _release(con: duckdb.DuckDBPyConnection, product: str, release: str, language: str) -> Card:
    key = [product, release]
    facts = fetch(
        con,
        f"SELECT product, release, date, note_{language} AS note FROM release WHERE product = ? AND release = ?",
        key,
    )
    tables = fetch(
        con,
        'SELECT framework, completeness AS "table", version, assumed, '
        "(SELECT count(*) FROM cell c WHERE (c.product, c.release, c.framework) = (rf.product, rf.release, rf.framework)) AS cells "
        "FROM release_framework rf WHERE product = ? AND release = ? ORDER BY framework",
        key,
    )
    columns = fetch(
        con,
        f"SELECT framework, \"column\", heading_{language} AS heading, array_to_string(features, ', ') AS features "
        "FROM table_column WHERE product = ? AND release = ? ORDER BY framework, ordinal",
        key,
    )
    pages = fetch(
        con,
        "SELECT page->>'url' AS url, page->>'date' AS date FROM "
        "(SELECT unnest(CAST(pages AS JSON[])) AS page FROM release WHERE product = ? AND release = ?)",
        key,
    )
    return _card("release", release, language, {"facts": facts, "tables": tables, "columns": columns, "pages": pages})
