"""``show torch-npu VERSION`` and its kin: what every table says of one version."""

from __future__ import annotations

import json
from typing import Any

import duckdb

from ascend_compat.stack.page import page, page_text


def test_a_build_with_its_pairs_pythons_and_life(con: duckdb.DuckDBPyConnection) -> None:
    found = page(con, "torch_npu", "2.7.1.post2")
    assert found is not None
    assert [row["cann"] for row in found["torch_npu"]] == ["8.5.0"]
    assert {row["product"] for row in found["sets"]} == {"mindspeed-llm", "mindspeed-mm"}
    assert [row["python"] for row in found["torch_python"]] == ["3.9", "3.10", "3.11", "3.12", "3.13"]
    assert found["torch_npu_lifecycle"][0]["torch"] == "2.7.1"
    assert all(row["source"] for rows in found.values() for row in rows)
    assert "COMPATIBILITY.en.md" in page_text(found, "torch-npu", "2.7.1.post2", "en")


def test_other_components(con: duckdb.DuckDBPyConnection) -> None:
    assert page(con, "CANN", "8.3.rc1")["torch_npu"][0]["torch_npu"] == "2.8.0"  # type: ignore[index]
    assert page(con, "vllm-ascend", "v0.11.0rc1")["vllm_ascend"][0]["torch"] == "2.7.1"  # type: ignore[index]
    assert page(con, "python", "3.13.1")["torch_python"]  # type: ignore[index]
    assert page(con, "chip", "910B4")["hardware"][0]["memory_gib"] == "32"  # type: ignore[index]
    for nothing in (("torch-npu", "9.9"), ("torch-npu", ""), ("chip", "H100"), ("nosuch", "1.0")):
        assert page(con, *nothing) is None


def test_on_the_command_line(command: Any) -> None:
    shown = command("show", "torch-npu", "1.5.0.post3", "--lang", "zh")
    assert shown.returncode == 0 and "疑似笔误" in shown.stdout
    as_json = command("show", "torch-npu", "2.7.1.post2", "--format", "json")
    assert json.loads(as_json.stdout)["torch_npu"][0]["cann"] == "8.5.0"
    refused = command("show", "torch-npu", "9.9")
    assert refused.returncode == 2 and refused.stderr.count("\n") == 1
    listed = command("list", "stacks")
    assert listed.returncode == 0 and "stack_torch_npu" in listed.stdout
