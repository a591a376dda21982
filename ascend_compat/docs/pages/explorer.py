"""The explorer: one page over the whole matrix. Here its form and its data; ``static/explorer.js`` does the rest."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Any

from ascend_compat.docs.page import Embedded, Link, Page, Paragraph
from ascend_compat.docs.source import RUNGS, SIGNS

if TYPE_CHECKING:
    from ascend_compat.docs.page import Line
    from ascend_compat.docs.rungs import Rungs
    from ascend_compat.docs.source import Source

LETTERS = dict(zip(SIGNS, "spunw?"))
_CLAIMS = """
SELECT c.product, c.framework, c.model, c.feature, c.release, r.ordinal, c.status, c.condition, c.condition_zh
FROM claim c JOIN release r USING (product, release) JOIN feature f ON f.id = c.feature JOIN model m ON m.id = c.model
ORDER BY m.family, m.total_params, c.model, c.product, c.framework, f."group", c.feature, r.ordinal
"""


def pages(source: Source, rungs: Rungs) -> list[Page]:
    """The one page; its twin is what the browser works with."""
    t = source.t
    page = Page("explorer/index", "explorer", t("Explorer", "矩阵浏览器"), "index", data(source, rungs), wide=True)
    instead: Line = [
        t("The explorer is a page of the site; the tables are under ", "浏览器仅在网站中提供；表格见"),
        Link(t("Matrices", "支持矩阵"), "matrix/index"),
    ]
    page.blocks.append(
        Paragraph(
            t(
                "Every claim of every release. The address keeps what you choose, so a view can be sent.",
                "所有版本的全部声明。地址栏会保留所选条件，可直接转发当前视图。",
            ),
            "lead",
        )
    )
    page.blocks.append(Embedded(_form(source), instead))
    return [page]


def script(page: Page) -> str:
    """The data as a script, which a browser loads from a folder, too."""
    return "window.MATRIX=" + json.dumps(page.data, ensure_ascii=False, separators=(",", ":")) + ";\n"


def data(source: Source, rungs: Rungs) -> dict[str, Any]:
    """Names, and for every product, framework, model and feature one letter a release (``.`` where it says nothing)."""
    releases: dict[str, list[str]] = {}
    for row in source.rows(
        "SELECT DISTINCT c.product, c.release, r.ordinal FROM claim c JOIN release r USING (product, release) ORDER BY 1, 3"
    ):
        releases.setdefault(row["product"], []).append(row["release"])
    models = [row["id"] for row in source.rows("SELECT id FROM model ORDER BY family, total_params, id")]
    features = [row["id"] for row in source.rows('SELECT id FROM feature ORDER BY "group", id')]
    series = {row["id"]: row["family"] for row in source.rows("SELECT id, family FROM model")}
    frameworks = list(source.frameworks)
    products = list(releases)
    lines: dict[tuple[int, int, int, int], list[str]] = {}
    conditions: dict[str, dict[str, int]] = {}
    texts: dict[str, int] = {}
    ladder: dict[str, dict[str, int]] = {}
    for row in source.rows(_CLAIMS):
        product, release = row["product"], row["release"]
        key = (
            products.index(product),
            frameworks.index(row["framework"]),
            models.index(row["model"]),
            features.index(row["feature"]),
        )
        place = releases[product].index(release)
        lines.setdefault(key, ["."] * len(releases[product]))[place] = LETTERS[row["status"]]
        name = ",".join(map(str, key))
        text = source.condition(row)
        if text:
            conditions.setdefault(name, {})[str(place)] = texts.setdefault(text, len(texts))
        rung = rungs.of(product, release, row["framework"], row["model"], row["feature"]).state
        if rung != "claimed" and row["status"] not in ("unknown", "not-applicable"):
            ladder.setdefault(name, {})[str(place)] = RUNGS.index(rung)
    return {
        "letters": {LETTERS[status]: [SIGNS[status], source.status_words(status), status] for status in SIGNS},
        "rungs": [[rung, source.rung_words(rung)] for rung in RUNGS],
        "products": [[name, source.products[name], releases[name]] for name in products],
        "frameworks": [[name, source.frameworks[name]] for name in frameworks],
        "models": [[name, source.models[name], series[name] or ""] for name in models],
        "features": [[name, source.features[name]] for name in features],
        "lines": [[*key, "".join(line)] for key, line in lines.items() if set(line) - {"?", "."}],
        "conditions": conditions,
        "texts": list(texts),
        "ladder": ladder,
        "words": _words(source),
    }


def _words(source: Source) -> dict[str, str]:
    t = source.t
    return {
        "any": t("any", "不限"),
        "now": t("what stands now", "当前有效的声明"),
        "rows": t("{n} claims", "{n} 条声明"),
        "shown": t("{m} of {n} claims shown", "共 {n} 条声明，显示 {m} 条"),
        "more": t("Show more", "显示更多"),
        "model": t("Model", "模型"),
        "framework": t("Framework", "框架"),
        "feature": t("Feature", "特性"),
        "status": t("Status", "状态"),
        "condition": t("Condition", "条件"),
        "release": t("Release", "版本"),
        "rung": t("Evidence", "证据"),
        "nothing": t("Nothing matches. Take a condition away.", "没有匹配项，请放宽条件。"),
        "differences": t("{n} lines, {m} differ", "共 {n} 行，{m} 行不同"),
        "fits": t("{n} combinations", "{n} 种组合"),
        "choose": t("Choose at least one feature.", "请至少选择一个特性。"),
        "list": t("List of claims", "声明列表"),
        "compare": t("Comparison", "对比"),
        "run": t("What can be run", "可运行的组合"),
        "unstated": t("not stated", "未声明"),
    }


def _form(source: Source) -> str:
    t = source.t

    def choice(name: str, label: str) -> str:
        return f'<label>{escape(label)}<select name="{name}"></select></label>'

    views = "".join(
        f'<label class="view"><input type="radio" name="view" value="{value}"{" checked" if value == "list" else ""}> {escape(label)}</label>'
        for value, label in (
            ("list", t("List", "列表")),
            ("compare", t("Compare", "对比")),
            ("run", t("What can I run?", "我能运行什么？")),
        )
    )
    search = f'<label>{escape(t("Words in a name", "名称中的文字"))}<input type="search" name="words" autocomplete="off"></label>'
    parts = [
        '<form id="explorer" class="explorer" onsubmit="return false">',
        f'<fieldset class="views"><legend>{escape(t("View", "视图"))}</legend>{views}</fieldset>',
        '<div class="choices" data-view="list">',
        search,
        choice("model", t("Model", "模型")),
        choice("series", t("Series", "系列")),
        choice("feature", t("Feature", "特性")),
        choice("status", t("Status", "状态")),
        choice("rung", t("Evidence", "证据")),
        "</div>",
        '<div class="choices" data-view="compare" hidden>',
        f'<label>{escape(t("Compare", "对比对象"))}<select name="what"><option value="models">{escape(t("two models", "两个模型"))}</option>'
        f'<option value="releases">{escape(t("two releases", "两个版本"))}</option></select></label>',
        choice("a", t("First", "前者")),
        choice("b", t("Second", "后者")),
        f'<label class="tick"><input type="checkbox" name="differ"> {escape(t("differences only", "仅显示差异"))}</label>',
        "</div>",
        '<div class="choices" data-view="run" hidden>',
        f'<fieldset class="features"><legend>{escape(t("I need", "需要的特性"))}</legend><div id="needs"></div></fieldset>',
        "</div>",
        '<div class="choices">',
        choice("framework", t("Framework", "框架")),
        choice("release", t("Release", "版本")),
        f'<button type="reset">{escape(t("Clear", "清除条件"))}</button>',
        "</div>",
        "</form>",
        '<p id="count" role="status" aria-live="polite"></p>',
        f'<div class="frame" role="region" tabindex="0" aria-label="{escape(t("Result", "结果"))}"><table class="plain" id="result"></table></div>',
        f'<p><button type="button" id="more" hidden>{escape(t("Show more", "显示更多"))}</button></p>',
        f'<noscript><p class="note">{escape(t("The explorer needs JavaScript; the matrix pages do not.", "矩阵浏览器需要 JavaScript；支持矩阵页面不需要。"))}</p></noscript>',
        '<script src="data.js" defer></script>',
        '<script src="../_static/explorer.js" defer></script>',
    ]
    return "\n".join(parts)
