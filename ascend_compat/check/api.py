"""Checks as a library: names or job files in, typed reports out."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from ascend_compat.check.claims import BUNDLE, Question
from ascend_compat.check.engine import Engine, Options, worst
from ascend_compat.check.finding import Report
from ascend_compat.check.many import WORTHWHILE, check_in_processes, listed, reports_of
from ascend_compat.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import duckdb

_BATCH = 200
_MAX_QUERIES = 64_000_000  # bytes


@dataclass(frozen=True, slots=True)
class Names:
    """A question by names alone."""

    model: str
    framework: str
    features: tuple[str, ...]
    product: str | None = None
    release: str | None = None


def check_names(con: duckdb.DuckDBPyConnection, queries: Iterable[Names], engine: Engine | None = None) -> list[Report]:
    """Reports for questions by names; raises :class:`UsageError` on a name nobody knows, with the nearest known ones."""
    engine = engine or Engine(con)
    reports = []
    for query in queries:
        model = engine.names.model(query.model)
        if model is None:
            raise UsageError(_unknown("model", query.model, engine.names.suggest_models(query.model)))
        framework = engine.names.framework(query.framework)
        if framework is None:
            raise UsageError(_unknown("framework", query.framework, engine.names.suggest_frameworks(query.framework)))
        product = engine.names.product(query.product or BUNDLE)
        if product is None:
            raise UsageError(_unknown("product", str(query.product), engine.names.suggest_products(str(query.product))))
        release = None
        if query.release:
            release = engine.names.release(product, query.release)
            if release is None:
                suggestions = engine.names.suggest_releases(product, query.release)
                raise UsageError(_unknown(f"release of {product}", query.release, suggestions))
        features = []
        for written in query.features:
            feature = engine.names.feature(written)
            if feature is None:
                raise UsageError(_unknown("feature", written, engine.names.suggest_features(written)))
            features.append(feature)
        question = Question(framework, model.id, tuple(features), {})
        ask = engine.claims.answer if features else engine.claims.overview
        answer = ask(product, release, question)
        findings = list(answer.findings)
        findings += engine.against_architecture(product, answer.release, question)
        label = f"{model.id} / {framework}" + (f" / {', '.join(features)}" if features else "")
        report = Report(label, None, product, answer.release, framework, None, answer.verdict, findings)
        reports.append(report)
    return reports


def read_queries(path: str, product: str | None, release: str | None) -> list[Names]:
    """Questions from a file of JSON Lines (``-`` is stdin); a line may name its own product and release."""
    import json
    import sys
    from pathlib import Path

    try:
        if path == "-":
            data = sys.stdin.buffer.read(_MAX_QUERIES + 1)
        else:
            with Path(path).open("rb") as file:
                data = file.read(_MAX_QUERIES + 1)
        text = data.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read the questions in {path}: {error}") from None
    if len(data) > _MAX_QUERIES:
        raise UsageError(f"{path}: more than {_MAX_QUERIES // 1_000_000} MB of questions; ask them in parts")
    queries = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            asked = json.loads(line)
            features = asked.get("features", asked.get("feature", ()))
            features = (features,) if isinstance(features, str) else tuple(features)
            names = Names(
                asked["model"],
                asked["framework"],
                features,
                asked.get("product", product),
                asked.get("release", release),
            )
            for word in (names.model, names.framework, *features, names.product, names.release):
                if word is not None:
                    word.encode("utf-8")  # neither a number nor half a character is a name
        except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
            raise UsageError(f'{path}:{number}: expected {{"model": …, "framework": …, "features": […]}}') from None
        queries.append(names)
    return queries


def known(con: duckdb.DuckDBPyConnection, product: str | None, release: str | None) -> tuple[str | None, str | None]:
    """Product and release by their ids; raises :class:`UsageError` for unknown ones."""
    from ascend_compat.matrix.names import Names as Directory

    if product is None and release is None:
        return None, None
    names = Directory(con)
    found = names.product(product) if product else None
    if product and found is None:
        raise UsageError(_unknown("product", product, names.suggest_products(product)))
    if release is None:
        return found, None
    at = names.release(found or BUNDLE, release)
    if at is None:
        raise UsageError(
            _unknown(f"release of {found or BUNDLE}", release, names.suggest_releases(found or BUNDLE, release))
        )
    return found or BUNDLE, at


def stack_facts(con: duckdb.DuckDBPyConnection, stack: str | None) -> Mapping[str, Any] | None:
    """Facts of a stack file, or of this host with ``auto``; None without one."""
    if stack is None:
        return None
    from ascend_compat.stack.read import read_stack

    return read_stack(stack).facts(con)


def _unknown(kind: str, written: str, suggestions: Sequence[str]) -> str:
    nearest = f"; nearest: {', '.join(suggestions)}" if suggestions else ""
    return f"no {kind} is called {written!r}{nearest}"


def check_paths(
    con: duckdb.DuckDBPyConnection,
    paths: Sequence[str | Path],
    *,
    framework: str | None = None,
    recursive: bool = False,
    options: Options | None = None,
    processes: int = 1,
) -> Iterator[Report]:
    """Reports for job files, directories or ``-``, in order; an unreadable file is a report, not an exception.

    With more than one of ``processes``, several hundred files are checked in as many, against the current matrix.
    """
    from ascend_compat.jobs.read import read_paths

    options = options or Options()
    named = [str(path) for path in paths]
    if processes > 1 and options.stack is None:
        files = listed(named, recursive)
        if len(files) > WORTHWHILE:
            yield from check_in_processes(con, files, framework, options, processes)
            return
    engine = Engine(con)
    reads = read_paths(named, framework=framework, recursive=recursive)
    while batch := list(islice(reads, _BATCH)):
        yield from reports_of(engine, batch, options)


def check(
    con: duckdb.DuckDBPyConnection,
    *paths: str | Path,
    model: str | None = None,
    framework: str | None = None,
    features: Sequence[str] = (),
    product: str | None = None,
    release: str | None = None,
    framework_version: str | None = None,
    recursive: bool = False,
    stack: Mapping[str, Any] | None = None,
) -> list[Report]:
    """Check job files, or with ``model`` and ``framework`` a question by names."""
    if model is not None:
        if framework is None:
            raise UsageError("a question by names needs a framework beside the model")
        return check_names(con, [Names(model, framework, tuple(features), product, release)])
    options = Options(product, release, framework_version, stack)
    return list(check_paths(con, paths, framework=framework, recursive=recursive, options=options))


def exit_code(reports: Iterable[Report], strict: bool = False) -> int:
    """0 nothing forbids it, 1 unsupported or impossible, 2 unreadable; ``strict`` makes unverified and warnings 1."""
    reports = list(reports)
    verdict = worst(report.verdict for report in reports)
    if verdict == "unreadable":
        return 2
    if verdict in ("unsupported", "impossible"):
        return 1
    warned = any(finding.severity == "warning" for report in reports for finding in report.findings)
    return 1 if strict and (verdict == "unverified" or warned) else 0
