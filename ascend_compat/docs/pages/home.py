"""The first page: where everything is, and how much of it there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascend_compat.docs.page import Bullets, Code, Heading, Link, Page, Paragraph, Table

if TYPE_CHECKING:
    from ascend_compat.docs.page import Line
    from ascend_compat.docs.source import Source

SECTIONS = (
    "explorer",
    "matrix",
    "models",
    "features",
    "frameworks",
    "rules",
    "codes",
    "releases",
    "stacks",
    "recipes",
    "health",
)
COUNTS = """
SELECT (SELECT count(*) FROM model) AS models, (SELECT count(*) FROM feature) AS features, (SELECT count(*) FROM framework) AS frameworks,
       (SELECT count(DISTINCT id) FROM rule) AS rules, (SELECT count(*) FROM code) AS codes, (SELECT count(*) FROM release) AS releases,
       (SELECT count(*) FROM stack_table WHERE kind = 'stack') AS stacks, (SELECT count(*) FROM recipe) AS recipes,
       (SELECT count(DISTINCT (product, release)) FROM cell) AS matrix, (SELECT count(*) FROM claim WHERE status <> 'unknown') AS claims,
       (SELECT count(*) FROM cell_state WHERE state = 'verified') AS verified
"""


def pages(source: Source) -> list[Page]:
    """The first page."""
    t = source.t
    counts = source.rows(COUNTS)[0]
    newest = source.rows(
        "SELECT c.product, c.release FROM cell c JOIN release r USING (product, release) GROUP BY c.product, c.release, r.ordinal "
        "QUALIFY row_number() OVER (PARTITION BY c.product ORDER BY r.ordinal DESC) = 1 ORDER BY c.product"
    )
    page = Page(
        "index",
        "home",
        t("Training on Ascend NPUs: what is supported", "昇腾 NPU 训练支持情况"),
        "",
        {"counts": counts, "newest": newest},
    )
    page.blocks.append(
        Paragraph(
            t(
                f"Which model trains with which framework and feature, in which release: {counts['claims']:,} stated claims, {counts['rules']} rules. "
                f"{counts['verified']} claims are verified on an NPU; every other one says what its source says.",
                f"哪个版本中，哪个模型可用哪个框架与特性训练：共 {counts['claims']:,} 条已声明的支持信息与 {counts['rules']} 条规则。"
                f"其中 {counts['verified']} 条已在 NPU 上验证；其余仅为来源所述。",
            ),
            "lead",
        )
    )
    about = {
        "explorer": (
            t("Explorer", "矩阵浏览器"),
            t("filter and compare the whole matrix on one page", "在一页内筛选、对比整个矩阵"),
        ),
        "matrix": (
            t("Matrices", "支持矩阵"),
            t("one table a release, as its own page has it", "每个版本一张表，与其原页面一致"),
        ),
        "models": (
            t("Models", "模型"),
            t("facts, support, legal layouts, minimum devices", "结构信息、支持情况、合法布局、最小卡数"),
        ),
        "features": (t("Features", "特性"), t("what each does, and which keys ask for it", "各特性的作用与启用参数")),
        "frameworks": (t("Frameworks", "框架"), t("versions, features, keys", "版本、特性、参数")),
        "rules": (t("Rules", "规则"), t("constraints no table holds", "表格之外的约束")),
        "codes": (t("Codes", "诊断代码"), t("what each finding means", "各诊断的含义")),
        "releases": (t("Releases", "版本"), t("what changed from one to the next", "版本间的变更")),
        "stacks": (t("Software and hardware", "软件栈与硬件"), t("which versions go together", "版本配套关系")),
        "recipes": (
            t("Recipes and evidence", "配方与证据"),
            t("what can be run, and what runs showed", "可运行的配方与运行结果"),
        ),
        "health": (t("Health", "健康度"), t("how much is verified", "验证程度")),
    }
    rows: list[list[Line]] = [
        [Link(about[name][0], f"{name}/index"), about[name][1], f"{counts[name]:,}" if name in counts else ""]
        for name in SECTIONS
    ]
    page.blocks.append(
        Table(
            [t("Part", "栏目"), t("What is in it", "内容"), t("Entries", "条目")],
            rows,
            t("Parts of this site", "本站栏目"),
        )
    )
    page.blocks.append(Heading(t("Newest matrices", "最新矩阵"), "newest"))
    page.blocks.append(
        Bullets(
            [
                Link(f"{source.products[row['product']]} {row['release']}", f"matrix/{row['product']}-{row['release']}")
                for row in newest
            ]
        )
    )
    page.blocks.append(Heading(t("Ask on the command line", "命令行"), "command-line"))
    page.blocks.append(
        Bullets(
            [
                [Code("ascend-compat check job.sh"), t(": will this job run?", "：该作业能否运行？")],
                [
                    Code("ascend-compat plan qwen2.5-7b --framework mindspeed-llm --devices 8"),
                    t(": legal layouts", "：合法布局"),
                ],
                [Code("ascend-compat explain ML-PAR12"), t(": the page of a code", "：诊断代码说明")],
            ]
        )
    )
    return [page]
