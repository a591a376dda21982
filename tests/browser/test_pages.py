"""Each kind of page in Chromium: opens cleanly, fits a phone, is dark when asked, passes axe; search finds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from conftest import Opener

KINDS = {
    "home": "index",
    "explorer": "explorer/index",
    "index": "models/index",
    "matrix": "matrix/ascendfactory-6.5.906",
    "model": "models/qwen2.5-7b",
    "feature": "features/lora",
    "framework": "frameworks/mindspeed-llm",
    "keys": "frameworks/vllm-keys",
    "rules": "rules/mindspeed-llm-batch-divisibility",
    "code": "codes/AC1001",
    "release": "releases/ascendfactory-6.5.902",
    "stack": "stacks/torch-npu",
    "recipe": "recipes/llamafactory-lora-tiny",
    "health": "health/index",
}
BOTH = pytest.mark.parametrize("language", ["en", "zh"])
EACH = pytest.mark.parametrize("kind", KINDS)


def test_no_kind_is_left_out(site: Path) -> None:
    index = json.loads((site / "index.json").read_text(encoding="utf-8"))["pages"]
    assert {each["kind"] for each in index} == set(KINDS)
    assert {each["id"]: each["kind"] for each in index if each["id"] in KINDS.values()} == {
        identifier: kind for kind, identifier in KINDS.items()
    }


@BOTH
@EACH
def test_it_opens_cleanly(tab: Opener, language: str, kind: str) -> None:
    page = tab().open(f"{language}/{KINDS[kind]}.html")
    assert page.locator("article h1").inner_text().strip()
    assert page.locator("html").get_attribute("lang") == {"en": "en", "zh": "zh-CN"}[language]
    page.locator("a.switch").click()
    page.wait_for_url(f"**/{ {'en': 'zh', 'zh': 'en'}[language] }/{KINDS[kind]}.html*")


@BOTH
@EACH
def test_it_fits_a_phone(tab: Opener, language: str, kind: str) -> None:
    page = tab(width=390).open(f"{language}/{KINDS[kind]}.html")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@EACH
@pytest.mark.parametrize(("language", "dark"), [("en", False), ("zh", True)], ids=["en-light", "zh-dark"])
def test_axe_finds_nothing_serious(tab: Opener, language: str, kind: str, dark: bool) -> None:
    page = tab(dark=dark).open(f"{language}/{KINDS[kind]}.html")
    # without preload: axe would fetch style sheets, which a page opened from a folder may not
    found = Axe().run(page, options={"preload": False}).response["violations"]
    serious = [
        (each["id"], each["nodes"][0]["html"][:200], each["nodes"][0]["failureSummary"][:300])
        for each in found
        if each["impact"] in ("serious", "critical")
    ]
    assert serious == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_ground_follows_the_reader(tab: Opener, dark: bool) -> None:
    page = tab(dark=dark).open("en/index.html")
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    light = sum(int(each) for each in ground.strip("rgba()").split(",")[:3]) / 3
    assert light < 64 if dark else light > 192


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_wide_table_keeps_head_and_model_in_view(tab: Opener, language: str) -> None:
    page = tab(width=900).open(f"{language}/matrix/ascendfactory-6.5.906.html")
    frame = page.locator(".frame:has(table.grid)").first
    frame.evaluate("each => each.scrollTo(500, 600)")
    box = frame.bounding_box()
    head, label = frame.locator("thead").bounding_box(), frame.locator("tbody tr:nth-child(25) th.label").bounding_box()
    assert box and head and label
    assert abs(head["y"] - box["y"]) < 3
    assert abs(label["x"] - box["x"]) < 3


def test_a_cell_leads_to_what_stands_behind_it(tab: Opener) -> None:
    page = tab().open("en/matrix/ascendfactory-6.5.906.html")
    page.locator("table.grid tbody td a").first.click()
    target = page.evaluate("location.hash.slice(1)")
    row = page.locator(f"tr#{target}")
    assert row.count() == 1
    assert "modelarts_llm_train_590603" in row.inner_text()


@pytest.mark.parametrize(
    ("language", "query", "target"),
    [
        ("en", "qwen2.5-7b", "models/qwen2.5-7b"),
        ("en", "minimum devices", "models/"),
        ("en", "ML-PAR12", "rules/mindspeed-llm"),
        ("zh", "最小卡数", "models/"),
        ("zh", "序列并行", "features/"),
        ("zh", "健康度", "health/index"),
    ],
)
def test_search_finds(tab: Opener, language: str, query: str, target: str) -> None:
    page = tab().open(f"{language}/index.html")
    page.locator(".sidebar-search").fill(query)
    page.locator(".sidebar-search").press("Enter")
    # results come one after the other
    page.wait_for_function(
        "(place) => [...document.querySelectorAll('#search-results li a')].some((each) => each.href.includes(place))",
        arg=f"/{language}/{target}",
    )


def test_the_keyboard_is_enough(tab: Opener) -> None:
    page = tab().open("en/matrix/ascendfactory-6.5.906.html")
    page.keyboard.press("Tab")
    assert "skip" in page.evaluate("document.activeElement.className").lower()
    page.keyboard.press("Enter")
    page.locator(".frame").first.focus()
    page.keyboard.press("ArrowDown")
    page.wait_for_function("document.querySelector('.frame').scrollTop > 0")


def test_it_prints_without_the_tools(tab: Opener) -> None:
    page = tab().open("en/explorer/index.html")
    page.emulate_media(media="print")
    assert not page.locator("form.explorer").is_visible()
    assert page.locator("#result").is_visible()
