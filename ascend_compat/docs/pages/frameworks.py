"""Framework pages: releases, features and what asks for them, rules by topic; and a page of all keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ascend_compat.docs.keys import Keys, text_of
from ascend_compat.docs.page import Code, Heading, Link, Page, Paragraph, Table, joined

if TYPE_CHECKING:
    from ascend_compat.docs.page import Block, Line
    from ascend_compat.docs.source import Source


def pages(source: Source, keys: Keys) -> list[Page]:
    """The index of frameworks, and for each its page and the page of its keys."""
    rows = source.rows("SELECT id, product, aliases FROM framework ORDER BY id")
    t = source.t
    index = Page("frameworks/index", "index", t("Frameworks", "框架"), "index", {"frameworks": rows})
    counts = dict(source.con.execute("SELECT framework, count(DISTINCT id) FROM rule GROUP BY 1").fetchall())
    head = [t("Framework", "框架"), t("Id", "标识"), t("Rules", "规则数"), t("Keys", "参数数")]
    body: list[list[Line]] = [
        [
            source.framework(row["id"]),
            Code(row["id"]),
            str(counts.get(row["id"], 0)),
            str(len(keys.keys.get(row["id"], ()))),
        ]
        for row in rows
    ]
    index.blocks.append(Table(head, body, t("Frameworks", "框架")))
    made = [index]
    for row in rows:
        made.append(_page(source, keys, row))
        if keys.keys.get(row["id"]):
            made.append(_keys(source, keys, row["id"]))
    return made


def _page(source: Source, keys: Keys, row: dict[str, Any]) -> Page:
    t = source.t
    identifier = row["id"]
    document = keys.documents.get(identifier, {})
    data: dict[str, Any] = {**row, "features": document.get("features") or [], "derived": document.get("derived") or []}
    page = Page(f"frameworks/{identifier}", "framework", source.frameworks[identifier], "frameworks/index", data)
    names = [Code(identifier), *(Code(each) for each in row["aliases"] or ())]
    page.blocks.append(Paragraph([t("Written as: ", "写法："), *joined(names)]))
    page.blocks += _releases(source, row, data)
    page.blocks += _features(source, keys, identifier)
    page.blocks += _rules(source, identifier, data)
    if keys.keys.get(identifier):
        count = len(keys.keys[identifier])
        page.blocks.append(Heading(t("Keys", "参数"), "keys"))
        page.blocks.append(
            Paragraph(Link(t(f"All {count} keys it knows", f"全部 {count} 个参数"), f"frameworks/{identifier}-keys"))
        )
    return page


def _releases(source: Source, row: dict[str, Any], data: dict[str, Any]) -> list[Block]:
    t = source.t
    rows = source.rows(
        "SELECT f.product, f.release, r.date, f.completeness, f.version, f.assumed FROM release_framework f JOIN release r USING (product, release) "
        "WHERE f.framework = ? ORDER BY f.product, r.ordinal DESC",
        row["id"],
    )
    data["releases"] = rows
    if not rows:
        return []
    said = {
        "full": t("whole table", "完整表格"),
        "partial": t("part of the table", "部分表格"),
        "none": t("no table seen", "未见表格"),
        "absent": t("not in the release", "该版本不含"),
    }
    caption = t("Releases", "版本")
    body: list[list[Line]] = []
    for each in rows:
        version = each["version"] or ""
        if version == "unknown":
            version = (
                t(f"unknown ({each['assumed']} assumed)", f"未知（按 {each['assumed']} 处理）")
                if each["assumed"]
                else t("unknown", "未知")
            )
        body.append(
            [source.release(each["product"], each["release"]), each["date"] or "", version, said[each["completeness"]]]
        )
    return [
        Heading(caption, "releases"),
        Table(
            [
                t("Release", "版本"),
                t("Date", "日期"),
                t("Version in it", "所含框架版本"),
                t("What is known", "已知内容"),
            ],
            body,
            caption,
        ),
    ]


def _features(source: Source, keys: Keys, identifier: str) -> list[Block]:
    t = source.t
    entries = keys.documents.get(identifier, {}).get("features") or []
    if not entries:
        return []
    caption = t("Features a job can ask for", "作业可启用的特性")
    body: list[list[Line]] = [[source.feature(entry["feature"]), Code(entry["when"])] for entry in entries]
    return [Heading(caption, "features"), Table([t("Feature", "特性"), t("Asked for when", "启用条件")], body, caption)]


def _rules(source: Source, identifier: str, data: dict[str, Any]) -> list[Block]:
    t = source.t
    rows = source.rows(
        "SELECT topic, count(DISTINCT id) AS rules FROM rule WHERE framework = ? GROUP BY topic ORDER BY topic",
        identifier,
    )
    data["rules"] = rows
    if not rows:
        return []
    caption = t("Rules by topic", "按主题的规则")
    body: list[list[Line]] = [
        [Link(row["topic"], f"rules/{identifier}-{row['topic']}"), str(row["rules"])] for row in rows
    ]
    return [Heading(caption, "rules"), Table([t("Topic", "主题"), t("Rules", "规则数")], body, caption)]


def _keys(source: Source, keys: Keys, identifier: str) -> Page:
    t = source.t
    listed = keys.keys[identifier]
    kept = ("key", "fact", "type", "default", "since", "until", "alias_of", "deprecated")
    data = {"framework": identifier, "keys": [{name: key[name] for name in kept if name in key} for key in listed]}
    title = t(f"{source.frameworks[identifier]}: keys", f"{source.frameworks[identifier]} 参数")
    page = Page(f"frameworks/{identifier}-keys", "keys", title, f"frameworks/{identifier}", data)
    body: list[list[Line]] = []
    for key in listed:
        default = "" if "default" not in key else str(key["default"])
        remark = text_of(source, key).strip(" ()")
        if key.get("alias_of"):
            remark = t(f"same as {key['alias_of']}", f"同 {key['alias_of']}")
        if key.get("deprecated"):
            remark = "; ".join(
                part for part in (remark, t(f"deprecated: {key['deprecated']}", f"已弃用：{key['deprecated']}")) if part
            )
        body.append(
            [Code(key["key"]), Code(key["fact"]) if key.get("fact") else "", key.get("type") or "", default, remark]
        )
    page.blocks.append(
        Table(
            [t("Key", "参数"), t("Fact", "事实"), t("Type", "类型"), t("Default", "默认值"), t("Remarks", "备注")],
            body,
            title,
        )
    )
    return page
