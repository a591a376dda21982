"""``ascend-compat facts``: what was understood of job files, from which line, and what was not."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from ascend_compat.cli.options import language, language_option, write

if TYPE_CHECKING:
    from ascend_compat.check.engine import Engine, Options
    from ascend_compat.jobs.model import Fact, Job, Launch, Problem
    from ascend_compat.jobs.spec import Spec

# Present in every training job's facts when its framework has a way to state or derive them.
CANONICAL = (
    "tensor_parallel",
    "pipeline_parallel",
    "context_parallel",
    "expert_parallel",
    "expert_tensor_parallel",
    "ulysses_sp",
    "rollout_tensor_parallel",
    "nnodes",
    "devices_per_node",
    "world_size",
    "seq_length",
    "micro_batch_size",
    "global_batch_size",
    "num_layers",
    "train_batch_size",
    "ppo_mini_batch_size",
    "rollout_n",
    "max_prompt_length",
    "max_response_length",
)
_GROUPS = (
    ("stated", "understood from the file", "从文件中读出"),
    ("default", "framework defaults", "框架默认值"),
    ("model", "from the model", "来自模型"),
    ("derived", "derived", "推导得出"),
    ("unknown", "not known", "无法确定"),
)
_BASIS = {
    "option": ("as asked", "命令行指定"),
    "stack": ("from the stack", "来自软件栈"),
    "release": ("bundled in the release checked against", "所检查版本内置"),
    "assumed": ("assumed for the release checked against", "按所检查版本推定"),
    "default": ("newest release", "最新版本"),
}
_BATCH = 200


@click.command()
@click.argument("jobs", nargs=-1, required=True, type=click.Path())
@click.option("--format", "form", type=click.Choice(["text", "jsonl"]), default="text", show_default=True)
@click.option("--framework", help="Read the files as this framework's.")
@click.option("--framework-version", help="The framework version that reads the job's keys.")
@click.option("--recursive", is_flag=True, help="Look for job files below directories, by content.")
@language_option
def facts(
    jobs: tuple[str, ...],
    form: str,
    framework: str | None,
    framework_version: str | None,
    recursive: bool,
    lang: str | None,
) -> None:
    """Show what was understood of JOBS (files, directories with --recursive, or - for stdin), and from which line.

    Exit code: 0 every file was read, 2 one was not.
    """
    from ascend_compat.check.engine import Engine, Options
    from ascend_compat.jobs.read import read_paths
    from ascend_compat.matrix.store import connect

    words = language(lang)
    engine = Engine(connect())
    options = Options(framework_version=framework_version)
    show = _json_line if form == "jsonl" else _table
    bad = False
    pending: list[Launch] = []
    for read in read_paths(jobs, framework=framework, recursive=recursive):
        if read.error is not None:
            bad = True
            click.echo(f"{read.file}: {_sentence(engine, read.error, words)}", err=True)
        pending += read.launches
        if len(pending) >= _BATCH:
            _show(engine, pending, options, show, words)
            pending = []
    _show(engine, pending, options, show, words)
    sys.exit(2 if bad else 0)


def _show(engine: Engine, launches: list[Launch], options: Options, show: Any, words: str) -> None:
    from ascend_compat.jobs.model import Problem, Span

    for launch, job in zip(launches, understand(engine, launches, options), strict=True):
        if job is not None:
            write(show(job, engine, words))
            continue
        unheld = Problem("AC2041", Span(launch.file, launch.line), {"framework": launch.framework})
        for problem in (unheld, *launch.problems):
            click.echo(f"{launch.file}:{launch.line}: {_sentence(engine, problem, words)}", err=True)


def understand(engine: Engine, launches: Iterable[Launch], options: Options) -> list[Job | None]:
    """Launches as jobs with their derived facts; None for a framework the matrix does not hold."""
    from ascend_compat.check.engine import row_of
    from ascend_compat.check.rules import evaluate
    from ascend_compat.jobs.derive import attach
    from ascend_compat.jobs.interpret import interpret

    jobs: list[Job | None] = []
    by_framework: dict[str, list[Job]] = {}
    for launch in launches:
        spec = engine.spec(launch.framework)
        if spec is None:
            jobs.append(None)
            continue
        version, basis = engine.version_of(launch, spec, options)
        job = interpret(launch, spec, version, basis, names=engine.names, con=engine.con)
        jobs.append(job)
        by_framework.setdefault(launch.framework, []).append(job)
    for framework, members in by_framework.items():
        outcomes = evaluate(engine.con, [row_of(job, None) for job in members], [], engine.vocabulary(framework))
        spec = engine.spec(framework)
        assert spec is not None
        for job, outcome in zip(members, outcomes, strict=True):
            attach(job, outcome.derived, spec)
            _complete(job, spec)
    return jobs


def _complete(job: Job, spec: Spec) -> None:
    from ascend_compat.jobs.model import Fact, Unresolved

    why = Unresolved("the job does not state it, and nothing else gives it", "作业未写明，也没有其它来源")
    known = {key.fact for key in spec.keys.values()} | {name for name, _ in spec.derived}
    for name in CANONICAL:
        if name in known and (name not in job.facts or _idle(job.facts[name])):
            job.facts[name] = Fact(name, None, "unknown", why=why)


def _idle(fact: Fact) -> bool:
    return fact.value is None and fact.origin not in ("unknown", "stated")


def _sentence(engine: Engine, problem: Problem, words: str) -> str:
    finding = engine.problem(problem)
    return f"{finding.code} {finding.message.in_language(words)}"


def _why(fact: Fact, job: Job, words: str) -> str | None:
    if fact.why is not None:
        return fact.why.zh if words == "zh" else fact.why.en
    if fact.origin == "default" and fact.key:
        version = f"{job.launch.framework} {job.version}"
        return f"{version} 中 {fact.key} 的默认值" if words == "zh" else f"default of {fact.key} in {version}"
    return None


def _json_line(job: Job, engine: Engine, words: str) -> str:
    found = {}
    for name, fact in sorted(job.facts.items()):
        span = fact.span
        found[name] = {
            "value": fact.value,
            "origin": fact.origin,
            "file": span.file if span else None,
            "line": span.line if span else None,
            "column": span.column if span else None,
            "why": _why(fact, job, words),
        }
    launch = job.launch
    line = {"file": launch.file, "line": launch.line, "framework": launch.framework, "facts": found}
    from ascend_compat.report.formats import escaped

    return escaped(json.dumps(line, ensure_ascii=False))


def _table(job: Job, engine: Engine, words: str) -> str:
    return "\n".join(_lines(job, engine, words))


def _lines(job: Job, engine: Engine, words: str) -> Iterator[str]:
    chinese = words == "zh"
    launch = job.launch
    basis = _BASIS.get(job.version_basis, (job.version_basis, job.version_basis))[chinese]
    yield f"{launch.file}:{launch.line}  {launch.framework} {job.version} ({basis})"
    if launch.product != launch.framework:
        yield f"  {'产品' if chinese else 'product'}: {launch.product}"
    yield f"  {'模型' if chinese else 'model'}: {job.model or ('未识别' if chinese else 'not recognised')}"
    for origin, english, zh in _GROUPS:
        group = [fact for fact in job.facts.values() if fact.origin == origin]
        if not group:
            continue
        yield f"\n  {zh if chinese else english} ({len(group)})"
        if origin == "stated":
            group.sort(key=lambda fact: (fact.span.file, fact.span.line) if fact.span else ("", 0))
        else:
            group.sort(key=lambda fact: fact.name)
        width = max(len(fact.name) for fact in group)
        for fact in group:
            yield _line(fact, job, width, words)
    problems = [*launch.problems, *job.problems]
    if problems:
        yield f"\n  {'读取中的问题' if chinese else 'noticed while reading'} ({len(problems)})"
        for problem in problems:
            yield f"  {_place(problem.span.file, problem.span.line, job)}  {_sentence(engine, problem, words)}"
    yield ""


def _line(fact: Fact, job: Job, width: int, words: str) -> str:
    from ascend_compat.check.catalogue import show

    value = "-" if fact.value is None else show(fact.value)
    place = _place(fact.span.file, fact.span.line, job) if fact.span else ""
    why = _why(fact, job, words)
    key = fact.key if fact.key != fact.name else None
    if fact.origin == "default":
        why = None
    tail = "; ".join(part for part in (key if fact.origin in ("stated", "default") else None, why) if part)
    return f"  {place:>7}  {fact.name:<{width}} = {value}   {tail}".rstrip()


def _place(file: str, line: int, job: Job) -> str:
    if file == job.launch.file:
        return str(line)
    return f"{file.rpartition('/')[2]}:{line}"
