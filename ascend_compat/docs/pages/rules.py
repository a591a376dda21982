"""Rule pages, one a framework and topic; and a page for each code of a finding."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ascend_compat.check.pages import page as explained
from ascend_compat.docs.page import Bullets, Code, Heading, Link, Page, Paragraph, Preformatted, Strong, Table, joined

if TYPE_CHECKING:
    from ascend_compat.docs.keys import Keys
    from ascend_compat.docs.page import Block, Line
    from ascend_compat.docs.source import Source

_RULES = """
SELECT id, framework, topic, severity, when_sql, requires_sql, message_{l} AS message, why_{l} AS why, ways_out, since, until,
       source, sources, rests_on, examples, candidates
FROM rule ORDER BY framework, topic, id, since_ordinal NULLS FIRST
"""


def pages(source: Source, keys: Keys) -> list[Page]:
    """The index of rules and a page a framework and topic."""
    rows = source.rows(_RULES)
    topics = list(dict.fromkeys((row["framework"], row["topic"]) for row in rows))
    made = [_index(source, rows, topics)]
    for framework, topic in topics:
        made.append(
            _topic(
                source,
                keys,
                framework,
                topic,
                [row for row in rows if (row["framework"], row["topic"]) == (framework, topic)],
            )
        )
    return made


def codes(source: Source) -> list[Page]:
    """The index of codes and a page each."""
    t = source.t
    rows = source.rows(
        "SELECT code, name, severity, message_{l} AS message, why_{l} AS why, fix_{l} AS fix FROM code ORDER BY code"
    )
    index = Page("codes/index", "index", t("Codes of findings", "诊断代码"), "index", {"codes": rows})
    index.blocks.append(
        Paragraph(
            [
                t("Rules are their own codes: see ", "规则以自身编号为代码：见"),
                Link(t("Rules", "规则"), "rules/index"),
                t(".", "。"),
            ]
        )
    )
    head = [t("Code", "代码"), t("Name", "名称"), t("Severity", "级别"), t("Message", "消息")]
    body: list[list[Line]] = [
        [Link(row["code"], f"codes/{row['code']}"), row["name"], row["severity"], row["message"]] for row in rows
    ]
    index.blocks.append(Table(head, body, t("Codes of findings", "诊断代码")))
    made = [index]
    for row in rows:
        text = explained(source.con, row["code"], source.language) or ""
        page = Page(
            f"codes/{row['code']}", "code", f"{row['code']} {row['name']}", "codes/index", {**row, "text": text}
        )
        page.blocks += [
            Paragraph(row["message"], "lead"),
            Heading(t("Why", "原因"), "why"),
            Paragraph(row["why"]),
            Heading(t("What to do", "处理办法"), "fix"),
            Paragraph(row["fix"]),
            Heading(t("On the command line", "命令行输出"), "explain"),
            Preformatted(f"$ ascend-compat explain {row['code']}\n{text}"),
        ]
        made.append(page)
    return made


def _index(source: Source, rows: list[dict[str, Any]], topics: list[tuple[str, str]]) -> Page:
    t = source.t
    first = {row["id"]: row for row in reversed(rows)}
    ordered = [first[each] for each in dict.fromkeys(row["id"] for row in rows)]
    kept = ("id", "framework", "topic", "severity", "message", "rests_on")
    data = {"rules": [{name: row[name] for name in kept} for row in ordered]}
    page = Page("rules/index", "index", t("Rules", "规则"), "index", data)
    proved = sum(row["rests_on"] == "proof" for row in ordered)
    page.blocks.append(
        Paragraph(
            t(
                f"{len(ordered)} constraints no table holds; {proved} of them were proved by running the framework's own code.",
                f"共 {len(ordered)} 条表格中没有的约束，其中 {proved} 条已用框架自身代码运行验证。",
            ),
            "lead",
        )
    )
    for framework in dict.fromkeys(framework for framework, _ in topics):
        own = [row for row in ordered if row["framework"] == framework]
        title = source.frameworks.get(framework) or source.t("Software stack", "软件栈")
        page.blocks.append(Heading(f"{title} ({len(own)})", framework))
        body: list[list[Line]] = [
            [Link(row["id"], f"rules/{framework}-{row['topic']}", row["id"]), row["topic"], row["message"]]
            for row in own
        ]
        page.blocks.append(Table([t("Rule", "规则"), t("Topic", "主题"), t("Message", "消息")], body, title))
    return page


def _topic(source: Source, keys: Keys, framework: str, topic: str, rows: list[dict[str, Any]]) -> Page:
    t = source.t
    name = source.frameworks.get(framework) or t("Software stack", "软件栈")
    ids = list(dict.fromkeys(row["id"] for row in rows))
    data: dict[str, Any] = {"framework": framework, "topic": topic, "rules": []}
    page = Page(f"rules/{framework}-{topic}", "rules", t(f"{name}: {topic}", f"{name}：{topic}"), "rules/index", data)
    page.blocks.append(Paragraph(t(f"{len(ids)} rules.", f"共 {len(ids)} 条规则。")))
    for rule in ids:
        windows = [row for row in rows if row["id"] == rule]
        page.blocks += _rule(source, keys, windows)
        data["rules"].append(
            {
                **{each: windows[0][each] for each in ("id", "severity", "message", "why", "rests_on", "candidates")},
                "windows": [
                    {each: row[each] for each in ("since", "until", "when_sql", "requires_sql")} for row in windows
                ],
                **{
                    each: json.loads(windows[0][each] or "null")
                    for each in ("source", "sources", "ways_out", "examples")
                },
            }
        )
    return page


def _rule(source: Source, keys: Keys, windows: list[dict[str, Any]]) -> list[Block]:
    t = source.t
    row = windows[0]
    severity = t("impossible", "不可能") if row["severity"] == "impossible" else t("warning", "警告")
    blocks: list[Block] = [Heading(row["id"], row["id"]), Paragraph([Strong(severity), t(": ", "："), row["message"]])]
    if row["why"]:
        blocks.append(Paragraph(row["why"]))
    body: list[list[Line]] = []
    for window in windows:
        since, until = window["since"], window["until"]
        span = t("all versions", "全部版本") if not since and not until else f"{since or '…'} – {until or '…'}"
        body.append(
            [
                span,
                Code(window["when_sql"]) if window["when_sql"] else t("always", "总是"),
                Code(window["requires_sql"]),
            ]
        )
    blocks.append(
        Table(
            [t("Versions", "版本"), t("Applies when", "适用条件"), t("Must hold", "必须满足")],
            body,
            t(f"Formula of {row['id']}", f"{row['id']} 的公式"),
        )
    )
    items: list[Line] = []
    named = _asked(keys, row)
    if named:
        items.append([t("Keys: ", "参数："), *joined([Code(each) for each in named])])
    ways = _ways(source, row)
    if ways:
        items.append([t("Ways out: ", "可行办法："), *joined(ways, t("; ", "；"))])
    examples = json.loads(row["examples"] or "{}")
    for kind, title in (("pass", t("Passes: ", "通过：")), ("fail", t("Breaks: ", "违反："))):
        if examples.get(kind):
            items.append([title, *joined([Code(_example(each)) for each in examples[kind][:2]], t("; ", "；"))])
    basis = (
        t("the framework's own code was run with it", "已用框架自身代码运行验证")
        if row["rests_on"] == "proof"
        else t("reading the source; not run", "仅阅读源码，未运行")
    )
    items.append([t("Source: ", "来源："), source.place(row["source"]), t(f" ({basis})", f"（{basis}）")])
    return [*blocks, Bullets(items)]


def _asked(keys: Keys, row: dict[str, Any]) -> list[str]:
    """Keys of the framework that set the facts its formula names, the first twelve."""
    import re

    if row["framework"] not in keys.keys:
        return []
    words = re.findall(r"[a-z_][a-z0-9_]*", f"{row['when_sql'] or ''} {row['requires_sql']}")
    found = [key["key"] for key in keys.keys[row["framework"]] if key.get("fact") in words and not key.get("alias_of")]
    return list(dict.fromkeys(found))[:12]


def _example(example: dict[str, Any]) -> str:
    if set(example) == {"job"} and isinstance(example["job"], str):
        return str(example["job"])
    return json.dumps(example, ensure_ascii=False)


def _ways(source: Source, row: dict[str, Any]) -> list[Line]:
    ways: list[Line] = []
    for way in json.loads(row["ways_out"] or "[]"):
        if "say" in way:
            ways.append(way["say"][source.language])
        elif "change" in way:
            ways.append([source.t("another value of ", "改变 "), Code(str(way["change"]))])
        elif "set" in way:
            ways.append(Code(", ".join(f"{name} = {value}" for name, value in way["set"].items())))
    return ways
