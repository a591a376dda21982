"""Feature pages: what it is, which keys ask for it, who supports it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ascend_compat.docs.keys import Keys, text_of
from ascend_compat.docs.page import Code, Heading, Link, Page, Paragraph, Table, joined
from ascend_compat.docs.source import GRANTED, SIGNS

if TYPE_CHECKING:
    from ascend_compat.docs.page import Block, Line
    from ascend_compat.docs.source import Source

_STANDING = """
SELECT h.model, h.product, h.framework, h.status, h.condition, h.condition_zh, h.since, h.last_stated
FROM cell_history h JOIN model m ON m.id = h.model
WHERE h.feature = ? AND h.until IS NULL ORDER BY m.family, m.total_params, h.model, h.product, h.framework
"""
_GROUPS = {
    "training": ("Training", "训练方式"),
    "preference": ("Preference learning", "偏好学习"),
    "reinforcement-learning": ("Reinforcement learning", "强化学习"),
    "parallel": ("Parallelism", "并行"),
    "memory": ("Memory", "显存"),
    "attention": ("Attention", "注意力"),
    "data": ("Data", "数据"),
    "rollout": ("Rollout", "推理后端"),
    "backend": ("Training backend", "训练后端"),
}
_WORD = re.compile(r"[a-z_][a-z0-9_]*")


def pages(source: Source, keys: Keys) -> list[Page]:
    """The index of features, and one page each."""
    rows = source.rows(
        'SELECT id, "group" AS grouped, what_{l} AS what, aliases, implies FROM feature ORDER BY "group", id'
    )
    return [_index(source, rows), *(_page(source, keys, row) for row in rows)]


def group_name(source: Source, group: str) -> str:
    """The heading of a group of features."""
    return source.t(*_GROUPS[group])


def _index(source: Source, rows: list[dict[str, Any]]) -> Page:
    t = source.t
    page = Page("features/index", "index", t("Features", "特性"), "index", {"features": rows})
    for group in dict.fromkeys(row["grouped"] for row in rows):
        page.blocks.append(Heading(group_name(source, group), group))
        body: list[list[Line]] = [
            [source.feature(row["id"]), Code(row["id"]), row["what"]] for row in rows if row["grouped"] == group
        ]
        head = [t("Feature", "特性"), t("Id", "标识"), t("What it does", "作用")]
        page.blocks.append(
            Table(head, body, t(f"Features: {group_name(source, group)}", f"特性：{group_name(source, group)}"))
        )
    return page


def _page(source: Source, keys: Keys, row: dict[str, Any]) -> Page:
    t = source.t
    identifier = row["id"]
    data: dict[str, Any] = {"feature": identifier, **{name: row[name] for name in ("what", "aliases", "implies")}}
    page = Page(f"features/{identifier}", "feature", source.features[identifier], "features/index", data)
    page.blocks.append(Paragraph(row["what"], "lead"))
    about: list[Line] = [[t("Id: ", "标识："), Code(identifier)]]
    if row["aliases"]:
        about.append([t("also: ", "别名："), *joined([Code(each) for each in row["aliases"]])])
    if row["implies"]:
        about.append([t("includes: ", "包含："), *source.features_of(row["implies"])])
    page.blocks.append(Paragraph(joined(about, t("; ", "；"))))
    page.blocks += _asking(source, keys, identifier, data)
    page.blocks += _columns(source, identifier, data)
    page.blocks += _models(source, identifier, data)
    return page


def _asking(source: Source, keys: Keys, feature: str, data: dict[str, Any]) -> list[Block]:
    """When a job of each framework asks for the feature, and by which keys."""
    t = source.t
    caption = t("What asks for it in a job", "作业中如何启用")
    blocks: list[Block] = [Heading(caption, "keys")]
    data["asked_by"] = []
    rows: list[list[Line]] = []
    for framework, when in keys.asking(feature):
        named = keys.of_facts(framework, _WORD.findall(when))
        data["asked_by"].append({"framework": framework, "when": when, "keys": [key["key"] for key in named]})
        written = joined([[Code(key["key"]), text_of(source, key)] for key in named])
        rows.append(
            [source.framework(framework), Code(when), written or t("derived from other facts", "由其他事实推导")]
        )
    if not rows:
        return [
            *blocks,
            Paragraph(
                t(
                    "No framework here has a key for it: it is known from tables alone.",
                    "此处的框架均没有对应的参数：仅见于表格。",
                )
            ),
        ]
    head = [t("Framework", "框架"), t("Asked for when", "启用条件"), t("Keys", "参数")]
    return [*blocks, Table(head, rows, caption)]


def _columns(source: Source, feature: str, data: dict[str, Any]) -> list[Block]:
    t = source.t
    rows = source.rows(
        "SELECT c.product, c.release, c.framework, c.heading_{l} AS heading FROM table_column c JOIN release r USING (product, release) "
        "WHERE list_contains(c.features, ?) QUALIFY row_number() OVER (PARTITION BY c.product, c.framework, c.heading_{l} ORDER BY r.ordinal DESC) = 1 "
        "ORDER BY c.product, c.framework, r.ordinal DESC, heading",
        feature,
    )
    data["columns"] = rows
    if not rows:
        return []
    caption = t("Columns that speak of it", "涉及该特性的表列")
    body: list[list[Line]] = [
        [
            Link(f"{source.products[row['product']]} {row['release']}", f"matrix/{row['product']}-{row['release']}"),
            source.framework(row["framework"]),
            row["heading"],
        ]
        for row in rows
    ]
    return [
        Heading(caption, "columns"),
        Table(
            [t("Newest release with it", "最近出现的版本"), t("Framework", "框架"), t("Column", "列")], body, caption
        ),
    ]


def _models(source: Source, feature: str, data: dict[str, Any]) -> list[Block]:
    t = source.t
    standing = source.rows(_STANDING, feature)
    data["standing"] = standing
    caption = t("What is claimed of it now", "当前声明")
    if not standing:
        return [Heading(caption, "models"), Paragraph(t("No source seen says anything.", "未见任何来源说明。"))]
    columns = list(dict.fromkeys(sorted((row["product"], row["framework"]) for row in standing)))
    heads = [
        source.frameworks[framework]
        if source.products[product] == source.frameworks[framework]
        else f"{source.products[product]}: {source.frameworks[framework]}"
        for product, framework in columns
    ]
    found = {(row["model"], row["product"], row["framework"]): row for row in standing}
    rows: list[list[Line]] = []
    for model in dict.fromkeys(row["model"] for row in standing):
        cells: list[Line] = [source.model(model)]
        for column in columns:
            row = found.get((model, *column))
            if row is None:
                cells.append(source.status("unknown"))
                continue
            sign = source.status(row["status"])
            cells.append([sign, f" {row['since']}"] if row["status"] in GRANTED else sign)
        rows.append(cells)
    counts = {status: sum(row["status"] == status for row in standing) for status in SIGNS}
    said = ", ".join(
        f"{SIGNS[status]} {source.status_words(status)}: {count}" for status, count in counts.items() if count
    )
    return [
        Heading(caption, "models"),
        Paragraph(t(f"Since which release it stands so. {said}.", f"标注自哪个版本起如此。{said}。")),
        Table([t("Model", "模型"), *heads], rows, caption),
    ]
