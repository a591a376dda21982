"""Every output over one sample: as it was, valid for what reads it, and steady when lines move."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import duckdb
import jsonschema
import junitparser
import pytest
import sarif_pydantic

from ascend_compat._version import __version__
from ascend_compat.check.finding import Finding, Report, Source, Text, WayOut
from ascend_compat.jobs.model import Span
from ascend_compat.report import sarif
from ascend_compat.report.formats import FORMATS, render
from ascend_compat.report.text import TextRenderer, safe, width
from ascend_compat.resources import schema_dir

ROOT = Path(__file__).resolve().parents[2]
SNAPSHOTS = ROOT / "tests" / "samples" / "report"
EXTENSIONS = {
    "text": "txt",
    "json": "json",
    "jsonl": "jsonl",
    "sarif": "sarif",
    "junit": "xml",
    "github": "github.txt",
    "gitlab": "gitlab.json",
    "rdjson": "rdjson.json",
    "markdown": "md",
}


def sample() -> list[Report]:
    """A supported, an unverified, an impossible (of hostile text) and an unreadable job."""
    line = 'TP=3 # 张量并行 <b>|`x`\x1b[31m"&'
    broken = Finding(
        code="ML-PAR09",
        severity="error",
        message=Text("28 heads do not divide among TP 3,\n100% sure: no", "28 个注意力头无法均分给 TP 3"),
        topic="head-divisibility",
        verdict="impossible",
        span=Span("./a dir/job:1,2.sh", 12, 4, 1, line),
        key="--tensor-model-parallel-size",
        reason=Text("tensor_parallel = 3 (line 12)", "tensor_parallel = 3（第 12 行）"),
        sources=(Source("org/repo/arguments.py#L315 at a845aa7e12", None, None, "validate_args"),),
        ways_out=(WayOut(Text("set TP to 2 or 4", "将 TP 设为 2 或 4"), {"tensor_parallel": 4}),),
        facts={"tensor_parallel": 3, "num_attention_heads": 28},
    )
    warned = Finding(
        code="AC2022",
        severity="warning",
        message=Text("nothing reads |this|", "没有程序读取 |this|"),
        span=Span("./a dir/job:1,2.sh", 13, 1, 4, "# 并行 TP"),
    )
    unknown = Finding(
        code="AC1005",
        severity="note",
        message=Text("the release does not say", "该版本未说明"),
        verdict="unverified",
        sources=(Source("https://example.com/table", "2025-12-30", "6.5.906"),),
    )
    missing = Finding(
        "AC2001", "error", Text("no such file", "文件不存在"), verdict="unreadable", span=Span("gone.sh", 1)
    )
    bundle, asked = "ascendfactory", "6.5.906"
    return [
        Report("good.yaml", 1, bundle, asked, "llamafactory", "0.9.3", "supported", []),
        Report("open.yaml", 2, bundle, asked, "verl", "v0.4.0", "unverified", [unknown]),
        Report(
            "./a dir/job:1,2.sh", 12, "mindspeed-llm", None, "mindspeed-llm", "2.1.0", "impossible", [broken, warned]
        ),
        Report("gone.sh", None, None, None, None, None, "unreadable", [missing]),
    ]


@pytest.fixture(scope="module")
def real(con: duckdb.DuckDBPyConnection) -> list[Report]:
    """Reports of the job files that the repository itself carries, and of a folder that is not there."""
    from ascend_compat.check.api import check_paths

    folders = [ROOT / "docs" / "examples", *(ROOT / "tests" / "corpus").glob("*")]
    reports = list(check_paths(con, [*filter(Path.is_dir, folders), ROOT / "gone.yaml"], recursive=True))
    assert len(reports) >= 5
    assert {"impossible", "unreadable"} <= {report.verdict for report in reports}
    return reports


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("form", FORMATS)
def test_snapshot(form: str, language: str) -> None:
    shown = render(form, sample(), language).replace(f'"{__version__}"', '"VERSION"') + "\n"
    path = SNAPSHOTS / f"{language}.{EXTENSIONS[form]}"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        path.write_bytes(shown.encode())
    assert shown == path.read_bytes().decode()


def schema(name: str) -> dict[str, Any]:
    loaded = json.loads((schema_dir() / name).read_text(encoding="utf-8"))
    assert isinstance(loaded, dict)
    return loaded


def test_json_is_valid_under_its_schema(real: list[Report]) -> None:
    report = schema("report.schema.json")
    jsonschema.Draft202012Validator.check_schema(report)
    for reports in (sample(), real, []):
        document = json.loads(render("json", reports, "en"))
        jsonschema.validate(document, report)
        assert len(document["jobs"]) == len(reports)
        lines = render("jsonl", reports, "en")
        assert [json.loads(line) for line in lines.splitlines()] == document["jobs"]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_sarif_opens_in_a_reader(real: list[Report], language: str) -> None:
    for reports in (sample(), real):
        log = sarif_pydantic.Sarif.model_validate_json(render("sarif", reports, language))
        (run,) = log.runs
        assert run.results is not None
        assert len(run.results) == sum(len(report.findings) for report in reports)
        rules = run.tool.driver.rules or []
        assert len({rule.id for rule in rules}) == len(rules)
        for result in run.results:
            assert result.rule_index is not None
            assert rules[result.rule_index].id == result.rule_id


def test_sarif_holds_no_address_of_ours_and_names_regions() -> None:
    run = json.loads(render("sarif", sample(), "en"))["runs"][0]
    assert "informationUri" not in run["tool"]["driver"]
    place = next(result for result in run["results"] if result["ruleId"] == "ML-PAR09")["locations"][0]
    assert place["physicalLocation"] == {
        "artifactLocation": {"uri": "a%20dir/job%3A1%2C2.sh"},
        "region": {"startLine": 12, "startColumn": 4, "endColumn": 5},
    }
    prints = [result["partialFingerprints"]["ascendCompat/v1"] for result in run["results"]]
    assert len(set(prints)) == len(prints) == 4


def test_sarif_stops_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sarif, "MAX_RESULTS", 3)
    run = json.loads(render("sarif", sample(), "en"))["runs"][0]
    assert len(run["results"]) == 3
    assert run["properties"] == {"resultsLeftOut": 1}


def test_fingerprints_do_not_move_with_lines() -> None:
    def prints(reports: list[Report]) -> list[list[str]]:
        run = json.loads(render("sarif", reports, "zh"))["runs"][0]
        issues = json.loads(render("gitlab", reports, "en"))
        return [
            [result["partialFingerprints"]["ascendCompat/v1"] for result in run["results"]],
            [issue["fingerprint"] for issue in issues],
        ]

    moved = sample()
    for report in moved:
        report.findings = [
            dataclasses.replace(finding, span=dataclasses.replace(finding.span, line=finding.span.line + 7))
            if finding.span
            else finding
            for finding in report.findings
        ]
    assert prints(moved) == prints(sample())
    edited = sample()
    finding = edited[2].findings[0]
    assert finding.span is not None
    edited[2].findings[0] = dataclasses.replace(finding, span=dataclasses.replace(finding.span, text="TP=5"))
    assert prints(edited) != prints(sample())
    twice = sample()
    twice[2].findings.append(twice[2].findings[0])
    assert len(set(prints(twice)[0])) == 5


def test_junit_opens_in_a_reader(real: list[Report]) -> None:
    for reports in (sample(), real):
        suites = junitparser.JUnitXml.fromstring(render("junit", reports, "zh").encode())
        assert suites.tests == len(reports)
        (suite,) = suites
        cases = list(suite)
        kinds = {"unsupported": "Failure", "impossible": "Failure", "unreadable": "Error", "unverified": "Skipped"}
        wanted = [kinds.get(report.verdict) for report in reports]
        assert [type(case.result[0]).__name__ if case.result else None for case in cases] == wanted
        assert suite.failures == wanted.count("Failure")
        assert suite.errors == wanted.count("Error")


def test_github_annotations() -> None:
    lines = render("github", sample(), "en").splitlines()
    assert len(lines) == 4
    for line in lines:
        assert re.fullmatch(r"::(error|warning|notice) file=[^:,]+(,[a-zA-Z]+=[^:,]+)*::.+", line), line
    assert "file=a dir/job%3A1%2C2.sh" in lines[1]
    assert "100%25 sure" in lines[1]


GITLAB = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["description", "check_name", "fingerprint", "severity", "location"],
        "properties": {
            "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
            "fingerprint": {"type": "string", "minLength": 1},
            "location": {
                "type": "object",
                "required": ["path", "lines"],
                "properties": {
                    "path": {"type": "string", "pattern": r"^(?!\./|/)"},
                    "lines": {"required": ["begin"], "properties": {"begin": {"type": "integer", "minimum": 1}}},
                },
            },
        },
    },
}
_POSITION = {"type": "object", "required": ["line"], "properties": {"line": {"type": "integer", "minimum": 1}}}
RDJSON = {
    "type": "object",
    "required": ["diagnostics"],
    "properties": {
        "source": {"type": "object", "properties": {"name": {"type": "string"}}, "additionalProperties": False},
        "diagnostics": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["message", "location"],
                "additionalProperties": False,
                "properties": {
                    "message": {"type": "string"},
                    "severity": {"enum": ["UNKNOWN_SEVERITY", "ERROR", "WARNING", "INFO"]},
                    "code": {"type": "object", "properties": {"value": {"type": "string"}}},
                    "location": {
                        "type": "object",
                        "required": ["path"],
                        "properties": {"range": {"properties": {"start": _POSITION, "end": _POSITION}}},
                    },
                },
            },
        },
    },
}


def test_gitlab_and_rdjson_have_the_shape_their_readers_want(real: list[Report]) -> None:
    for reports in (sample(), real):
        issues = json.loads(render("gitlab", reports, "en"))
        for issue in issues:
            issue["location"]["path"] = issue["location"]["path"].lstrip("/")
        jsonschema.validate(issues, GITLAB)
        assert len({issue["fingerprint"] for issue in issues}) == len(issues) > 0
        jsonschema.validate(json.loads(render("rdjson", reports, "en")), RDJSON)


def test_rdjson_counts_columns_in_bytes() -> None:
    span = Span("a.sh", 1, 3, 2, "并行并行")
    report = Report(
        "a.sh", 1, None, None, None, None, "impossible", [Finding("X1", "error", Text("a", "a"), span=span)]
    )
    place = json.loads(render("rdjson", [report], "en"))["diagnostics"][0]["location"]["range"]
    assert place == {"start": {"line": 1, "column": 7}, "end": {"line": 1, "column": 13}}


@pytest.mark.parametrize("form", FORMATS)
def test_file_names_of_any_bytes(form: str) -> None:
    name = os.fsdecode(b"bad\xff\x1b[2J\x0b\xef\xbf\xbf.sh")
    finding = Finding("X1", "error", Text(f"in {name}", f"在 {name}"), span=Span(name, 1, 1, 1, name))
    shown = render(form, [Report(name, 1, None, None, None, None, "impossible", [finding])], "zh")
    assert "\x1b" not in shown
    assert "\x0b" not in shown
    if form != "text":
        shown.encode()
    if form == "junit":
        Xml.fromstring(shown)
    elif form in ("json", "sarif", "rdjson", "gitlab", "jsonl"):
        json.loads(shown)


def test_caret_stands_below_wide_characters() -> None:
    span = Span("a.sh", 3, 6, 2, "并行 TP=16")
    report = Report(
        "a.sh", 3, None, None, None, None, "impossible", [Finding("X1", "error", Text("a", "a"), span=span)]
    )
    lines = list(TextRenderer("en", False).render([report]))
    line, caret = next((one, two) for one, two in itertools.pairwise(lines) if "并行" in one)
    assert width(line[: line.index("=16")]) == caret.index("^") == len(" 3 | ") + width("并行 TP")
    assert caret.endswith("^^")


def test_text_steers_no_terminal() -> None:
    assert safe("a\x1b]0;x\x07\u202eb\nc\td\x9b") == "a�]0;x��b c d�"
    assert width("e\u0301并") == 3
