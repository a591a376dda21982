"""Health: how many claims stand on which rung, by release and framework."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ascend_compat.docs.drawing import Curve, curves, heat
from ascend_compat.docs.page import Heading, Link, Page, Paragraph, Picture, Table
from ascend_compat.docs.source import RUNGS

if TYPE_CHECKING:
    from ascend_compat.docs.page import Line
    from ascend_compat.docs.source import Source

COUNTS = """
SELECT s.product, s.release, s.framework, r.date, s.state, count(*) AS cells
FROM cell_state s JOIN release r ON r.product = s.product AND r.release = s.release
GROUP BY s.product, s.release, s.framework, r.date, r.ordinal, s.state ORDER BY s.product, r.ordinal, s.framework, s.state
"""
_OPEN = """
SELECT product, release, framework, count(*) FILTER (status = 'unknown') AS unknown, count(*) FILTER (status = 'not-applicable') AS not_applicable
FROM claim GROUP BY ALL
"""


def pages(source: Source) -> list[Page]:
    """The one page of health."""
    t = source.t
    counted: dict[tuple[str, str, str], dict[str, Any]] = {}
    for row in source.rows(COUNTS):
        key = (row["product"], row["release"], row["framework"])
        entry = counted.setdefault(
            key,
            {"product": key[0], "release": key[1], "framework": key[2], "date": row["date"], **dict.fromkeys(RUNGS, 0)},
        )
        entry[row["state"]] = row["cells"]
    for row in source.rows(_OPEN):
        key = (row["product"], row["release"], row["framework"])
        if key in counted:
            counted[key] |= {"unknown": row["unknown"], "not_applicable": row["not_applicable"]}
    rows = list(counted.values())
    total = {rung: sum(row[rung] for row in rows) for rung in RUNGS}
    page = Page(
        "health/index",
        "health",
        t("Health of the matrix", "矩阵健康度"),
        "index",
        {"total": total, "rows": rows},
        wide=True,
    )
    words = "; ".join(f"{source.rung_words(rung)}: {count}" for rung, count in total.items())
    page.blocks.append(
        Paragraph(
            t(
                f"Claims by rung: {words}. A claim is one feature of one model in one framework and release.",
                f"各证据等级的声明数：{words}。一条声明指某版本某框架中某模型的一个特性。",
            ),
            "lead",
        )
    )
    head = [
        t("Release", "版本"),
        t("Framework", "框架"),
        *(source.rung_words(rung) for rung in RUNGS),
        t("unknown", "未知"),
        t("not applicable", "不适用"),
    ]
    grounds = zip(
        RUNGS, (t("grey", "灰色"), t("blue", "蓝色"), t("green", "绿色"), t("red", "红色"), t("yellow", "黄色"))
    )
    legend = t(", ", "，").join(f"{ground}: {source.rung_words(rung)}" for rung, ground in grounds)
    for product in dict.fromkeys(row["product"] for row in rows):
        own = [row for row in rows if row["product"] == product]
        releases = list(dict.fromkeys(row["release"] for row in own))
        frameworks = sorted({row["framework"] for row in own})
        title = source.products[product]
        found = {(row["release"], row["framework"]): row for row in own}
        drawn = [
            (source.frameworks[each], [_heat(found.get((release, each))) for release in releases])
            for each in frameworks
        ]
        page.blocks.append(Heading(title, product))
        page.blocks.append(
            Picture(
                heat(releases, drawn),
                t(
                    f"The best rung of each release and framework and its number of claims; {legend}. The table has all figures.",
                    f"各版本各框架的最高证据等级及其声明数；{legend}。完整数字见表。",
                ),
            )
        )
        lines = [
            Curve(
                source.rung_words(rung),
                [float(sum(row[rung] for row in own if row["release"] == release)) for release in releases],
            )
            for rung in RUNGS
            if any(row[rung] for row in own)
        ]
        page.blocks.append(
            Picture(
                curves(releases, lines, t("claims", "声明数")),
                t("Claims on each rung from release to release.", "各版本各证据等级的声明数变化。"),
            )
        )
        body: list[list[Line]] = [
            [
                Link(row["release"], f"releases/{product}-{row['release']}"),
                source.framework(row["framework"]),
                *(str(row[rung]) for rung in RUNGS),
                str(row["unknown"]),
                str(row["not_applicable"]),
            ]
            for row in own
        ]
        page.blocks.append(Table(head, body, title))
    return [page]


def _heat(row: dict[str, Any] | None) -> tuple[str, str] | None:
    """The class and the text of a release and framework: a contradiction first, then the highest rung reached."""
    if row is None:
        return None
    for rung in ("contradicted", "verified", "smoke", "stale"):
        if row[rung]:
            return rung, str(row[rung])
    return "claimed", str(row["claimed"])
