"""What the checker makes of the official examples: `python tests/upstream/examples.py --repo verl=PATH [--repo …]`.

Nothing of the checkouts is kept. Every training example is read and checked at the version its checkout is; the report
says per file what was found, what stayed unresolved and why, the verdict and the time, then what the files add up to.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agreement import compare

from ascend_compat.check.engine import Engine, Options, row_of
from ascend_compat.check.finding import Report
from ascend_compat.check.rules import evaluate
from ascend_compat.jobs.derive import attach
from ascend_compat.jobs.model import Job, Launch
from ascend_compat.jobs.read import read_file
from ascend_compat.matrix.names import Names
from ascend_compat.matrix.store import connect

# repository -> (framework, version of its main branch, folders and patterns of its examples)
REPOSITORIES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "MindSpeed-LLM": ("mindspeed-llm", "master", ("examples/**/*.sh", "tests/st/**/*.sh")),
    "verl": (
        "verl",
        "main",
        (
            *("examples/**/*.sh", "examples/**/*.yaml", "tests/special_npu/**/*.sh", "tests/special_e2e/**/*.sh"),
            *("verl/experimental/**/shell/*.sh", "recipe/**/*.sh"),
        ),
    ),
    "MindSpeed-RL": (
        "mindspeed-rl",
        "master",
        ("configs/*.yaml", "examples/**/*.sh", "tests/st/**/*.sh", "tests/st/**/test_*.yaml"),
    ),
    "LLaMA-Factory": ("llamafactory", "main", ("examples/**/*.yaml", "examples/**/*.sh")),
}
NO_JOB = "AC2012"
KEY_CODES = frozenset(("AC2020", "AC2021", "AC2022", "AC2034", "AC2037"))
NOT_TRAINING = (
    "convert_ckpt",
    "_ckpt_",
    "preprocess_data",
    "preprocess_prompt",
    "inference",
    "evaluation",
    "model_merger",
)
# programs and keys that train, as a plain search of the text finds them: the other count of launches
TRAINS = re.compile(
    r"^[^#\n]*(?:(?:pre|post)train_\w+\.py|train_fsdp2\.py|rlhf_gpt\.py|cli/train_\w+\.py|[\w.]+\.(?:main_\w+|\w*sft_trainer\w*|fully_async_main)\b(?!\.yaml)"
    r"|llamafactory-cli train|src/train\.py)",
    re.MULTILINE,
)


@dataclass
class Outcome:
    """What one file came to. ``named`` counts the lines that name a training program, found without the reader."""

    repo: str
    file: str
    error: str | None = None
    jobs: list[tuple[Job, Report]] = field(default_factory=list)
    apart: list[tuple[Job, Report]] = field(default_factory=list)
    named: int = 0
    seconds: float = 0.0


def outcomes(engine: Engine, repo: str, root: Path, version: str | None, patterns: list[str]) -> Iterator[Outcome]:
    """Every example of a checkout, in order of its path."""
    _, newest, usual = REPOSITORIES[repo]
    files = sorted({path for pattern in patterns or usual for path in root.glob(pattern) if path.is_file()})
    options = Options(framework_version=version or newest)
    for path in files:
        started = time.perf_counter()
        read = read_file(str(path))
        outcome = Outcome(repo, str(path.relative_to(root)), read.error.code if read.error else None)
        reports = engine.check(read.launches, options)
        for launch, report in zip(read.launches, reports, strict=True):
            pair = (_understood(engine, launch, options), report)
            (outcome.apart if _apart(launch) else outcome.jobs).append(pair)
        outcome.seconds = time.perf_counter() - started
        outcome.named = len(TRAINS.findall(path.read_text(encoding="utf-8", errors="replace")))
        yield outcome


def values(root: Path, found: list[Outcome]) -> dict[str, list[dict[str, Any]]]:
    """The facts of the launches in each file, and of those elsewhere that name it, by the file's path under ``root``."""
    by_file: dict[str, list[dict[str, Any]]] = {}
    for outcome in found:
        for job, _ in (*outcome.jobs, *outcome.apart):
            facts = {name: fact.value for name, fact in job.facts.items()} | {"(model)": job.model}
            files = {setting.span.file for setting in job.launch.settings} | {job.launch.file}
            for file in files:
                by_file.setdefault(os.path.relpath(file, root), []).append(facts)
    return by_file


def _apart(launch: Launch) -> bool:
    return any(word in launch.entry for word in NOT_TRAINING)


def _understood(engine: Engine, launch: Launch, options: Options) -> Job:
    job = engine.understand(launch, options)
    spec = engine.spec(launch.framework)
    if job is None or spec is None:
        return Job(launch, "", "")
    (outcome,) = evaluate(engine.con, [row_of(job, None)], [], engine.vocabulary(launch.framework))
    attach(job, outcome.derived, spec)
    return job


def summary(found: list[Outcome]) -> dict[str, Any]:
    """Counts over all files."""
    facts = unresolved = 0
    reasons: Counter[str] = Counter()
    verdicts: Counter[str] = Counter()
    rejected, warned, doubtful = [], [], []
    for outcome in found:
        for job, report in outcome.jobs:
            verdicts[report.verdict] += 1
            facts += len(job.facts)
            for name, fact in job.facts.items():
                if fact.origin == "unknown" and fact.span is not None:
                    unresolved += 1
                    reasons[fact.why.en if fact.why else "?"] += 1
                    doubtful.append(f"{outcome.file}:{fact.span.line} {name}")
            for finding in report.findings:
                place = f"{outcome.file}:{finding.span.line if finding.span else 0}"
                if finding.verdict in ("impossible", "unsupported"):
                    rejected.append(f"{place} {finding.code} {finding.message.en}")
                elif finding.code in KEY_CODES:
                    warned.append(f"{place} {finding.code} {finding.message.en}")
    return {
        "files": len(found),
        "files_that_train": sum(bool(outcome.jobs) for outcome in found),
        "launches": sum(len(outcome.jobs) for outcome in found),
        "other_launches": sum(len(outcome.apart) for outcome in found),
        "no_job": sum(not outcome.jobs and not outcome.apart for outcome in found),
        "missed": [
            f"{outcome.file}: {len(outcome.jobs)} of {outcome.named} {outcome.error or ''}"
            for outcome in found
            if outcome.named > len(outcome.jobs)
        ],
        "unreadable": [f"{one.file}: {one.error}" for one in found if one.error and one.error != NO_JOB],
        "facts": facts,
        "unresolved": unresolved,
        "unresolved_share": round(unresolved / facts, 5) if facts else 0.0,
        "unresolved_reasons": dict(reasons.most_common()),
        "unresolved_facts": doubtful,
        "verdicts": dict(verdicts),
        "rejected": rejected,
        "key_warnings": warned,
        "slowest_seconds": round(max((outcome.seconds for outcome in found), default=0.0), 3),
    }


def main() -> int:
    """Command line; exit 1 when a file could not be read as it should."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repo", action="append", required=True, metavar="NAME=PATH")
    parser.add_argument("--expected", action="append", default=[], metavar="NAME=FILE.tsv")
    parser.add_argument("--framework-version")
    parser.add_argument("--pattern", action="append", default=[])
    parser.add_argument("--files", action="store_true", help="a line for each file too")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    options = parser.parse_args()
    expected = dict(pair.split("=", 1) for pair in options.expected)
    engine = Engine(connect())
    result: dict[str, Any] = {}
    for pair in options.repo:
        name, path = pair.split("=", 1)
        found = list(outcomes(engine, name, Path(path), options.framework_version, options.pattern))
        result[name] = summary(found)
        if name in expected:
            names = Names(engine.con)
            facts_of = values(Path(path), found)
            result[name] |= compare(name, facts_of, Path(expected[name]), names).as_dict()
        if options.files:
            for outcome in found:
                verdicts = ",".join(report.verdict for _, report in outcome.jobs) or outcome.error or "no launch"
                facts = sum(len(job.facts) for job, _ in outcome.jobs)
                print(f"{outcome.file}\t{len(outcome.jobs)}\t{facts} facts\t{verdicts}\t{outcome.seconds:.3f} s")
    if options.format == "json":
        print(json.dumps(result, ensure_ascii=False, indent=2))
    else:
        for name, counts in result.items():
            print(f"{name}:")
            for key, value in counts.items():
                if isinstance(value, list):
                    print(f"  {key}: {len(value)}")
                    for line in value:
                        print(f"    {line}")
                else:
                    print(f"  {key}: {value}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
