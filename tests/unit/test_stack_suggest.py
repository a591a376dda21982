"""Suggested sets agree with everything stack check knows; contradictory wishes get their reasons."""

from __future__ import annotations

import json
from typing import Any

import duckdb
import pytest

from ascend_compat.check.stack import StackChecker
from ascend_compat.stack.suggest import suggest
from ascend_compat.stack.tables import Tables

FRAMEWORKS = ("llamafactory", "verl", "mindspeed-llm", "mindspeed-rl", "mindspeed-mm", "vllm-ascend", "ascendfactory")


@pytest.fixture(scope="module")
def tables(con: duckdb.DuckDBPyConnection) -> Tables:
    return Tables(con)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_each_framework_has_sets_and_each_passes_stack_check(
    framework: str, tables: Tables, con: duckdb.DuckDBPyConnection
) -> None:
    answer = suggest(tables, {"framework": framework})
    assert answer.sets and not answer.reasons
    checker = StackChecker(con, today="2026-05")
    for made in answer.sets:
        report = checker.report(made.stack())
        assert report.verdict == "supported", (made.components, [finding.message.en for finding in report.findings])
        assert all(address for _, address in made.sources)
        assert any("torch==" in line and "torch-npu==" in line for line in made.install())
        assert not any("-dev" in line for line in made.install() if line.startswith("pip"))


def test_every_set_there_is_passes(tables: Tables, con: duckdb.DuckDBPyConnection) -> None:
    answer = suggest(tables, {})
    checker = StackChecker(con, today="2026-05")
    verdicts = [checker.report(made.stack()).verdict for made in answer.sets]
    assert len(verdicts) > 100
    assert set(verdicts) == {"supported"}


def test_newest_comes_first(tables: Tables) -> None:
    found = [made.components["framework_version"] for made in suggest(tables, {"framework": "mindspeed-llm"}).sets]
    assert found == ["26.1.0", "26.0.0", "2.3.0", "2.2.0", "2.1.0", "2.1.0", "2.0.0"]
    assert suggest(tables, {"cann": "8.3.RC1"}).sets[0].components["torch_npu"] == "2.8.0"


@pytest.mark.parametrize(
    ("wishes", "part"),
    [
        ({"framework": "verl", "cann": "8.3.RC1"}, {"framework_version": "0.7.0", "torch_npu": "2.7.1", "vllm_ascend": "0.11.0rc1"}),
        ({"torch_npu": "2.7.1.post4"}, {"cann": "9.0.0", "torch": "2.7.1"}),
        ({"cann": "8.2.rc1", "torch": "2.5.1"}, {"torch_npu": "2.5.1.post1"}),
        ({"torch": "2.5.1+cpu", "python": "3.9.18"}, {"python": "3.9"}),
        ({"framework": "vllm-ascend", "vllm": "0.11.0", "chip": "A3"}, {"vllm_ascend": "0.11.0", "chip": "A3"}),
        ({"framework": "llamafactory", "framework_version": "0.9.3"}, {"cann": "8.0.0", "torch_npu": "2.4.0.post2"}),
    ],
)  # fmt: skip
def test_wishes_are_met(wishes: dict[str, str], part: dict[str, str], tables: Tables) -> None:
    made = suggest(tables, wishes).sets[0]
    assert {name: made.components[name] for name in part} == part


@pytest.mark.parametrize(
    ("wishes", "words", "near"),
    [
        ({"framework": "verl", "cann": "9.0.0"}, ("because verl needs CANN 9.1.0, 8.5.0,", "and CANN 9.0.0 is documented for"), "verl"),
        ({"torch_npu": "2.9.0", "cann": "8.3.RC1"}, ("because CANN 8.3.RC1 needs torch-npu 2.8.0,", "and torch-npu 2.9.0 needs CANN 8.5.1 or 8.5.0"), None),
        ({"cann": "8.1.RC1", "python": "3.13"}, ("because CANN 8.1.RC1 needs Python 3.11,", "and Python 3.13 needs CANN 9.1.0"), None),
        ({"framework": "verl", "chip": "310P"}, ("because verl needs chip A2 or A3,", "and"), None),
        ({"framework": "llamafactory", "vllm": "0.11.0"}, ("because llamafactory comes without vllm,", "and vllm 0.11.0 is documented for"), None),
        ({"cann": "9.9"}, ("no table names CANN 9.9",), None),
        ({"framework": "verl", "cann": "8.3.RC1", "torch_npu": "2.8.0", "python": "3.11"}, ("because verl with CANN 8.3.RC1 needs torch-npu 2.7.1,",), "verl"),
    ],
)  # fmt: skip
def test_contradictory_wishes_get_reasons_and_the_nearest_set(
    wishes: dict[str, str], words: tuple[str, ...], near: str | None, tables: Tables
) -> None:
    answer = suggest(tables, wishes)
    assert answer.sets == []
    for expected, (english, chinese) in zip(words, answer.reasons, strict=False):
        assert english.startswith(expected), english
        assert chinese and chinese != english
    assert len(answer.nearest) == 1
    assert near is None or answer.nearest[0].components["framework"] == near


def test_on_the_command_line(command: Any) -> None:
    answer = command("stack", "suggest", "--framework", "VeRL", "--cann", "8.3.RC1", "--format", "json")
    whole = json.loads(answer.stdout)
    assert answer.returncode == 0 and whole["sets"][0]["versions"]["torch_npu"] == "2.7.1"
    assert "pip install torch==2.7.1 torch-npu==2.7.1" in whole["sets"][0]["install"]
    none = command("stack", "suggest", "--torch-npu", "2.9.0", "--cann", "8.3.RC1", "--lang", "zh")
    assert none.returncode == 1 and "因为 CANN 8.3.RC1 需要 torch-npu 2.8.0" in none.stdout and "最接近" in none.stdout
    for wrong in (("--framework", "nosuch"), ("--chip", "H100")):
        refused = command("stack", "suggest", *wrong)
        assert refused.returncode == 2 and refused.stderr.count("\n") == 1
