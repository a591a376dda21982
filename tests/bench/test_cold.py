"""Whole processes, from nothing to the answer."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ascend_compat.matrix import store

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
CHECK = [sys.executable, "-m", "ascend_compat", "check"]
JOBS = {
    "YAML job, accepted": "llamafactory-lora-qwen2-1.5b.yaml",
    "AscendFactory job, denied": "af-llamafactory-lora-qwen2-1.5b.yaml",
    "bash job, rejected with ways out": "mindspeed-llm-qwen2.5-7b-tp8.sh",
}


def test_check(table, in_turn: Callable[..., list[tuple[float, float]]]) -> None:  # type: ignore[no-untyped-def]
    database = store.build()
    opening = f"import duckdb; duckdb.connect({str(database)!r}, read_only=True).execute('select 1')"
    commands = [[*CHECK, str(EXAMPLES / name)] for name in JOBS.values()]
    (base, noise), *seen = in_turn([sys.executable, "-c", opening], *commands)
    for kind, (figure, spread) in zip(JOBS, seen):
        ratio = figure / base
        against = f"import duckdb, open, select 1: {base:.0f} ms (±{noise:.0f} %)"
        table.add(
            f"cold check, {kind}",
            f"{figure:.0f} ms (±{spread:.0f} %), {ratio:.2f} times",
            against,
            "≤ 1.5 times",
            ratio <= 1.5,
        )


def test_check_jsonschema(table, in_turn, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    if importlib.util.find_spec("check_jsonschema") is None:
        pytest.skip("check-jsonschema is not installed")
    job = EXAMPLES / JOBS["YAML job, accepted"]
    schema = tmp_path / "schema.json"
    schema.write_text(
        json.dumps({"type": "object", "properties": {"stage": {"enum": ["pt", "sft", "dpo"]}}}), encoding="utf-8"
    )
    other = [sys.executable, "-m", "check_jsonschema", "--schemafile", str(schema), str(job)]
    (figure, _), (peer, _) = in_turn([*CHECK, str(job)], other, times=5)
    table.add("cold check, YAML job", f"{figure:.0f} ms", f"check-jsonschema: {peer:.0f} ms", "faster", figure < peer)


@pytest.mark.parametrize("argument", ["--version", "--help"])
def test_start(table, in_turn, argument: str) -> None:  # type: ignore[no-untyped-def]
    own = [sys.executable, "-m", "ascend_compat", argument]
    (figure, _), (base, _) = in_turn(own, [sys.executable, "-c", "import click"])
    table.add(
        f"cold {argument}",
        f"{figure:.0f} ms, {figure / base:.2f} times",
        f"import click: {base:.0f} ms",
        "≤ 1.5 times",
        figure <= 1.5 * base,
    )
