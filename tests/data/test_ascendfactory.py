"""AscendFactory's tables against an independent reading of the page and the counts of what was transcribed."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ascend_compat.matrix.documents import load_documents
from ascend_compat.matrix.render import data, grid, page
from ascend_compat.matrix.tables import expand

PAGE = Path(__file__).parent / "seed" / "590603-zh.txt"
STATUS = {"✅": "supported", "❌": "unsupported", "NA": "not-applicable"}
FRAMEWORKS = ["mindspeed-llm"] * 8 + ["llamafactory"] * 3 + ["verl"] * 3 + ["mindspeed-rl"] * 4


@pytest.fixture(scope="module")
def tables() -> dict[str, dict[str, Any]]:
    documents = load_documents()
    return {
        document.path.rsplit("/", 1)[-1].removesuffix(".yaml"): document.body
        for document in documents
        if document.kind == "table" and document.body["product"] == "ascendfactory"
    }


@pytest.fixture(scope="module")
def product() -> dict[str, Any]:
    return next(d.body for d in load_documents() if d.kind == "product" and d.body["id"] == "ascendfactory")


def page_rows() -> list[list[str]]:
    lines = [line.split("\t") for line in PAGE.read_text(encoding="utf-8").splitlines() if "\t" in line]
    return lines[3:]


def test_seed_has_38_models_and_684_cells(tables: dict[str, dict[str, Any]]) -> None:
    cells, claims = expand(tables["6.5.906"])
    assert (len(tables["6.5.906"]["rows"]), len(tables["6.5.906"]["columns"])) == (34, 18)
    assert len({cell.model for cell in cells}) == 38
    assert Counter(cell.status for cell in cells) == {"supported": 339, "unsupported": 213, "not-applicable": 132}
    assert len(claims) == len({(c.model, c.framework, c.feature) for c in claims}) == 38 * 35


def test_every_seed_cell_agrees_with_the_page(tables: dict[str, dict[str, Any]]) -> None:
    """Read the page with a few lines that share nothing with the importer."""
    cells, _ = expand(tables["6.5.906"])
    stated: dict[str, list[tuple[str, str]]] = {}
    for cell in cells:
        stated.setdefault(cell.model, []).append((cell.framework, cell.status))
    seen = set()
    for row in page_rows():
        label = row[1].casefold().replace(" ", "-").replace("--", "-")
        base, *sizes = re.split(r"-(?=[\d.]+b/)|/", label)
        models = [f"{base}-{size}" for size in sizes] or [label]
        for model in models:
            assert stated[model] == [(f, STATUS[mark]) for f, mark in zip(FRAMEWORKS, row[2:], strict=True)], model
            seen.add(model)
    assert seen == set(stated)


def test_chinese_table_is_the_page(tables: dict[str, dict[str, Any]]) -> None:
    rendered = data(tables["6.5.906"], "zh")
    rows = page_rows()
    assert [row[2:] for row in rendered] == [row[2:] for row in rows]
    assert sum(len(row) - 2 for row in rendered) == 612
    assert [row[:2] for row in rendered] == [row[:2] for row in rows]
    assert page(tables["6.5.906"], "zh", "tsv") == PAGE.read_text(encoding="utf-8")


def test_english_table_has_no_chinese(tables: dict[str, dict[str, Any]]) -> None:
    texts = [cell for row in grid(tables["6.5.906"], "en") for cell in row]
    assert len(texts) == (34 + 3) * 20
    assert not [text for text in texts if re.search(r"[\u4e00-\u9fff]", text)]


@pytest.mark.parametrize(
    ("name", "rows", "counts"),
    [
        ("6.5.902", 22, {"supported": 35, "unsupported": 31}),
        ("6.5.905", 26, {"supported": 45, "unsupported": 53, "unknown": 6}),
        (
            "6.5.907",
            34,
            {"supported": 162, "unsupported": 39, "not-applicable": 12, "withdrawn": 3, "unknown": 658},
        ),
        ("6.5.908.llamafactory", 34, {"supported": 96, "partial": 3, "unsupported": 18, "unknown": 73}),
        ("6.5.908.mindspeed-llm", 25, {"supported": 22, "unknown": 32}),
        ("6.5.908.mindspeed-rl", 5, {"supported": 6, "unknown": 4}),
        ("6.5.908.verl", 6, {"supported": 7, "unknown": 5}),
        ("6.5.910.llamafactory", 32, {"supported": 95, "partial": 1, "unsupported": 18, "unknown": 66}),
        ("6.5.910.mindspeed-llm", 3, {"supported": 3}),
        ("6.5.910.mindspeed-mm", 3, {"supported": 12, "unsupported": 3}),
        ("6.5.910.mindspeed-rl", 7, {"supported": 27, "unsupported": 1}),
        ("6.5.910.verl", 11, {"supported": 42, "partial": 1, "unsupported": 30, "unknown": 4}),
    ],
)
def test_other_releases(tables: dict[str, dict[str, Any]], name: str, rows: int, counts: dict[str, int]) -> None:
    cells, _ = expand(tables[name])
    assert len(tables[name]["rows"]) == rows
    assert Counter(cell.status for cell in cells) == counts


def test_all_tables_are_counted(tables: dict[str, dict[str, Any]]) -> None:
    assert len(tables) == 13


def test_sets_and_conditions_become_claims(tables: dict[str, dict[str, Any]]) -> None:
    claims = {(c.model, c.feature): c for c in expand(tables["6.5.910.verl"])[1]}
    assert claims["qwen3-8b", "ppo"].status == "supported"
    assert claims["qwen3-8b", "dapo"].status == "unsupported"
    lora = claims["qwen3-8b", "lora"]
    assert lora.status == "partial"
    assert lora.condition is not None
    assert lora.condition["with"] == ["backend-fsdp"]
    assert claims["qwen3-30b-a3b", "backend-fsdp"].status == "unsupported"
    assert claims["qwen2.5-7b", "long-sequence-32k"].status == "unknown"
    version = claims["qwen3-8b", "rollout-vllm"].condition
    assert version is not None
    assert version["version"] == "0.9.1"
    factory = {(c.model, c.feature): c for c in expand(tables["6.5.908.llamafactory"])[1]}
    assert factory["qwen2.5-14b", "dpo"].status == "supported"
    assert factory["qwen2.5-7b", "dpo"].status == "unsupported"
    assert factory["qwen3-8b", "long-sequence-32k"].status == "partial"


def test_internvl_is_withdrawn_in_907(tables: dict[str, dict[str, Any]]) -> None:
    claims = {(c.model, c.framework, c.feature): c.status for c in expand(tables["6.5.907"])[1]}
    for model in ("internvl2.5-8b", "internvl2.5-38b", "internvl2.5-78b"):
        assert claims[model, "llamafactory", "lora"] == "withdrawn"
        assert claims[model, "llamafactory", "dpo"] == "unknown"


def test_releases_in_order(product: dict[str, Any]) -> None:
    ids = [release["id"] for release in product["releases"]]
    assert ids == [f"6.5.{n}" for n in (901, 902, 905, 906, 907, 908, 910, 911, 912)]
    assert "6.5.906.1" in product["releases"][3]["aliases"]
    last = product["releases"][-1]["frameworks"]
    assert last["mindspeed-rl"]["table"] == "absent"
    assert len(last) == 5


def test_versions_are_known_for_908_only(product: dict[str, Any]) -> None:
    for release in product["releases"]:
        for framework in release["frameworks"].values():
            if release["id"] == "6.5.908":
                assert framework["version"] != "unknown"
                assert "source" in framework
            elif framework["table"] != "absent":
                assert framework["version"] == "unknown"
                assert framework["assumed_from"] == "6.5.908"
