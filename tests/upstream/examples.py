"""What the checker makes of the official examples: `python tests/upstream/examples.py --repo verl=PATH [--repo …]`.

Nothing of the checkouts is kept. Every training example is read and checked at the version its checkout is; the report
says per file what was found, what stayed unresolved and why, the verdict and the time, then what the files add up to.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ascend_compat.check.engine import Engine, Options, row_of
from ascend_compat.check.finding import Report
from ascend_compat.check.rules import evaluate
from ascend_compat.jobs.derive import attach
from ascend_compat.jobs.model import Job, Launch
from ascend_compat.jobs.read import read_file
from ascend_compat.matrix.store import connect

# repository -> (framework, version of its main branch, folders and patterns of its examples)
REPOSITORIES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "MindSpeed-LLM": ("mindspeed-llm", "master", ("examples/mcore/**/*.sh", "examples/fsdp2/**/*.sh")),
    "verl": ("verl", "main", ("examples/**/*.sh", "tests/special_npu/**/*.sh")),
    "MindSpeed-RL": ("mindspeed-rl", "master", ("configs/*.yaml",)),
    "LLaMA-Factory": ("llamafactory", "main", ("examples/**/*.yaml",)),
}
NOT_TRAINING = ("convert_ckpt", "preprocess_data", "inference", "evaluation", "generate", "model_merger", "merge")
# column of an EXAMPLES.tsv -> fact; columns not named here are compared under their own name when that is a fact
COLUMNS = {
    "TP": "tensor_parallel",
    "PP": "pipeline_parallel",
    "CP": "context_parallel",
    "EP": "expert_parallel",
    "VPP": "virtual_pipeline_chunks",
    "layers_per_vpp_chunk": "virtual_pipeline_layers",
    "nodes": "nnodes",
    "DP": "data_parallel",
    "seq": "seq_length",
    "mbs": "micro_batch_size",
    "gbs": "global_batch_size",
    "micro_batches": "num_micro_batches",
    "layers": "num_layers",
    "num_npus": "actor_devices",
    "cutoff_len": "seq_length",
    "grad_accum": "gradient_accumulation_steps",
    "template": "chat_template",
}
KEYS = ("script", "config", "file")


@dataclass
class Outcome:
    """What one file came to."""

    repo: str
    file: str
    error: str | None = None
    jobs: list[tuple[Job, Report]] = field(default_factory=list)
    seconds: float = 0.0


def outcomes(engine: Engine, repo: str, root: Path, version: str | None, patterns: list[str]) -> Iterator[Outcome]:
    """Every example of a checkout, in order of its path."""
    _, newest, usual = REPOSITORIES[repo]
    files = sorted({path for pattern in patterns or usual for path in root.glob(pattern) if path.is_file()})
    for path in files:
        started = time.perf_counter()
        read = read_file(str(path))
        outcome = Outcome(repo, str(path.relative_to(root)), read.error.code if read.error else None)
        launches = [launch for launch in read.launches if not _apart(launch)]
        options = Options(framework_version=version or newest)
        reports = engine.check(launches, options)
        for launch, report in zip(launches, reports, strict=True):
            outcome.jobs.append((_understood(engine, launch, options), report))
        outcome.seconds = time.perf_counter() - started
        yield outcome


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


def agreement(outcomes_: list[Outcome], path: Path) -> tuple[Counter[str], list[str]]:
    """Cells of a table of expected facts that agree, by column, and a line for each that does not."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    rows = list(csv.DictReader(lines, delimiter="\t"))
    by_file = {outcome.file: outcome for outcome in outcomes_}
    agreed: Counter[str] = Counter()
    differing = []
    for row in rows:
        name = next(row[key] for key in KEYS if key in row)
        outcome = by_file.get(name)
        if outcome is None or not outcome.jobs:
            continue
        for column, wanted in row.items():
            if not wanted or column in KEYS:
                continue
            fact = COLUMNS.get(column, column)
            found = [job.facts[fact].value for job, _ in outcome.jobs if fact in job.facts]
            if not found:
                continue
            agreed[f"{column} of"] += 1
            if any(_same(value, wanted) for value in found):
                agreed[column] += 1
            else:
                differing.append(f"{name}: {column} is {found[0]!r}, expected {wanted}")
    return agreed, differing


def _same(value: Any, wanted: str) -> bool:
    if isinstance(value, bool):
        said = [word.strip("()").lower() for word in wanted.split()]
        return (
            str(value).lower() in said
            or (value and said[0] in ("dynamic_batching", "padding_free"))
            or (not value and said[0] == "normal")
        )
    if isinstance(value, list):
        return ",".join(map(str, value)) == wanted
    if isinstance(value, (int, float)):
        try:
            return float(value) == float(wanted.split()[0])
        except ValueError:
            return False
    return value is not None and str(value).lower() == wanted.lower()


def summary(found: list[Outcome]) -> dict[str, Any]:
    """Counts over all files."""
    facts = unresolved = 0
    reasons: Counter[str] = Counter()
    verdicts: Counter[str] = Counter()
    impossible = []
    unknown_keys = []
    for outcome in found:
        for job, report in outcome.jobs:
            verdicts[report.verdict] += 1
            facts += len(job.facts)
            for fact in job.facts.values():
                if fact.origin == "unknown" and fact.span is not None:
                    unresolved += 1
                    reasons[fact.why.en if fact.why else "?"] += 1
            for finding in report.findings:
                place = f"{outcome.file}:{finding.span.line if finding.span else 0}"
                if finding.verdict in ("impossible", "unsupported"):
                    impossible.append(f"{place} {finding.code} {finding.message.en}")
                elif finding.code in ("AC2020", "AC2021", "AC2022"):
                    unknown_keys.append(f"{place} {finding.message.en}")
    return {
        "files": len(found),
        "files_with_launches": sum(bool(outcome.jobs) for outcome in found),
        "launches": sum(len(outcome.jobs) for outcome in found),
        "not_read": [f"{outcome.file}: {outcome.error}" for outcome in found if outcome.error],
        "facts": facts,
        "unresolved": unresolved,
        "unresolved_share": round(unresolved / facts, 5) if facts else 0.0,
        "unresolved_reasons": dict(reasons.most_common()),
        "verdicts": dict(verdicts),
        "rejected": impossible,
        "key_warnings": unknown_keys,
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
            agreed, differing = agreement(found, Path(expected[name]))
            columns = {key: f"{agreed[key]}/{agreed[f'{key} of']}" for key in agreed if not key.endswith(" of")}
            result[name] |= {"agreement": columns, "differing": differing}
        if options.files:
            for outcome in found:
                verdicts = ",".join(report.verdict for _, report in outcome.jobs) or outcome.error or "no launch"
                print(f"{outcome.file}\t{len(outcome.jobs)}\t{verdicts}\t{outcome.seconds:.3f} s")
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
