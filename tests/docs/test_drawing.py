"""Plots: what recorded runs become on a recipe's page, and that drawings stay inside their frame."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from typing import Any

import duckdb
import pytest

from ascend_compat.docs.drawing import Curve, badge, curves, heat
from ascend_compat.docs.page import Heading, Picture, Table, plain
from ascend_compat.docs.pages.recipes import _runs
from ascend_compat.docs.source import Source


def run(day: int, loss: list[float], speed: list[float], devices: int = 2) -> dict[str, Any]:
    """A made-up run, as the view ``evidence`` has one."""
    metrics = [
        {"name": "loss", "unit": "", "values": loss},
        {"name": "tokens_per_second", "unit": "token/s", "values": speed},
    ]
    return {
        **dict.fromkeys(("framework_version", "torch", "torch_npu", "cann", "error_reason", "error_kind")),
        "ended": f"2026-11-{day:02}T10:00:00",
        "result": "passed",
        "model": "qwen2.5-7b",
        "model_kind": "tiny",
        "devices": devices,
        "device": "cpu",
        "simulated": False,
        "product": "llamafactory",
        "release": "0.9.4",
        "metrics": metrics,
    }


def inside(svg: str) -> int:
    """Check that every point of a drawing lies in its view box; how many there are."""
    root = ElementTree.fromstring(svg)
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    seen = 0
    for element in root.iter():
        for x, y in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", element.attrib.get("d", "")):
            assert 0 <= float(x) <= width and 0 <= float(y) <= height
            seen += 1
    return seen


@pytest.mark.parametrize("language", ["en", "zh"])
def test_runs_become_curves(con: duckdb.DuckDBPyConnection, language: str) -> None:
    newest_first = [run(2, [2.0, 1.5, 1.25], [10, 220, 260, 240]), run(1, [2.0, 1.75, 1.5], [10, 200, 200])]
    blocks = _runs(Source(con, language), newest_first)
    assert [block.anchor for block in blocks if isinstance(block, Heading)] == ["runs", "loss", "throughput"]
    loss, speed = [block for block in blocks if isinstance(block, Picture)]
    assert "2.000 → 1.250" in loss.words and "2.000 → 1.500" in loss.words
    # per device, the first step left out, in order of time; the spread is drawn as a band
    assert speed.words == "2026-11-01: 100; 2026-11-02: 120"
    assert speed.svg.count('class="band-0"') == 1
    assert inside(loss.svg) >= 6 and inside(speed.svg) >= 6
    (table,) = [block for block in blocks if isinstance(block, Table)]
    assert len(table.rows) == 2 and "loss 1.583 (3)" in plain(table.rows[0][-1])


def test_no_run_is_no_curve(con: duckdb.DuckDBPyConnection) -> None:
    blocks = _runs(Source(con, "en"), [])
    assert not [block for block in blocks if isinstance(block, Picture)]
    odd = run(1, [float("nan")], [])
    odd["metrics"][0]["values"] = [None, "nan"]
    assert not [block for block in _runs(Source(con, "en"), [odd]) if isinstance(block, Picture)]


def test_drawings_are_whole() -> None:
    assert inside(curves(["1"], [Curve("one", [0.0])], "unit")) >= 1
    assert (
        inside(curves([str(n) for n in range(40)], [Curve(f"line {n}", [float(n)] * 40) for n in range(4)], "unit"))
        == 4 * 41 + 3
    )
    ElementTree.fromstring(heat(["a < b"], [("x & y", [("claimed", "3")]), ("z", [None])]))
    root = ElementTree.fromstring(badge("Qwen & co <", "支持", "claimed"))
    assert root.attrib["aria-label"] == "Qwen & co <: 支持"
    assert float(root.attrib["width"]) > 100
