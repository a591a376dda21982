"""Checks of the reviewed data: every document against its schema, then what the documents mean together."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ascend_compat.matrix.lint_tree import Tree, Unreadable, read_tree
from ascend_compat.resources import matrix_dir, schema_dir

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

WARNINGS = {"AC0101", "AC0102", "AC0103", "AC0104"}


@dataclass(frozen=True, slots=True)
class Problem:
    """One slip: a stable code, its place, and its sentence."""

    file: Path
    line: int
    column: int
    code: str
    sentence: str
    shown: str

    @property
    def severity(self) -> str:
        """``error``, or ``warning`` for an oddity of the source that stays as the source has it."""
        return "warning" if self.code in WARNINGS else "error"

    def __str__(self) -> str:
        return f"{self.shown}:{self.line}:{self.column}: {self.code} {self.sentence}"


@dataclass(slots=True)
class Result:
    """Everything found, in the order of files and lines."""

    documents: int
    problems: list[Problem]

    @property
    def errors(self) -> list[Problem]:
        """The problems that make the data wrong."""
        return [problem for problem in self.problems if problem.severity == "error"]


@dataclass(slots=True)
class Notes:
    """Where checks write what they find."""

    problems: list[Problem] = field(default_factory=list)
    base: Path = field(default_factory=Path.cwd)

    def add(self, tree: Tree, path: Sequence[str | int], code: str, sentence: str) -> None:
        """Note a problem at a value of a document."""
        self.at(tree.file, *tree.place(path), code, sentence)

    def at(self, file: Path, line: int, column: int, code: str, sentence: str) -> None:
        """Note a problem at a place of a file."""
        shown = file.relative_to(self.base) if file.is_relative_to(self.base) else file
        self.problems.append(Problem(file, line, column, code, sentence, shown.as_posix()))


def lint(root: Path | None = None) -> Result:
    """Check every document below ``matrix/`` (or ``root``); finds all problems, not the first."""
    from ascend_compat.matrix import lint_meaning

    root = root or matrix_dir()
    notes = Notes()
    trees = []
    for file in sorted(root.rglob("*")):
        if file.suffix not in (".yaml", ".yml", ".json") or not file.is_file():
            continue
        if file.suffix == ".yml":
            notes.at(file, 1, 1, "AC0004", "Documents end in .yaml; this file would not be read.")
            continue
        try:
            tree = read_tree(file, file.relative_to(root).as_posix())
        except Unreadable as error:
            notes.at(file, error.line, error.column, "AC0001", f"Not readable as YAML: {error}.")
            continue
        trees.append(tree)
    sound = [tree for tree in trees if _shape(tree, notes)]
    lint_meaning.check(sound, notes)
    notes.problems.sort(key=lambda p: (p.shown, p.line, p.column, p.code))
    return Result(len(trees), list(dict.fromkeys(notes.problems)))


def _shape(tree: Tree, notes: Notes) -> bool:
    """Whether the document fits its schema, so that its meaning can be looked at."""
    for name, line, column in tree.duplicates:
        notes.at(tree.file, line, column, "AC0002", f"{name} is stated twice; the first is lost.")
    kind = tree.kind or ("evidence" if tree.name.startswith("evidence/") else None)
    if kind is None:
        notes.add(tree, (), "AC0004", "The document does not say its kind.")
        return False
    validator = _validator(kind)
    if validator is None:
        notes.add(tree, ("kind",), "AC0004", f"No schema of kind {kind}.")
        return False
    sound = not tree.duplicates
    for error in validator.iter_errors(tree.body):
        for path, sentence in _explain(error):
            notes.add(tree, path, "AC0003", sentence)
        sound = False
    return sound


_SHARED = "common.schema.json"
_VALIDATORS: dict[tuple[str, str], Any] = {}


def _validator(kind: str) -> Any:
    """The validator of a kind's schema, or None where there is none."""
    folder = schema_dir()
    at = (str(folder), kind)
    if at not in _VALIDATORS:
        from jsonschema import Draft202012Validator

        file = folder / f"{kind}.schema.json"
        if not file.is_file():
            return None
        shared = json.loads((folder / _SHARED).read_text(encoding="utf-8"))["$defs"]
        _VALIDATORS[at] = Draft202012Validator(_inlined(json.loads(file.read_text(encoding="utf-8")), shared))
    return _VALIDATORS[at]


def _inlined(schema: Any, shared: dict[str, Any]) -> Any:
    """A schema with the shared shapes put in place of references to them, which are slow to follow."""
    if isinstance(schema, list):
        return [_inlined(item, shared) for item in schema]
    if not isinstance(schema, dict):
        return schema
    reference = schema.get("$ref", "")
    if isinstance(reference, str) and reference.startswith(f"{_SHARED}#/$defs/"):
        return _inlined(shared[reference.rsplit("/", 1)[-1]], shared)
    return {name: _inlined(value, shared) for name, value in schema.items()}


def _explain(error: Any) -> Iterator[tuple[list[str | int], str]]:
    """Place and sentence of a schema error; of alternatives, what is wrong with the nearest."""
    if error.context:
        deepest = max(error.context, key=lambda inner: len(inner.absolute_path))
        if len(deepest.absolute_path) > len(error.absolute_path):
            yield from _explain(deepest)
            return
    path = list(error.absolute_path)
    where = f"{path[-1]}: " if path and isinstance(path[-1], str) else ""
    message = error.message if len(error.message) < 200 else error.message[:120] + " … " + error.message[-70:]
    yield path, f"{where}{message}."
