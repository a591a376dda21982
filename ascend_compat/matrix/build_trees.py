"""SQL predicates over facts as small trees, from DuckDB's own parser, for :mod:`ascend_compat.matrix.settle`.

A constant is itself, anything else a list that begins with what it does; ``["?"]`` is what only DuckDB can tell.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    import duckdb

Tree = Any
_ASK: Tree = ["?"]
_COMPARED = {
    "COMPARE_EQUAL": "=",
    "COMPARE_NOTEQUAL": "<>",
    "COMPARE_GREATERTHAN": ">",
    "COMPARE_GREATERTHANOREQUALTO": ">=",
    "COMPARE_LESSTHAN": "<",
    "COMPARE_LESSTHANOREQUALTO": "<=",
    "COMPARE_DISTINCT_FROM": "distinct",
    "COMPARE_NOT_DISTINCT_FROM": "same",
}
_OPERATORS = {
    "OPERATOR_NOT": "not",
    "OPERATOR_IS_NULL": "null",
    "OPERATOR_IS_NOT_NULL": "stated",
    "COMPARE_IN": "in",
    "OPERATOR_COALESCE": "coalesce",
}
_LITERALS: dict[str, Callable[[str], Tree]] = {"INTEGER": int, "NUMERIC": float, "STRING": str, "BOOLEAN": bool}
_CALLS = {"+", "-", "*", "/", "//", "%", "~~", "!~~", "len", "lower", "contains", "list_contains"}
# NULL when an argument is; nothing else is known of them without running them
_STRICT = {"regexp_matches", "array_to_string", "string_split", "version_key", "list_sum", "list_max", "list_min"}
_ARITHMETIC = {"+", "-", "*", "/", "//", "%"}
_PLAIN = re.compile(r"(?:\(\?i\))?(?:[A-Za-z0-9_./\- ^$|()\[\]*+?]|\\\.)*")
_REPEATED = re.compile(r"\)[*+?]|\(\?(?!i\))|.\(\?i")
_CASTS = {"BOOLEAN", "INTEGER", "BIGINT", "DOUBLE", "VARCHAR"}


def trees(expressions: Iterable[str], facts: Collection[str]) -> dict[str, Tree]:
    """A tree for each expression; ``facts`` are the declared ones."""
    texts = list(dict.fromkeys(expressions))
    asked = "SELECT text, CAST(json_serialize_sql('SELECT ' || text) AS VARCHAR) FROM (SELECT unnest($1) AS text)"
    parsed = _parser().cursor().execute(asked, [texts]).fetchall()
    return {text: _statement(json.loads(body), facts) for text, body in parsed}


@functools.cache
def _parser() -> duckdb.DuckDBPyConnection:
    """An empty database of its own; opening one for each framework took longer than the parsing."""
    import duckdb

    return duckdb.connect()


def _statement(parsed: dict[str, Any], facts: Collection[str]) -> Tree:
    try:
        (statement,) = parsed["statements"]
        (expression,) = statement["node"]["select_list"]
    except (KeyError, ValueError):
        return _ASK
    return _tree(expression, facts)


def _tree(node: dict[str, Any], facts: Collection[str]) -> Tree:
    kind, form = node.get("class"), node.get("type", "")
    if kind == "COLUMN_REF":
        name = ".".join(node["column_names"])
        return ["fact", name] if name in facts else _ASK
    if kind == "CONSTANT":
        value = _constant(node)
        return _ASK if isinstance(value, float) else value
    if kind == "CONJUNCTION":
        return ["and" if form.endswith("AND") else "or", *_trees(node["children"], facts)]
    if kind == "COMPARISON":
        return [_COMPARED.get(form, "?"), *(_compared(node[side], facts) for side in ("left", "right"))]
    if kind == "BETWEEN" and form == "COMPARE_BETWEEN":
        value, lower, upper = (_compared(node[name], facts) for name in ("input", "lower", "upper"))
        return ["and", [">=", value, lower], ["<=", value, upper]]
    if kind == "OPERATOR" and form in _OPERATORS:
        each = _compared if form.startswith("COMPARE") else _tree
        return [_OPERATORS[form], *(each(child, facts) for child in node["children"])]
    if kind == "CASE":
        branches = [_tree(check[part], facts) for check in node["case_checks"] for part in ("when_expr", "then_expr")]
        return ["case", *branches, _tree(node["else_expr"], facts)]
    if kind == "CAST":
        return _cast(node, facts)
    if kind == "FUNCTION":
        return _call(node, facts)
    return _ASK


def _trees(nodes: list[dict[str, Any]], facts: Collection[str]) -> list[Tree]:
    return [_tree(node, facts) for node in nodes]


def _compared(node: dict[str, Any], facts: Collection[str]) -> Tree:
    """A decimal literal is only compared: computed with, it would need decimal arithmetic."""
    return _constant(node) if node.get("class") == "CONSTANT" else _tree(node, facts)


def _cast(node: dict[str, Any], facts: Collection[str]) -> Tree:
    said = node.get("type_expr", {}).get("type_name") or node.get("cast_type", {}).get("id")
    child = _tree(node["child"], facts)
    return ["cast", said, child] if said in _CASTS and not node.get("try_cast") else _ASK


def _call(node: dict[str, Any], facts: Collection[str]) -> Tree:
    name = node["function_name"]
    said = node.get("arguments") or node.get("children") or []
    nodes = [argument.get("expression", argument) for argument in said]
    arguments = [
        _compared(child, facts) if name in _ARITHMETIC and name not in ("//", "%") else _tree(child, facts)
        for child in nodes
    ]
    if name in _ARITHMETIC and (len(arguments) != 2 or not any(isinstance(each, list) for each in arguments)):
        return _ASK
    if name in _CALLS:
        return [name, *arguments]
    if name == "regexp_matches" and len(arguments) == 2 and _plain(arguments[1]):
        return ["matches", *arguments]
    return ["strict", *arguments] if name in _STRICT else _ASK


def _constant(node: dict[str, Any]) -> Tree:
    """A literal as its Python value, from either form in which DuckDB's releases write it; ``["?"]`` for other types."""
    literal = node.get("literal")
    if literal is not None:
        kind, text = literal.get("kind"), literal.get("text")
        if kind == "NULL_LITERAL":
            return None
        if text is None or kind not in _LITERALS:
            return _ASK
        return text == "true" if kind == "BOOLEAN" else _LITERALS[kind](text)
    said = node.get("value") or {}
    if said.get("is_null"):
        return None
    kind, held = said.get("type", {}).get("id"), said.get("value")
    if kind in ("INTEGER", "BIGINT", "VARCHAR", "BOOLEAN"):
        return held
    if kind == "DECIMAL" and isinstance(held, int):
        return float(held / 10 ** said["type"]["type_info"]["scale"])
    return _ASK


def _plain(pattern: Tree) -> bool:
    """Whether a pattern means the same to Python's ``re`` as to RE2, and takes it no longer."""
    return isinstance(pattern, str) and bool(_PLAIN.fullmatch(pattern)) and not _REPEATED.search(pattern)
