"""The explorer against the database: filters, comparison, what can be run, the address, the other language, the keyboard."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

import duckdb
import pytest
from conftest import Opener
from playwright.sync_api import Page

HOME = "en/explorer/index.html"
STATED = """
SELECT model, framework, feature, status FROM claim JOIN model m ON m.id = model
WHERE product = 'ascendfactory' AND release = '6.5.906' AND status <> 'unknown'
"""


def choose(page: Page, **chosen: str) -> None:
    for name, value in chosen.items():
        page.locator(f"#explorer select[name={name}]").select_option(value)


def view(page: Page, name: str) -> None:
    page.locator(f"#explorer input[name=view][value={name}]").check()


def rows(page: Page) -> list[list[str]]:
    """The whole result, after every "show more"."""
    while page.locator("#more").is_visible():
        page.locator("#more").click()
    return page.locator("#result tbody").evaluate(
        "body => [...body.rows].map((row) => [...row.cells].map((cell) => cell.innerText.trim()))"
    )


def number(page: Page) -> int:
    return int("".join(each for each in page.locator("#count").inner_text().split(" ")[0] if each.isdigit()))


@pytest.fixture
def explorer(tab: Opener) -> Page:
    return tab().open(HOME)


@pytest.mark.parametrize(
    ("chosen", "where"),
    [
        ({}, "true"),
        ({"model": "qwen2-1.5b"}, "model = 'qwen2-1.5b'"),
        ({"framework": "llamafactory"}, "framework = 'llamafactory'"),
        ({"feature": "lora", "status": "unsupported"}, "feature = 'lora' AND status = 'unsupported'"),
        ({"series": "Qwen3", "framework": "llamafactory"}, "m.family = 'Qwen3' AND framework = 'llamafactory'"),
        ({"status": "not-applicable"}, "status = 'not-applicable'"),
    ],
)
def test_filters_show_what_the_database_holds(
    explorer: Page, con: duckdb.DuckDBPyConnection, chosen: dict[str, str], where: str
) -> None:
    choose(explorer, release="ascendfactory@6.5.906", **chosen)
    names = dict(con.execute("SELECT id, name_en FROM model UNION ALL SELECT id, name_en FROM framework").fetchall())
    features = dict(con.execute("SELECT id, name_en FROM feature").fetchall())
    wanted = [
        (names[model], names[framework], features[feature])
        for model, framework, feature, _ in con.execute(f"{STATED} AND {where}").fetchall()
    ]
    shown = rows(explorer)
    assert sorted(tuple(row[:3]) for row in shown) == sorted(wanted)
    assert len(wanted) > 2
    assert {row[5] for row in shown} == {"AscendFactory 6.5.906"}


def test_words_and_evidence_narrow_the_list(explorer: Page) -> None:
    whole = number(explorer)
    explorer.locator("#explorer input[name=words]").fill("deepseek-v3")
    some = rows(explorer)
    assert 0 < len(some) < whole
    assert all("deepseek-v3" in row[0].lower() for row in some)
    choose(explorer, rung="verified")
    assert rows(explorer) == []
    assert "Nothing matches" in explorer.locator("#count").inner_text()
    explorer.locator("#explorer button[type=reset]").click()
    explorer.wait_for_function("!location.hash")
    assert number(explorer) == whole


def test_two_models_side_by_side(explorer: Page, con: duckdb.DuckDBPyConnection) -> None:
    view(explorer, "compare")
    choose(explorer, a="qwen2-0.5b", b="qwen2-1.5b", release="ascendfactory@6.5.906")
    every = rows(explorer)
    pairs = con.execute(
        f"SELECT a.framework, a.feature, a.status <> b.status FROM ({STATED}) a JOIN ({STATED}) b USING (framework, feature) "
        "WHERE a.model = 'qwen2-0.5b' AND b.model = 'qwen2-1.5b'"
    ).fetchall()
    assert len(every) == len(pairs) > 15
    explorer.locator("#explorer input[name=differ]").check()
    differing = rows(explorer)
    assert len(differing) == sum(differs for _, _, differs in pairs) > 0
    assert all(row[3] != row[4] for row in differing)
    assert f"{len(differing)} differ" in explorer.locator("#count").inner_text()
    head = explorer.locator("#result thead").inner_text()
    assert "Qwen2-0.5B" in head and "Qwen2-1.5B" in head


def test_two_releases_side_by_side(explorer: Page) -> None:
    view(explorer, "compare")
    choose(explorer, what="releases")
    assert not explorer.locator("#explorer select[name=release]").is_visible()
    choose(explorer, a="ascendfactory@6.5.906", b="ascendfactory@6.5.910", framework="llamafactory")
    explorer.locator("#explorer input[name=differ]").check()
    shown = rows(explorer)
    assert len(shown) > 0
    assert all(row[3] != row[4] for row in shown)
    head = explorer.locator("#result thead").inner_text()
    assert "6.5.906" in head and "6.5.910" in head


def test_what_can_be_run_with_these_features(explorer: Page, con: duckdb.DuckDBPyConnection) -> None:
    view(explorer, "run")
    assert "Choose at least one feature" in explorer.locator("#count").inner_text()
    choose(explorer, release="ascendfactory@6.5.906", framework="mindspeed-llm")
    for need in ("lora", "packing"):
        explorer.locator(f"#needs input[value={need}]").check()
    wanted = con.execute(
        f"SELECT name_en FROM model WHERE id IN (SELECT model FROM ({STATED}) WHERE framework = 'mindspeed-llm' AND feature IN ('lora', 'packing') "
        "AND status IN ('supported', 'partial') GROUP BY model HAVING count(DISTINCT feature) = 2)"
    ).fetchall()
    assert sorted(row[0] for row in rows(explorer)) == sorted(name for (name,) in wanted)
    assert len(wanted) > 10


def test_the_address_holds_the_view(tab: Opener) -> None:
    page = tab().open(HOME)
    view(page, "run")
    choose(page, framework="verl")
    page.locator("#needs input[value=grpo]").check()
    first, address = rows(page), page.url
    assert "needs=grpo" in unquote(address) and "framework=verl" in address and "view=run" in address
    again = tab()
    again.page.goto(address)
    assert rows(again.page) == first
    assert first
    # an address typed over the old one is followed, and nonsense in it does no harm
    again.page.evaluate("location.hash = 'model=qwen2-1.5b&framework=llamafactory&feature=lora'")
    again.page.wait_for_function("document.querySelector('#result').rows.length < 5")
    assert {row[0] for row in rows(again.page)} == {"Qwen2-1.5B"}
    nonsense = tab().open(HOME + "#model=nothing&view=sideways&differ=x&needs=%3Cscript%3E&a=&elements=1&__proto__=2")
    assert rows(nonsense)


def test_the_other_language_keeps_the_view(tab: Opener) -> None:
    page = tab().open(HOME + "#framework=llamafactory&feature=lora&release=ascendfactory@6.5.906")
    english = rows(page)
    page.locator("a.switch").click()
    page.wait_for_url("**/zh/explorer/index.html#*")
    chinese = rows(page)
    assert len(chinese) == len(english) > 10
    assert [row[0] for row in chinese] == [row[0] for row in english]
    assert page.locator("#result thead").inner_text().split()[0] == "模型"
    assert {row[3].split()[-1] for row in chinese} <= {"支持", "不支持", "有条件支持", "不适用"}


def test_keys_alone_filter_and_page(explorer: Page) -> None:
    explorer.locator("#explorer input[name=view][value=list]").focus()
    explorer.keyboard.press("ArrowRight")
    assert explorer.locator("#explorer input[name=view][value=compare]").is_checked()
    explorer.keyboard.press("ArrowLeft")
    explorer.keyboard.press("Tab")
    assert explorer.evaluate("document.activeElement.name") == "words"
    explorer.keyboard.type("qwen2-1.5b")
    assert {row[0] for row in rows(explorer)} == {"Qwen2-1.5B"}
    explorer.locator("#explorer input[name=words]").fill("")
    before = explorer.locator("#result tbody tr").count()
    explorer.locator("#more").focus()
    explorer.keyboard.press("Enter")
    assert explorer.locator("#result tbody tr").count() > before == 200


def test_it_speaks_to_screen_readers(explorer: Page) -> None:
    assert explorer.locator("#count").get_attribute("role") == "status"
    assert explorer.locator("#result caption").count() == 1
    unnamed = explorer.locator("#explorer select, #explorer input").evaluate_all(
        "all => all.filter((each) => !each.labels.length || !each.labels[0].innerText.trim()).map((each) => each.name)"
    )
    assert [name for name in unnamed if name] == []


@pytest.mark.parametrize("hash_", ["", "#view=compare", "#view=run&needs=lora"], ids=["list", "compare", "run"])
def test_every_view_fits_a_phone(tab: Opener, hash_: str) -> None:
    page = tab(width=390).open(HOME + hash_)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_it_is_small(tab: Opener, site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    opened = tab()
    page = opened.open(HOME)
    page.wait_for_load_state("load")
    files = {unquote(address.split("#")[0].split("?")[0]).removeprefix("file://") for address in opened.loaded}
    size = sum(Path(each).stat().st_size for each in files if each.startswith("/"))
    shown = page.evaluate("performance.getEntriesByType('paint').map((each) => Math.round(each.startTime))")
    done = page.evaluate("Math.round(performance.getEntriesByType('navigation')[0].domComplete)")
    with capsys.disabled():
        print(f"\nexplorer: {size:,} bytes in {len(files)} files, first paint {shown} ms, complete {done} ms")
    assert str(site / "en" / "explorer" / "data.js") in files
    assert size < 400_000
