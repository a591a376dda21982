"""What a comparison of two states of the matrix is made of: the databases of both, and what each answers."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ascend_compat.check.engine import Engine
from ascend_compat.check.rules import Row, Rule, evaluate, load_rules
from ascend_compat.errors import DataError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb

    from ascend_compat.check.finding import Report

# sizes of the grid every framework's base job is put through; a stride keeps it small and even
_GRID: dict[str, tuple[int, ...]] = {
    "tensor_parallel": (1, 2, 3, 4, 8, 16),
    "pipeline_parallel": (1, 2, 3, 4, 8),
    "context_parallel": (1, 2, 4),
    "expert_parallel": (1, 2, 4, 8),
    "world_size": (8, 16, 64),
    "seq_length": (4096, 8192, 32768),
}
_LIKE = {"ulysses_sp": "context_parallel", "rollout_tensor_parallel": "tensor_parallel"}
_STRIDE = 13
_ARCHITECTURES = (
    "num_layers", "hidden_size", "ffn_hidden_size", "num_attention_heads", "num_key_value_heads", "num_experts",
)  # fmt: skip


# by case, ``name@version``: the rules that break there
Firing = dict[str, frozenset[str]]


@dataclass(slots=True)
class Side:
    """One state of the matrix: its name, its database, and the declared changes its documents hold."""

    name: str
    con: duckdb.DuckDBPyConnection
    declared: list[dict[str, Any]] = field(default_factory=list)
    _engine: Engine | None = None
    _own: dict[str, tuple[Firing, Firing]] | None = None

    @property
    def engine(self) -> Engine:
        """The engine over this database, made when first needed."""
        if self._engine is None:
            self._engine = Engine(self.con)
        return self._engine

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Rows of one statement."""
        return self.con.execute(sql).fetchall()


@contextmanager
def base_side(base: str, root: Path) -> Iterator[Side]:
    """The side named by a database file or a git revision of the repository that holds ``root``.

    A revision's documents are taken out of git into a temporary folder and built there with today's code; neither the working
    tree nor the repository is touched. Raises :class:`UsageError` for a base that is neither.
    """
    import duckdb

    if base.endswith(".duckdb"):
        if not Path(base).is_file():
            raise UsageError(f"there is no database {base}")
        try:
            con = duckdb.connect(base, read_only=True)
            con.execute("SELECT count(*) FROM claim, rule_set, cell_state WHERE false")
        except duckdb.Error as error:
            raise UsageError(f"{base} is not a database of the matrix: {str(error).splitlines()[0]}") from None
        with con:
            yield Side(Path(base).name, con)
        return
    folder = Path(tempfile.mkdtemp(prefix="ascend-compat-base-"))
    try:
        _take_out(base, root, folder)
        with built(folder / "matrix", folder / "base.duckdb", base) as side:
            yield side
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def built(matrix: Path, file: Path, name: str) -> Iterator[Side]:
    """The side of the documents in a folder, built into ``file``."""
    import duckdb

    from ascend_compat.matrix.build import write_database
    from ascend_compat.matrix.documents import load_documents

    try:
        documents = load_documents(matrix)
        write_database(str(file), documents, "comparison")
    except (KeyError, TypeError, AttributeError, ValueError, duckdb.Error) as error:
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise UsageError(f"the documents of {name} cannot be built: {what}") from None
    except DataError as error:
        raise UsageError(f"the documents of {name} cannot be built: {error}") from None
    with duckdb.connect(str(file), read_only=True) as con:
        yield Side(name, con, declared_in(documents))


def declared_in(documents: Sequence[Any]) -> list[dict[str, Any]]:
    """Entries of the documents of kind ``changes``."""
    return [entry for document in documents if document.kind == "changes" for entry in document.body["changes"]]


def _take_out(revision: str, root: Path, folder: Path) -> None:
    git = ["git", "-C", str(root)]
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    try:
        if revision.startswith("-"):
            raise UsageError(f"{revision} is not a revision")
        where = subprocess.run([*git, "rev-parse", "--show-prefix"], capture_output=True, text=True, check=True)
        tree = f"{revision}:{where.stdout.strip()}"
        archive = subprocess.run(
            [*git, "archive", "--format=tar", tree, "matrix"], capture_output=True, check=True, env=environment
        )
    except FileNotFoundError:
        raise UsageError("git is not installed; give a database file as the base") from None
    except subprocess.CalledProcessError as error:
        message = error.stderr.decode(errors="replace") if isinstance(error.stderr, bytes) else str(error.stderr)
        reason = (message.strip().splitlines() or ["no reason given"])[-1]
        raise UsageError(f"git does not know the matrix of {revision}: {reason.removeprefix('fatal: ')}") from None
    import io
    import tarfile

    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        for member in tar.getmembers():
            path = (folder / member.name).resolve()
            if member.isfile() and path.is_relative_to(folder.resolve()):
                path.parent.mkdir(parents=True, exist_ok=True)
                stream = tar.extractfile(member)
                assert stream is not None
                path.write_bytes(stream.read())


def fired(side: Side, asked: Side) -> dict[str, tuple[Firing, Firing]]:
    """By framework of ``asked``: what ``side`` says of the examples ``asked`` holds, and of its own grid."""
    if side is asked and side._own is not None:
        return side._own
    rows = example_rows(side, asked)
    found = {
        framework: (
            firing(side, framework, rows.get(framework, {}), only_newest=False),
            firing(side, framework, grid_rows(side, framework), only_newest=True),
        )
        for framework in frameworks(asked)
    }
    if side is asked:
        side._own = found
    return found


def windows(side: Side, framework: str) -> dict[str, list[Rule]]:
    """By version: the rules valid there. Two wordings of one rule get two ids: ``id@number``.

    Rules of no framework (those of a stack) have no versions; they are valid at ``any``.
    """
    spec = side.engine.spec(framework)
    versions: list[tuple[Any, ...]] = [("any", None)]
    if spec is not None:
        versions = side.con.execute(
            "SELECT release, ordinal FROM release WHERE product = ? ORDER BY ordinal", [spec.product]
        ).fetchall()
    numbers: dict[tuple[str, str | None, str], int] = {}
    found = {}
    for version, ordinal in versions:
        rules = load_rules(side.con, [framework], {framework: ordinal}, side.engine.types)
        found[version] = [
            replace(rule, id=f"{rule.id}@{numbers.setdefault((rule.id, rule.when, rule.requires), len(numbers))}")
            for rule in rules
        ]
    return found


def frameworks(side: Side) -> list[str]:
    """Frameworks that have rules."""
    return [name for (name,) in side.rows("SELECT DISTINCT framework FROM rule ORDER BY 1")]


def firing(side: Side, framework: str, rows: Mapping[str, Row], only_newest: bool) -> Firing:
    """For each named row and version, ``name@version``, the ids of the rules it breaks."""
    by_version = windows(side, framework)
    if only_newest and by_version:
        newest = list(by_version)[-1]
        by_version = {newest: by_version[newest]}
    unique = {rule.id: rule for rules in by_version.values() for rule in rules}
    vocabulary = replace(side.engine.vocabulary(framework), features=())
    outcomes = evaluate(side.con, list(rows.values()), list(unique.values()), vocabulary)
    found: Firing = {}
    for name, outcome in zip(rows, outcomes):
        broken = {rule.id for rule in outcome.broken}
        for version, rules in by_version.items():
            found[f"{name}@{version}"] = frozenset(rule.id.split("@", 1)[0] for rule in rules if rule.id in broken)
    return found


def example_rows(side: Side, asked: Side) -> dict[str, dict[str, Row]]:
    """By framework, the examples of ``asked``'s rules as ``side`` reads them."""
    from ascend_compat.check.examples import _row, examples

    found: dict[str, dict[str, Row]] = {}
    counts: dict[str, int] = {}
    for example in examples(asked.engine):
        number = counts[example.rule] = counts.get(example.rule, 0) + 1
        row: Row | str | None = None
        with suppress(KeyError, UsageError):
            row = _row(side.engine, example)
        if isinstance(row, Row):
            found.setdefault(example.framework, {})[f"{example.rule}#{number}"] = row
    return found


def grid_rows(side: Side, framework: str) -> dict[str, Row]:
    """Points of the parallel-size grid laid over the framework's base job, for a few architectures in turn."""
    from ascend_compat.check.engine import row_of
    from ascend_compat.check.examples import Example, read_example

    spec = side.engine.spec(framework)
    if spec is None:
        return {}
    try:
        job = read_example(side.engine, Example("", framework, spec.newest, "pass", {}))
    except DataError:
        return {}
    base = row_of(job, None)
    types = side.engine.types
    shapes = side.rows(
        f"SELECT id, {', '.join(_ARCHITECTURES)} FROM model WHERE num_layers IS NOT NULL AND variant_of IS NULL ORDER BY id"
    )
    points = list(itertools.product(*_GRID.values()))[::_STRIDE]
    found = {}
    for number, point in enumerate(points):
        model, *shape = shapes[number % len(shapes)]
        facts = {**dict(zip(_ARCHITECTURES, shape)), **dict(zip(_GRID, point))}
        facts |= {name: facts[like] for name, like in _LIKE.items()}
        facts = {name: value for name, value in facts.items() if name in types}
        sizes = " ".join(f"{name}={value}" for name, value in zip(_GRID, point))
        found[f"{model} {sizes}"] = Row({**base.facts, **facts}, base.unknown - facts.keys())
    return found


def job_reports(side: Side, folders: Sequence[Path]) -> dict[str, Report]:
    """Reports of every job file below the folders, by file and the launch's number in it."""
    from ascend_compat.check.api import check_paths

    counts: dict[str, int] = {}
    found = {}
    for folder in folders:
        for report in check_paths(side.con, [folder], recursive=True):
            name = Path(os.path.relpath(report.file, folder.parent)).as_posix()
            number = counts[name] = counts.get(name, 0) + 1
            found[name if number == 1 else f"{name}#{number}"] = report
    return found
