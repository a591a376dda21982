"""Every pair of the corpus: a small job file of our own, and beside it what must be understood and found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml

from ascend_compat.check.engine import Engine, Options, row_of
from ascend_compat.check.rules import evaluate
from ascend_compat.jobs.derive import attach
from ascend_compat.jobs.read import read_file

CORPUS = Path(__file__).resolve().parents[1] / "corpus"
CASES = sorted(path.parent for path in CORPUS.rglob("expected.yaml"))
VERDICTS = {"accept": {"supported", "unverified"}, "impossible": {"impossible"}, "unsupported": {"unsupported"}}


@pytest.fixture(scope="module")
def engine(con: duckdb.DuckDBPyConnection) -> Engine:
    return Engine(con)


def test_the_corpus_is_whole() -> None:
    folders = {path.parent for path in CORPUS.rglob("job.*")}
    assert folders == set(CASES)
    assert len(CASES) >= 78
    assert sum("accept" in (case / "expected.yaml").read_text(encoding="utf-8") for case in CASES) >= 35


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.relative_to(CORPUS)))
def test_a_job_is_answered_as_its_pair_says(engine: Engine, case: Path) -> None:
    expected: dict[str, Any] = yaml.safe_load((case / "expected.yaml").read_text(encoding="utf-8"))
    (job_file,) = case.glob("job.*")
    read = read_file(str(job_file))
    assert read.error is None
    reports = engine.check(read.launches, Options())
    verdicts = {report.verdict for report in reports}
    said = {
        word
        for report in reports
        for finding in report.findings
        if finding.severity != "note"
        for word in (finding.code, finding.topic)
    }
    if expected["verdict"] == "accept":
        assert verdicts <= VERDICTS["accept"], said
    else:
        assert verdicts & VERDICTS[expected["verdict"]], said
    assert set(expected.get("findings", ())) <= said
    for report in reports:
        for finding in report.findings:
            assert finding.severity == "note" or finding.span is not None or finding.code.startswith("AC"), finding.code
    if "facts" in expected:
        facts = understood(engine, read.launches[0])
        assert {name: facts[name] for name in expected["facts"]} == expected["facts"]


def understood(engine: Engine, launch: Any) -> dict[str, dict[str, Any]]:
    job = engine.understand(launch, Options())
    spec = engine.spec(launch.framework)
    assert job is not None and spec is not None
    (outcome,) = evaluate(engine.con, [row_of(job, None)], [], engine.vocabulary(launch.framework))
    attach(job, outcome.derived, spec)
    return {
        name: {"value": fact.value, "line": fact.span.line if fact.span else None} for name, fact in job.facts.items()
    }
