"""Checks of the SQL in the data: rules, derived facts and features, compiled by DuckDB over the declared facts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ascend_compat.matrix.lint_names import nearest, window
from ascend_compat.matrix.macros import MACROS

if TYPE_CHECKING:
    import duckdb

    from ascend_compat.matrix.lint import Notes
    from ascend_compat.matrix.lint_names import World
    from ascend_compat.matrix.lint_tree import Tree

SQL_TYPES = {
    "integer": "BIGINT",
    "number": "DOUBLE",
    "text": "VARCHAR",
    "boolean": "BOOLEAN",
    "integers": "BIGINT[]",
    "texts": "VARCHAR[]",
}
_NUMBERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UINTEGER", "UBIGINT", "UTINYINT", "USMALLINT"}
_FORBIDDEN = re.compile(
    r"\b(read_\w+|glob|getenv|sniff_csv|parquet_\w+|attach|copy|install|load|pragma|select|from|query|query_table)\b|;|--|/\*",
    re.IGNORECASE,
)
_DISTINCT = re.compile(r"\bdistinct\s+from\b", re.IGNORECASE)
_STRING = re.compile(r"'(?:[^']|'')*'")
STACK = "stack"  # rules about the machine and its packages, whichever framework runs
_BATCH = 200
_BOOLEAN = frozenset({"BOOLEAN"})
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class Piece:
    """One expression of a document, and the SQL types it may have."""

    tree: Tree
    path: tuple[str | int, ...]
    sql: str
    wanted: frozenset[str]


def check(rules: list[Tree], frameworks: list[Tree], world: World, notes: Notes) -> None:
    """Every rule and every piece of SQL of a framework."""
    import duckdb

    con = duckdb.connect(config={"enable_external_access": "false", "autoload_known_extensions": "false"})
    columns = ", ".join(f'"{name}" {SQL_TYPES[kind]}' for name, kind in world.facts.items())
    con.execute(f"CREATE TABLE facts ({columns or 'nothing BOOLEAN'})")
    for macro in MACROS:
        con.execute(macro)
    con.execute("SET lock_configuration = true")
    pieces: list[Piece] = []
    for tree in frameworks:
        _framework(tree, pieces, world, notes)
    ids: dict[str, str] = {}
    for tree in rules:
        framework = tree.body["framework"]
        product = world.frameworks.get(framework, framework)
        if framework not in (STACK, *world.frameworks, *world.releases):
            notes.add(tree, ("framework",), "AC0010", f"Framework {framework} is not known.")
        for number, rule in enumerate(tree.body["rules"]):
            path = ("rules", number)
            if rule["id"] in ids:
                notes.add(tree, (*path, "id"), "AC0011", f"Rule {rule['id']} is in {ids[rule['id']]} too.")
            ids[rule["id"]] = tree.name
            for name in ("when", "requires"):
                if name in rule:
                    pieces.append(Piece(tree, (*path, name), rule[name], _BOOLEAN))
            _names(tree, path, rule, world, notes)
            window(tree, path, rule, product, world, notes)
    _compile(pieces, con, notes)
    con.close()


def _framework(tree: Tree, pieces: list[Piece], world: World, notes: Notes) -> None:
    for number, derived in enumerate(tree.body.get("derived", [])):
        path = ("derived", number)
        kind = world.facts.get(derived["fact"])
        if kind is None:
            notes.add(tree, (*path, "fact"), "AC0010", f"Fact {derived['fact']} is not declared.")
            continue
        wanted = {SQL_TYPES[kind]} | (_NUMBERS if kind in ("integer", "number") else set())
        if kind == "number":
            wanted |= {"DECIMAL", "FLOAT"}
        pieces.append(Piece(tree, (*path, "sql"), derived["sql"], frozenset(wanted)))
    for number, feature in enumerate(tree.body.get("features", [])):
        if feature["feature"] not in world.features:
            sentence = f"Feature {feature['feature']} is not known{nearest(feature['feature'], world.features)}."
            notes.add(tree, ("features", number, "feature"), "AC0010", sentence)
        pieces.append(Piece(tree, ("features", number, "when"), feature["when"], _BOOLEAN))


def _compile(pieces: list[Piece], con: duckdb.DuckDBPyConnection, notes: Notes) -> None:
    """Every expression binds to the declared facts and gives a value of a type it may have."""
    import duckdb

    sound = []
    for piece in pieces:
        if found := _FORBIDDEN.search(_DISTINCT.sub("", _STRING.sub("''", piece.sql))):
            notes.add(piece.tree, piece.path, "AC0050", f"SQL in the data may not use {found[0]!r}.")
        else:
            sound.append(piece)
    for start in range(0, len(sound), _BATCH):
        batch = sound[start : start + _BATCH]
        try:
            for piece, kind in zip(batch, _types(batch, con), strict=True):
                _typed(piece, kind, notes)
        except duckdb.Error:
            for piece in batch:
                _compile_one(piece, con, notes)


def _types(pieces: list[Piece], con: duckdb.DuckDBPyConnection) -> list[str]:
    # each on a line of its own, so that an expression cannot leave its parentheses by a comment
    expressions = ",\n".join(f"({piece.sql}\n)" for piece in pieces)
    return [str(column[1]) for column in con.execute(f"SELECT {expressions} FROM facts LIMIT 0").description]


def _compile_one(piece: Piece, con: duckdb.DuckDBPyConnection, notes: Notes) -> None:
    import duckdb

    try:
        _typed(piece, _types([piece], con)[0], notes)
    except duckdb.Error as error:
        text = " ".join(str(error).split("\n", 1)[0].split())
        missing = re.search(r'[Rr]eferenced column "([^"]+)"', text)
        sentence = f"Fact {missing[1]} is not declared." if missing else f"DuckDB does not take this: {text}"
        code = "AC0051" if missing else "AC0050"
        notes.add(piece.tree, piece.path, code, sentence if sentence.endswith((".", "!")) else sentence + ".")


def _typed(piece: Piece, kind: str, notes: Notes) -> None:
    if kind.split("(")[0] not in piece.wanted and kind not in ('"NULL"', "NULL"):
        sentence = f"The expression gives {kind}, not {' or '.join(sorted(piece.wanted))[:60]}."
        notes.add(piece.tree, piece.path, "AC0050", sentence)


def _names(tree: Tree, path: tuple[str | int, ...], rule: dict[str, Any], world: World, notes: Notes) -> None:
    """Facts that messages, ways out and examples name are declared."""
    for language in ("en", "zh"):
        for name in _PLACEHOLDER.findall(rule["message"][language]):
            if name.split(":")[0].split(".")[0] not in world.facts:
                sentence = f"The message names {{{name}}}, which is no declared fact."
                notes.add(tree, (*path, "message", language), "AC0051", sentence)
    for number, way in enumerate(rule.get("ways_out", [])):
        changed = way.get("change", [])
        for name in [*([changed] if isinstance(changed, str) else changed), *way.get("set", {})]:
            if name not in world.facts:
                notes.add(tree, (*path, "ways_out", number), "AC0051", f"Fact {name} is not declared.")
    for kind in ("pass", "fail"):
        for number, example in enumerate(rule["examples"][kind]):
            for name in example.get("facts", {}):
                if name not in world.facts:
                    where = (*path, "examples", kind, number, "facts", name)
                    notes.add(tree, where, "AC0051", f"Fact {name} is not declared.")
