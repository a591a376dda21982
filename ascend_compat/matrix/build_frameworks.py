"""Frameworks, features, facts, rules and codes; and the names under which they and products and releases are found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ascend_compat.matrix.build import Table, in_both, json_text, of_kind
from ascend_compat.matrix.build_proofs import proof_table
from ascend_compat.matrix.build_trees import trees
from ascend_compat.matrix.normal import release_key, squashed
from ascend_compat.matrix.predicates import names_in, null_tested

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ascend_compat.matrix.documents import Document

Ordinals = dict[tuple[str, str], int]


def tables(
    documents: Sequence[Document], products: Mapping[str, Table], ordinals: Ordinals, models: Table
) -> list[Table]:
    """``framework``, ``framework_spec``, ``feature``, ``fact``, the rules' tables, ``code``, ``name`` and ``label``."""
    framework, spec = _frameworks(documents, products)
    home = {row["id"]: row["product"] for row in framework.rows}
    feature = _features(documents)
    fact = _facts(documents)
    rule = _rules(documents, home, products, ordinals)
    return [
        framework,
        spec,
        feature,
        fact,
        rule,
        proof_table(documents),
        _rule_sets(rule, [row["name"] for row in fact.rows]),
        _bases(documents),
        _codes(documents),
        _names(products, framework, feature),
        _labels(products, framework, feature, models),
    ]


def _frameworks(documents: Sequence[Document], products: Mapping[str, Table]) -> tuple[Table, Table]:
    table = Table(
        "framework",
        {
            **dict.fromkeys(("id", "name", "name_en", "name_zh", "product"), "VARCHAR"),
            "aliases": "VARCHAR[]",
            "body": "VARCHAR",
        },
    )
    spec = Table("framework_spec", {"framework": "VARCHAR", "body": "VARCHAR", "compact": "VARCHAR"})
    types = {row["name"]: row["type"] for row in _facts(documents).rows}
    keys = {str(document.body["framework"]): document.body for document in of_kind(documents, "keys")}
    described = {str(document.body["id"]): document.body for document in of_kind(documents, "framework")}
    listed = [row["framework"] for row in products["release_framework"].rows]
    for framework in dict.fromkeys([*described, *listed]):
        english, chinese = in_both(described.get(framework, {}).get("names"))
        table.add(
            id=framework,
            name=english or framework,
            name_en=english or framework,
            name_zh=chinese or framework,
            product=str(described.get(framework, {}).get("product", framework)),
            aliases=list(described.get(framework, {}).get("aliases") or ()),
            body=json_text(described.get(framework)),
        )
    home = {row["id"]: row["product"] for row in table.rows}
    for framework in dict.fromkeys([*described, *keys]):
        product = home.get(framework, framework)
        releases = [row for row in products["release"].rows if row["product"] == product]
        body, listed_keys = described.get(framework), keys.get(framework)
        versions = [row["release"] for row in releases]
        whole = {"framework": body, "keys": listed_keys, "facts": types, "versions": versions}
        aliases = {alias: row["release"] for row in releases for alias in row["aliases"]}
        compact = _compact(framework, product, body or {}, listed_keys or {}, types)
        compact |= {"versions": versions, "aliases": aliases, "facts": types}
        spec.add(framework=framework, body=json_text(whole), compact=json_text(compact))
    return table, spec


def _compact(
    framework: str, product: str, body: Mapping[str, Any], keys: Mapping[str, Any], types: Mapping[str, str]
) -> dict[str, Any]:
    """What reading and checking a job needs of a framework: nothing about sources; expressions with their trees."""
    expressions = [entry["sql"] for entry in body.get("derived") or ()]
    expressions += [entry["when"] for entry in body.get("features") or ()]
    kept = [{name: said for name, said in key.items() if name != "source"} for key in keys.get("keys") or ()]
    return {
        "id": framework,
        "product": product,
        "derived": [{"fact": entry["fact"], "sql": entry["sql"]} for entry in body.get("derived") or ()],
        "features": [{"feature": entry["feature"], "when": entry["when"]} for entry in body.get("features") or ()],
        "trees": trees(expressions, types),
        "keys": kept,
        "strict": keys.get("strict"),
        "configs": keys.get("configs"),
    }


def _features(documents: Sequence[Document]) -> Table:
    table = Table(
        "feature",
        {
            **dict.fromkeys(("id", "group", "name_en", "name_zh", "what_en", "what_zh"), "VARCHAR"),
            "aliases": "VARCHAR[]",
            "implies": "VARCHAR[]",
        },
    )
    for document in of_kind(documents, "features"):
        for body in document.body.get("features") or ():
            name_en, name_zh = in_both(body.get("names"))
            what_en, what_zh = in_both(body.get("what"))
            table.add(
                id=body["id"],
                group=body.get("group"),
                name_en=name_en or body["id"],
                name_zh=name_zh or body["id"],
                what_en=what_en,
                what_zh=what_zh,
                aliases=list(body.get("aliases") or ()),
                implies=list(body.get("implies") or ()),
            )
    return table


def _facts(documents: Sequence[Document]) -> Table:
    table = Table("fact", dict.fromkeys(("name", "type", "unit", "en", "zh"), "VARCHAR"))
    seen = set()
    for document in of_kind(documents, "facts"):
        for body in document.body.get("facts") or ():
            if body["name"] not in seen:
                seen.add(body["name"])
                table.add(**{name: body.get(name) for name in table.columns})
    return table


def _rules(
    documents: Sequence[Document], home: Mapping[str, str], products: Mapping[str, Table], ordinals: Ordinals
) -> Table:
    table = Table(
        "rule",
        {
            **dict.fromkeys(("id", "framework", "topic", "severity", "when_sql", "requires_sql"), "VARCHAR"),
            **dict.fromkeys(("message_en", "message_zh", "why_en", "why_zh", "ways_out", "since", "until"), "VARCHAR"),
            "since_ordinal": "INTEGER",
            "until_ordinal": "INTEGER",
            **dict.fromkeys(("source", "sources", "rests_on"), "VARCHAR"),
            "candidates": "VARCHAR[]",
            "examples": "VARCHAR",
            "path": "VARCHAR",
        },
    )
    ids = {
        (row["product"], release_key(name)): row["release"]
        for row in products["release"].rows
        for name in (row["release"], *row["aliases"])
    }
    proved = {row["rule"] for row in proof_table(documents).rows}
    for document in of_kind(documents, "rules"):
        for body in document.body.get("rules") or ():
            framework = str(body.get("framework") or document.body.get("framework"))
            message_en, message_zh = in_both(body.get("message"))
            why_en, why_zh = in_both(body.get("why"))
            sources = body.get("source", body.get("sources"))
            for window in body.get("windows") or [{"since": body.get("since"), "until": body.get("until")}]:
                product = home.get(framework, framework)
                since, until = window.get("since"), window.get("until")
                table.add(
                    id=body["id"],
                    framework=framework,
                    topic=body.get("topic") or document.body.get("topic"),
                    severity=body.get("severity"),
                    when_sql=body.get("when"),
                    requires_sql=body.get("requires"),
                    message_en=message_en,
                    message_zh=message_zh,
                    why_en=why_en,
                    why_zh=why_zh,
                    ways_out=json_text(body.get("ways_out") or []),
                    since=since,
                    until=until,
                    since_ordinal=ordinals.get((product, ids.get((product, release_key(since)), ""))),
                    until_ordinal=ordinals.get((product, ids.get((product, release_key(until)), ""))),
                    source=json_text(sources[0] if isinstance(sources, list) else sources),
                    sources=json_text(sources if isinstance(sources, list) else [sources] if sources else []),
                    rests_on="proof" if body["id"] in proved else "reading",
                    candidates=list(body.get("candidates") or ()),
                    examples=json_text(body.get("examples")),
                    path=document.path,
                )
    return table


def _rule_sets(rules: Table, types: Collection[str]) -> Table:
    """What evaluating a framework's rules needs, one JSON text a framework."""
    table = Table("rule_set", {"framework": "VARCHAR", "body": "VARCHAR"})
    parsed = trees((row[side] for row in rules.rows for side in ("when_sql", "requires_sql") if row[side]), types)
    sets: dict[str, list[list[Any]]] = {}
    for row in sorted(rules.rows, key=lambda row: str(row["id"])):
        when, requires = row["when_sql"], row["requires_sql"]
        sql = f"{when or ''} {requires}"
        facts = names_in(sql) & set(types)
        said = [row[name] for name in ("id", "topic", "severity", "when_sql", "requires_sql")]
        said += [row[name] for name in ("since", "until", "since_ordinal", "until_ordinal")]
        said += [sorted(facts), sorted(null_tested(sql) & facts), parsed[when] if when else True, parsed[requires]]
        sets.setdefault(row["framework"], []).append(said)
    table.rows = [{"framework": framework, "body": json_text(body)} for framework, body in sets.items()]
    return table


def _labels(products: Mapping[str, Table], framework: Table, feature: Table, models: Table) -> Table:
    """The names of every id that findings speak of, in one place."""
    table = Table("label", dict.fromkeys(("kind", "id", "name_en", "name_zh", "variant_of"), "VARCHAR"))
    sources = {"product": products["product"], "framework": framework, "feature": feature, "model": models}
    for kind, source in sources.items():
        for row in source.rows:
            names = {name: row[name] for name in ("id", "name_en", "name_zh")}
            table.add(kind=kind, **names, variant_of=row.get("variant_of"))
    return table


def _bases(documents: Sequence[Document]) -> Table:
    table = Table("rule_base", {"framework": "VARCHAR", "body": "VARCHAR", "path": "VARCHAR"})
    for document in of_kind(documents, "base"):
        table.add(framework=document.body.get("framework"), body=json_text(document.body), path=document.path)
    return table


def _codes(documents: Sequence[Document]) -> Table:
    worded = ("message", "why", "fix")
    languages = [f"{name}_{language}" for name in worded for language in ("en", "zh")]
    table = Table("code", dict.fromkeys(("code", "name", "severity", *languages), "VARCHAR"))
    for document in of_kind(documents, "codes"):
        for body in document.body.get("codes") or ():
            row: dict[str, Any] = {name: body.get(name) for name in ("code", "name", "severity")}
            for name in worded:
                row[f"{name}_en"], row[f"{name}_zh"] = in_both(body.get(name))
            table.add(**row)
    return table


def _names(products: Mapping[str, Table], framework: Table, feature: Table) -> Table:
    columns = dict.fromkeys(("kind", "scope", "normalised", "id", "written"), "VARCHAR")
    table = Table("name", {**columns, "ordinal": "INTEGER"})
    seen = set()

    def add(kind: str, scope: str, key: str, name: str, written: str, ordinal: int | None = None) -> None:
        if key and (kind, scope, key) not in seen:
            seen.add((kind, scope, key))
            table.add(kind=kind, scope=scope, normalised=key, id=name, written=written, ordinal=ordinal)

    sources = (("product", products["product"]), ("framework", framework), ("feature", feature))
    for preferred in (True, False):
        for kind, rows in sources:
            for row in rows.rows:
                extra = (row["name_en"], row["name_zh"], *row.get("aliases", ()))
                for written in (row["id"],) if preferred else extra:
                    add(kind, "", squashed(str(written)), row["id"], str(written))
    for preferred in (True, False):
        for row in products["release"].rows:
            for written in (row["release"],) if preferred else row["aliases"]:
                add("release", row["product"], release_key(written), row["release"], str(written), row["ordinal"])
    return table
