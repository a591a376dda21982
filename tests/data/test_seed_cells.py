"""Every cell of the seed page, read here on its own, against what ``check`` answers."""

from __future__ import annotations

import json
import re
from pathlib import Path

import duckdb
import pytest

from ascend_compat.check.api import Names, check_names

SEED = Path(__file__).parent / "seed" / "590603-zh.txt"
SPLIT = re.compile(r"^(Llama3\.[12] -|Internvl2\.5-)(.+)$")
FRAMEWORKS = ["mindspeed-llm"] * 8 + ["llamafactory"] * 3 + ["verl"] * 3 + ["mindspeed-rl"] * 4
FEATURES = [
    *(
        "pretrain",
        "lora",
        "packing",
        "flash-attention",
        "tensor-parallel",
        "ring-attention",
        "expert-parallel",
        "dynamic-length",
    ),
    *("lora", "zero-2", "flash-attention"),
    *("grpo", "rollout-vllm", "backend-fsdp"),
    *("grpo", "rollout-vllm", "backend-megatron", "ulysses"),
]
VERDICTS = {"✅": "supported", "❌": "unsupported", "NA": "unsupported", "NA2": "unsupported"}


def seed_rows() -> list[tuple[str, list[str]]]:
    rows = []
    for line in SEED.read_text(encoding="utf-8").splitlines():
        cells = line.split("\t")
        if len(cells) == 20 and cells[2] in VERDICTS:
            match = SPLIT.match(cells[1])
            sizes = match.group(2).split("/") if match else [""]
            stem = match.group(1).replace(" ", "") if match else cells[1]
            rows.extend((stem + size, cells[2:]) for size in sizes)
    return rows


def questions() -> list[tuple[Names, str]]:
    return [
        (Names(model, framework, (feature,), "ascendfactory", "6.5.906"), mark)
        for model, marks in seed_rows()
        for framework, feature, mark in zip(FRAMEWORKS, FEATURES, marks, strict=True)
    ]


def test_the_seed_has_684_cells() -> None:
    asked = questions()
    assert len(seed_rows()) == 38
    counts = {mark: sum(each == mark for _, each in asked) for mark in VERDICTS}
    assert counts["✅"] == 339 and counts["❌"] == 213 and counts["NA"] + counts["NA2"] == 132


def test_the_api_agrees_with_the_seed_in_every_cell(con: duckdb.DuckDBPyConnection) -> None:
    asked = questions()
    reports = check_names(con, [names for names, _ in asked])
    wrong = [
        (report.file, report.verdict, mark)
        for report, (_, mark) in zip(reports, asked, strict=True)
        if report.verdict != VERDICTS[mark]
    ]
    assert len(reports) == 684 and wrong == []
    codes = {"❌": "AC1001", "NA": "AC1002", "NA2": "AC1002"}
    for report, (_, mark) in zip(reports, asked, strict=True):
        assert (codes[mark] in {finding.code for finding in report.findings}) if mark in codes else True


def test_one_call_of_the_command_agrees_too(command: object, tmp_path: Path) -> None:
    asked = questions()
    lines = [
        json.dumps({"model": names.model, "framework": names.framework, "features": list(names.features)})
        for names, _ in asked
    ]
    path = tmp_path / "cells.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    done = command("check", "--queries", str(path), "--release", "6.5.906", "--format", "json")  # type: ignore[operator]
    assert done.returncode == 1, done.stderr
    jobs = json.loads(done.stdout)["jobs"]
    assert [job["verdict"] for job in jobs] == [VERDICTS[mark] for _, mark in asked]
    assert {job["release"] for job in jobs} == {"6.5.906"}


@pytest.mark.parametrize("model", ["qwen2.5-7b", "llama3.1-8b"])
def test_a_dense_model_keeps_its_tick_and_gets_a_warning(con: duckdb.DuckDBPyConnection, model: str) -> None:
    (report,) = check_names(con, [Names(model, "mindspeed-llm", ("expert-parallel",), None, "6.5.906")])
    assert report.verdict == "supported"
    assert [finding.severity for finding in report.findings if finding.code == "AC1010"] == ["warning"]
