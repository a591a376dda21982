"""Examples of rules, in a framework's own words or as facts, put to the rules they belong to."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from ascend_compat.check.engine import Engine, row_of
from ascend_compat.check.rules import Row, Rule, Vocabulary, evaluate
from ascend_compat.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_SUFFIX = {"mindspeed-llm": ".sh", "verl": ".sh", "vllm": ".sh"}


@dataclass(frozen=True, slots=True)
class Example:
    """One example of one rule. ``kind`` is ``pass`` or ``fail``."""

    rule: str
    framework: str
    version: str
    kind: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Result:
    """What came of an example; ``problem`` is None when the rule did what it should."""

    example: Example
    problem: str | None


def examples(engine: Engine, rule_ids: Iterable[str] = ()) -> Iterator[Example]:
    """Examples of all rules, or of the named ones; without a version they run at the newest the rule is valid for."""
    wanted = set(rule_ids)
    rows = engine.con.execute(
        "SELECT id, framework, last(until ORDER BY until_ordinal NULLS LAST), any_value(examples) FROM rule GROUP BY ALL ORDER BY framework, id"
    ).fetchall()
    for identifier, framework, until, body in rows:
        if wanted and identifier not in wanted:
            continue
        spec = engine.spec(framework)
        newest = until or (spec.newest if spec else "")
        for kind in ("pass", "fail"):
            for example in json.loads(body or "{}").get(kind, ()):
                yield Example(identifier, framework, str(example.get("version", newest)), kind, example)


def run(engine: Engine, chosen: Iterable[Example]) -> list[Result]:
    """Put each example to its rule. Examples of one framework and version share a statement."""
    groups: dict[tuple[str, str], list[Example]] = {}
    for example in chosen:
        groups.setdefault((example.framework, example.version), []).append(example)
    results = []
    for (framework, version), members in groups.items():
        results.extend(_run_group(engine, framework, version, members))
    return results


def _run_group(engine: Engine, framework: str, version: str, members: list[Example]) -> list[Result]:
    rules = {rule.id: rule for rule in all_rules(engine, framework)}
    rows: list[Row | str] = [_row(engine, example) for example in members]
    asked = [row for row in rows if isinstance(row, Row)]
    used = {example.rule for example in members}
    outcomes = iter(evaluate(engine.con, asked, [rules[name] for name in sorted(used)], _vocabulary(engine, framework)))
    results = []
    for example, row in zip(members, rows):
        if isinstance(row, str):
            results.append(Result(example, row))
            continue
        outcome = next(outcomes)
        broke = example.rule in {rule.id for rule in outcome.broken}
        problem = None
        if broke and example.kind == "pass":
            problem = "the passing example breaks the rule"
        elif not broke and example.kind == "fail":
            undecided = example.rule in {rule.id for rule in outcome.undecided}
            problem = (
                "the failing example leaves the rule undecided"
                if undecided
                else "the failing example does not break it"
            )
        results.append(Result(example, problem))
    return results


def all_rules(engine: Engine, framework: str) -> list[Rule]:
    """Every rule of a framework, whatever its version window."""
    from ascend_compat.check.rules import load_rules

    return load_rules(engine.con, [framework], None, engine.types)


def _vocabulary(engine: Engine, framework: str) -> Vocabulary:
    return replace(engine.vocabulary(framework), features=())


def _row(engine: Engine, example: Example) -> Row | str:
    if "facts" in example.body and "job" not in example.body:
        return Row(dict(example.body["facts"]), frozenset(example.body.get("unknown", ())))
    try:
        job = read_example(engine, example)
    except DataError as error:
        return str(error)
    row = row_of(job, None)
    extra = example.body.get("facts", {})
    return Row({**row.facts, **extra}, row.unknown - extra.keys())


def read_example(engine: Engine, example: Example) -> Any:
    """The job of an example in the framework's own words, read as any user's file is."""
    from ascend_compat.jobs.interpret import interpret
    from ascend_compat.jobs.read import read_file

    spec = engine.spec(example.framework)
    if spec is None:
        raise DataError(f"no framework document for {example.framework}")
    base = _base(engine, example)
    files = {**base.get("files", {}), **example.body.get("files", {})}
    with TemporaryDirectory() as folder:
        for name, body in files.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(body if isinstance(body, str) else json.dumps(body), encoding="utf-8")
        path = Path(folder) / f"job{_SUFFIX.get(example.framework, '.yaml')}"
        path.write_text(job_text(example.framework, base, example.body), encoding="utf-8")
        read = read_file(str(path), framework=example.framework if path.suffix == ".yaml" else None)
    if read.error is not None or not read.launches:
        raise DataError(f"the example is not read as a job: {read.error}")
    return interpret(read.launches[0], spec, example.version, "option", names=engine.names, con=engine.con)


def _base(engine: Engine, example: Example) -> dict[str, Any]:
    row = engine.con.execute("SELECT body FROM rule_base WHERE framework = ?", [example.framework]).fetchone()
    if row is None:
        return {}
    body: dict[str, Any] = json.loads(row[0])
    named = example.body.get("base")
    if named:
        body = {**body, **body.get("bases", {})[named]}
    return body


def job_text(framework: str, base: Mapping[str, Any], example: Mapping[str, Any]) -> str:
    """A job file: the framework's base job with an example's settings laid over it."""
    facts = base.get("facts", {})
    job = example.get("job", "")
    if framework == "mindspeed-llm":
        lines = [
            f"export {name}={value}" for name, value in base.get("env", {"CUDA_DEVICE_MAX_CONNECTIONS": 1}).items()
        ]
        launcher = f"torchrun --nproc_per_node {facts.get('devices_per_node', 8)} --nnodes {facts.get('nnodes', 1)}"
        words = job.split("pretrain_gpt.py", 1)
        if len(words) == 2:
            return "\n".join([*lines, f"{launcher} pretrain_gpt.py {words[1]}"]) + "\n"
        entry = base.get("entry", "pretrain_gpt.py")
        return "\n".join([*lines, f"{launcher} {entry} {base.get('job', '')} {job}"]) + "\n"
    if framework == "verl":
        module = base.get("entry", "verl.trainer.main_ppo")
        return f"python3 -m {module} {_overrides(base.get('job', ''))} {_overrides(job)}\n"
    if framework == "vllm":
        return f"vllm serve {base.get('job', '')} {job}\n"
    return json.dumps(_merge(base.get("job") or {}, job or {}), ensure_ascii=False, indent=1)


def _overrides(job: str | Mapping[str, Any]) -> str:
    if isinstance(job, str):
        return job
    return " ".join(shlex.quote(f"{key}={'null' if value is None else value}") for key, value in job.items())


def _merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        merged[key] = _merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged
