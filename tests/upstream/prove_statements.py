"""Single checks of functions that cannot run whole without devices, taken from the syntax tree of their file.

What runs is the framework's own statement, compiled with its own file and line, over stand-ins for the names it reads.
"""

from __future__ import annotations

import ast
import os
from typing import Any


def run(root: str, path: str, function: str, has: str, names: dict[str, Any], lead: int = 0) -> None:
    """Run the innermost statements of ``function`` that hold ``has`` in their text, over ``names``.

    ``function`` may be ``Class.method``. ``lead`` statements before each are run, too (what it reads may be computed there).
    A statement that is not there is an error of this script, not a refusal: it exits loudly.
    """
    file = os.path.join(root, path)
    with open(file, encoding="utf-8") as handle:
        source = handle.read()
    tree = ast.parse(source, file)
    lines = source.splitlines()
    found = []
    for owner in _functions(tree, function.split(".")):
        for block in _blocks(owner):
            for number, statement in enumerate(block):
                text = "\n".join(lines[statement.lineno - 1 : statement.end_lineno])
                if has in text and isinstance(statement, (ast.Assert, ast.If, ast.Expr, ast.Assign)):
                    found.append((len(text), block[max(0, number - lead) : number + 1]))
    if not found:
        raise KeyboardInterrupt(f"{path}: {function} holds no statement with {has!r}")
    _, statements = min(found, key=lambda item: item[0])
    module = ast.Module(body=list(statements), type_ignores=[])
    exec(compile(module, file, "exec"), names)


def _functions(tree: ast.AST, names: list[str]) -> list[ast.AST]:
    if not names:
        return [tree]
    return [
        inner
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and node.name == names[0]
        for inner in _functions(node, names[1:])
    ]


def _blocks(node: ast.AST) -> list[list[ast.stmt]]:
    blocks = []
    for inner in ast.walk(node):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(inner, name, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                blocks.append(block)
    return blocks
