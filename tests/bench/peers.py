"""The rules that CEL and Rego can say as well, in their words, so that the same work is compared.

These are the rules of whole numbers, words and truth values whose facts a job all knows; both peers have no NULL to pass over
the others with. Their programs are compiled beforehand, as ours are.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ascend_compat.check.engine import Engine
    from ascend_compat.check.rules import Rule

PEERS = ("CEL (common-expression-language)", "Rego (regopy)")
_COMPARED = {"=": "==", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_COMPUTED = {"+": "+", "-": "-", "*": "*", "//": "/", "%": "%"}


class _NotSaidError(Exception):
    """Something that not all of the languages say."""


def sayable_rules(engine: Engine, version: str, facts: Mapping[str, Any]) -> list[Rule]:
    """Rules that every peer can say, of which the job knows every fact."""
    found = []
    for rule in engine.rules("mindspeed-llm", version):
        if all(isinstance(facts.get(name), (int, str)) for name in rule.facts):
            try:
                for tree in rule.trees:
                    _cel(tree)
                    _bodies(tree)
            except _NotSaidError:
                continue
            found.append(rule)
    return found


def peer(name: str, rules: Sequence[Rule]) -> Callable[[Mapping[str, Any]], set[str]] | None:
    """What tells the broken rules of a job's facts; None where the peer is not installed."""
    if name.startswith("CEL"):
        return _cel_peer(rules) if importlib.util.find_spec("cel") else None
    return _rego_peer(rules) if importlib.util.find_spec("regopy") else None


def _cel_peer(rules: Sequence[Rule]) -> Callable[[Mapping[str, Any]], set[str]]:
    import cel

    programs = [(rule.id, cel.compile(f"({_cel(rule.trees[0])}) && !({_cel(rule.trees[1])})")) for rule in rules]

    def broken(facts: Mapping[str, Any]) -> set[str]:
        given = dict(facts)
        return {name for name, program in programs if program.execute(given)}

    return broken


def _rego_peer(rules: Sequence[Rule]) -> Callable[[Mapping[str, Any]], set[str]]:
    import regopy

    lines = ["package jobs"]
    for at, rule in enumerate(rules):
        for name, tree in (("asked", rule.trees[0]), ("kept", rule.trees[1])):
            lines += [f"{name}_{at} if {{ {'; '.join(body) or 'true'} }}" for body in _bodies(tree)]
        lines.append(f"broken contains {json.dumps(rule.id)} if {{ asked_{at}; not kept_{at} }}")
    interpreter = regopy.Interpreter()
    interpreter.add_module("jobs", "\n".join(lines))
    bundle = interpreter.build("data.jobs.broken")

    def broken(facts: Mapping[str, Any]) -> set[str]:
        interpreter.set_input(dict(facts))
        answer = json.loads(str(interpreter.query_bundle(bundle)))
        return set(answer["expressions"][0])

    return broken


def _value(tree: Any, prefix: str) -> str:
    if not isinstance(tree, list):
        if tree is None or isinstance(tree, float):
            raise _NotSaidError
        return json.dumps(tree)
    if tree[0] == "fact":
        return f"{prefix}{tree[1]}"
    if tree[0] in _COMPUTED and (tree[0] != "//" or not prefix):
        left, right = (_value(each, prefix) for each in tree[1:])
        return f"({left} {_COMPUTED[tree[0]]} {right})"
    if tree[0] == "//":
        left, right = (_value(each, prefix) for each in tree[1:])
        return f"floor({left} / {right})"
    raise _NotSaidError


def _cel(tree: Any) -> str:
    if not isinstance(tree, list):
        return _value(tree, "")
    if tree[0] in ("and", "or"):
        return f"({(' && ' if tree[0] == 'and' else ' || ').join(map(_cel, tree[1:]))})"
    if tree[0] == "not":
        return f"!({_cel(tree[1])})"
    if tree[0] == "in":
        return f"({_value(tree[1], '')} in [{', '.join(_value(each, '') for each in tree[2:])}])"
    if tree[0] in _COMPARED:
        return f"({_value(tree[1], '')} {_COMPARED[tree[0]]} {_value(tree[2], '')})"
    return _value(tree, "")


def _bodies(tree: Any) -> list[list[str]]:
    """A condition as alternatives, each a list of what must hold."""
    if tree is True:
        return [[]]
    if not isinstance(tree, list):
        raise _NotSaidError
    if tree[0] == "or":
        return [body for part in tree[1:] for body in _bodies(part)]
    if tree[0] == "and":
        parts = itertools.product(*(_bodies(part) for part in tree[1:]))
        return [[term for body in chosen for term in body] for chosen in parts]
    if tree[0] == "fact":
        return [[f"input.{tree[1]} == true"]]
    if tree[0] == "not" and isinstance(tree[1], list) and tree[1][0] == "fact":
        return [[f"input.{tree[1][1]} == false"]]
    if tree[0] == "in":
        return [[f"{_value(tree[1], 'input.')} in {{{', '.join(_value(each, 'input.') for each in tree[2:])}}}"]]
    if tree[0] in _COMPARED:
        return [[f"{_value(tree[1], 'input.')} {_COMPARED[tree[0]]} {_value(tree[2], 'input.')}"]]
    raise _NotSaidError
