"""Release pages: what a release packs, and what changed since the one before."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ascend_compat.docs.page import Heading, Link, Outside, Page, Paragraph, Table, joined
from ascend_compat.matrix.history import CHANGES, diff

if TYPE_CHECKING:
    from ascend_compat.docs.page import Block, Line
    from ascend_compat.docs.source import Source


def pages(source: Source) -> list[Page]:
    """The index of releases, and one page each."""
    rows = source.rows(
        "SELECT product, release, ordinal, date, date_of, inferred, note_{l} AS note, pages, aliases FROM release ORDER BY product, ordinal"
    )
    tabled = {tuple(row.values()) for row in source.rows("SELECT DISTINCT product, release FROM cell")}
    t = source.t
    index = Page(
        "releases/index",
        "index",
        t("Releases", "版本"),
        "index",
        {"releases": [{**row, "pages": json.loads(row["pages"] or "[]")} for row in rows]},
    )
    made = [index]
    for product in dict.fromkeys(row["product"] for row in rows):
        own = [row for row in rows if row["product"] == product]
        title = source.products[product]
        index.blocks.append(Heading(title, product))
        body: list[list[Line]] = [
            [Link(row["release"], f"releases/{product}-{row['release']}"), row["date"] or "", row["note"] or ""]
            for row in reversed(own)
        ]
        index.blocks.append(Table([t("Release", "版本"), t("Date", "日期"), t("Remarks", "备注")], body, title))
        before: str | None = None
        for row in own:
            stated = (product, row["release"]) in tabled
            made.append(_page(source, row, before, stated))
            if stated:
                before = row["release"]
    return made


def _page(source: Source, row: dict[str, Any], before: str | None, stated: bool) -> Page:
    t = source.t
    product, release = row["product"], row["release"]
    data: dict[str, Any] = {**row, "pages": json.loads(row["pages"] or "[]")}
    page = Page(
        f"releases/{product}-{release}", "release", f"{source.products[product]} {release}", "releases/index", data
    )
    if row["note"]:
        page.blocks.append(Paragraph(row["note"], "lead"))
    dated: list[Line] = [t("Date: ", "日期：") + (row["date"] or t("unknown", "未知"))]
    if row["aliases"]:
        dated.append(t("also written ", "又写作 ") + ", ".join(row["aliases"]))
    if row["inferred"]:
        dated.append(t("the release of the page is inferred", "页面所属版本为推断"))
    page.blocks.append(Paragraph(joined(dated, t("; ", "；"))))
    if stated:
        page.blocks.append(Paragraph(Link(t("Its matrix", "支持矩阵"), f"matrix/{product}-{release}")))
    places: list[Line] = [
        Outside(each["url"].rsplit("/", 1)[-1], each["url"]) for each in data["pages"] if "url" in each
    ]
    if places:
        page.blocks.append(Paragraph([t("Pages: ", "页面："), *joined(places)]))
    page.blocks += _frameworks(source, product, release, data)
    page.blocks += _changes(source, product, release, before, stated, data)
    return page


def _frameworks(source: Source, product: str, release: str, data: dict[str, Any]) -> list[Block]:
    t = source.t
    rows = source.rows(
        "SELECT framework, completeness, version, assumed, note_{l} AS note FROM release_framework WHERE product = ? AND release = ? ORDER BY framework",
        product,
        release,
    )
    data["frameworks"] = rows
    if not rows:
        return []
    said = {
        "full": t("whole table", "完整表格"),
        "partial": t("part of the table", "部分表格"),
        "none": t("no table seen", "未见表格"),
        "absent": t("not in the release", "该版本不含"),
    }
    caption = t("Frameworks", "框架")
    body: list[list[Line]] = [
        [
            source.framework(row["framework"]),
            said[row["completeness"]],
            row["version"] or "",
            row["assumed"] or "",
            row["note"] or "",
        ]
        for row in rows
    ]
    head = [
        t("Framework", "框架"),
        t("What is known", "已知内容"),
        t("Version", "版本"),
        t("Assumed", "按此处理"),
        t("Remarks", "备注"),
    ]
    return [Heading(caption, "frameworks"), Table(head, body, caption)]


def _changes(
    source: Source, product: str, release: str, before: str | None, stated: bool, data: dict[str, Any]
) -> list[Block]:
    t = source.t
    words = dict(
        zip(
            CHANGES,
            (
                t("Added", "新增支持"),
                t("Lost", "失去支持"),
                t("Changed", "变化"),
                t("Newly stated", "新增声明"),
                t("No longer stated", "不再声明"),
            ),
        )
    )
    caption = t("Changes", "变更")
    blocks: list[Block] = [Heading(caption, "changes")]
    data["before"], data["changes"] = before, []
    if not stated or before is None:
        return [
            *blocks,
            Paragraph(
                t("No earlier table to compare with.", "没有可比较的更早表格。")
                if stated
                else t("No table of this release was seen.", "未见该版本的表格。")
            ),
        ]
    rows = diff(source.con, product, before, release, language=source.language).records()
    data["changes"] = rows
    counts = {change: sum(row["change"] == change for row in rows) for change in CHANGES}
    said = ", ".join(f"{words[change]}: {count}" for change, count in counts.items() if count) or t("none", "无")
    blocks.append(Paragraph([t("Since ", "相对 "), source.release(product, before), t(": ", "："), said, t(".", "。")]))
    head = [
        t("Framework", "框架"),
        t("Model", "模型"),
        t("Features", "特性"),
        t("Before", "之前"),
        t("After", "之后"),
        t("Condition", "条件"),
    ]
    for change in CHANGES:
        grouped: dict[tuple[Any, ...], list[str]] = {}
        for row in rows:
            if row["change"] == change:
                key = (row["framework"], row["model"], row["before"], row["after"], row["condition_after"])
                grouped.setdefault(key, []).append(row["feature"])
        if grouped:
            body: list[list[Line]] = [
                [
                    source.framework(key[0]),
                    source.model(key[1]),
                    source.features_of(features),
                    source.spelled(key[2]),
                    source.spelled(key[3]),
                    key[4] or "",
                ]
                for key, features in grouped.items()
            ]
            blocks += [
                Heading(f"{words[change]} ({counts[change]})", change.replace(" ", "-"), 3),
                Table(head, body, words[change]),
            ]
    return blocks
