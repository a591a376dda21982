"""Model pages: what it is, what supports it since when, which layouts are legal, what blocks what is missing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ascend_compat.docs.page import Bullets, Code, Heading, Link, Page, Paragraph, Table, joined
from ascend_compat.docs.source import GRANTED

if TYPE_CHECKING:
    from ascend_compat.docs.layouts import Layouts
    from ascend_compat.docs.page import Block, Line
    from ascend_compat.docs.rungs import Rungs
    from ascend_compat.docs.source import Source

_SKIPPED = {
    *("id", "name_en", "name_zh", "family", "series_en", "series_zh", "body", "path", "sources", "hf_ids", "aliases"),
    *("variant_of", "base_model", "confidence", "license"),
}
_MEANING = {
    "type": ("Dense, or a mixture of experts (moe)", "稠密（dense）或混合专家（moe）"),
    "params": ("Parameters as published", "公布的参数量"),
    "attention": ("Kind of attention", "注意力类型"),
    "dtype": ("Number format of the published weights", "发布权重的数据类型"),
    "shared_expert_intermediate_size": ("Feed-forward width of the shared expert", "共享专家的前馈层宽度"),
    "moe_layer_freq": ("Every how many layers one has experts", "每隔多少层有一个专家层"),
    "n_group": ("Groups of experts", "专家分组数"),
    "topk_group": ("Groups a token is routed to", "每个 token 路由到的分组数"),
    "vision_num_layers": ("Layers of the vision tower", "视觉塔层数"),
    "architectures": ("Model classes in config.json", "config.json 中的模型类"),
}
_CLAIMS = """
SELECT h.product, h.framework, h.feature, h."column", h.status, h.condition, h.condition_zh, h.since, s.date AS since_date,
       h.until, h.last_stated, c.source, l.date AS stated_date
FROM cell_history h
JOIN release s ON s.product = h.product AND s.release = h.since
JOIN release l ON l.product = h.product AND l.release = h.last_stated
JOIN feature f ON f.id = h.feature
LEFT JOIN claim c ON c.product = h.product AND c.release = h.last_stated AND c.model = h.model AND c.framework = h.framework
     AND c.feature = h.feature
WHERE h.model = ?
ORDER BY h.product, h.framework, f."group", h.feature, s.ordinal
"""


def pages(source: Source, rungs: Rungs, layouts: Layouts) -> list[Page]:
    """The index of models, and one page each."""
    models = source.rows(
        "SELECT m.*, (SELECT count(DISTINCT framework) FROM claim c WHERE c.model = m.id AND c.status IN ('supported', 'partial')) AS granted "
        "FROM model m ORDER BY family, total_params, id"
    )
    return [_index(source, models), *(_page(source, rungs, layouts, row) for row in models)]


def _index(source: Source, models: list[dict[str, Any]]) -> Page:
    t = source.t
    kept = ("id", "family", "type", "modality", "params", "model_type", "num_layers", "granted")
    page = Page(
        "models/index",
        "index",
        t("Models", "模型"),
        "index",
        {"models": [{name: row[name] for name in kept} for row in models]},
    )
    head = [
        t("Model", "模型"),
        t("Type", "类型"),
        t("Parameters", "参数量"),
        t("Layers", "层数"),
        t("Frameworks that support it", "支持它的框架数"),
    ]
    for family in dict.fromkeys(row["family"] for row in models):
        page.blocks.append(Heading(family, family))
        rows: list[list[Line]] = [
            [
                source.model(row["id"]),
                row["type"] or "",
                row["params"] or "",
                str(row["num_layers"] or ""),
                str(row["granted"]),
            ]
            for row in models
            if row["family"] == family
        ]
        page.blocks.append(Table(head, rows, t(f"Models of {family}", f"{family} 模型")))
    return page


def _page(source: Source, rungs: Rungs, layouts: Layouts, row: dict[str, Any]) -> Page:
    identifier = row["id"]
    facts = {
        name: value
        for name, value in row.items()
        if name not in _SKIPPED and name != "granted" and value not in (None, [])
    }
    claims = source.rows(_CLAIMS, identifier)
    for claim in claims:
        rung = rungs.of(claim["product"], claim["last_stated"], claim["framework"], identifier, claim["feature"])
        claim["rung"] = rung.state if claim["status"] not in ("unknown", "not-applicable") else None
    data: dict[str, Any] = {
        "model": identifier,
        "names": {"en": row["name_en"], "zh": row["name_zh"]},
        "hf_ids": row["hf_ids"],
        "aliases": row["aliases"],
        "facts": facts,
        "confidence": row["confidence"],
        "sources": json.loads(row["sources"] or "[]"),
        "claims": [
            {
                **{name: value for name, value in claim.items() if name != "source"},
                "source": json.loads(claim["source"] or "null"),
            }
            for claim in claims
        ],
    }
    page = Page(f"models/{identifier}", "model", source.models[identifier], "models/index", data)
    page.blocks += _about(source, row, facts)
    page.blocks += _support(source, claims)
    page.blocks += _layouts(source, layouts, identifier, data)
    page.blocks += _minimum(source, identifier, data)
    page.blocks += _evidence(source, identifier, claims, data)
    page.blocks += _missing(source, claims, data)
    return page


def _about(source: Source, row: dict[str, Any], facts: dict[str, Any]) -> list[Block]:
    t = source.t
    named: list[Line] = [Code(each) for each in dict.fromkeys([*(row["hf_ids"] or ()), *(row["aliases"] or ())])]
    blocks: list[Block] = []
    if row["variant_of"]:
        other = source.model(row["variant_of"])
        blocks.append(
            Paragraph(
                [
                    t("Has the tensors of ", "结构与 "),
                    other,
                    t("; tables answer for that one.", " 相同；支持情况以其为准。"),
                ],
                "note",
            )
        )
    blocks.append(Heading(t("Names", "名称"), "names"))
    blocks.append(Paragraph(joined([Code(row["id"]), *named])))
    words = dict(source.con.execute(f"SELECT name, {source.language} FROM fact").fetchall())
    words = {**{name: t(*pair) for name, pair in _MEANING.items()}, **words}
    body: list[list[Line]] = [[Code(name), words.get(name) or "", _value(value)] for name, value in facts.items()]
    caption = t("Architecture", "结构信息")
    blocks += [
        Heading(caption, "facts"),
        Table([t("Fact", "字段"), t("Meaning", "含义"), t("Value", "取值")], body, caption),
    ]
    places = [source.place(json.dumps(place)) for place in json.loads(row["sources"] or "[]")]
    if places:
        sure = {"high": t("several sources agree", "多个来源一致")}.get(
            row["confidence"] or "", row["confidence"] or ""
        )
        blocks.append(
            Paragraph([t("Sources", "来源") + (f" ({sure})" if sure else "") + t(": ", "："), *joined(places)])
        )
    return blocks


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ", ".join(str(each) for each in value)
    return f"{value:,}" if isinstance(value, int) and value >= 1_000_000 else str(value)


def _support(source: Source, claims: list[dict[str, Any]]) -> list[Block]:
    t = source.t
    blocks: list[Block] = [Heading(t("Support", "支持情况"), "support")]
    if not claims:
        return [
            *blocks,
            Paragraph(t("No source seen says anything of this model.", "未见任何来源说明该模型的支持情况。")),
        ]
    head = [
        t("Feature", "特性"),
        t("Status", "状态"),
        t("Condition", "条件"),
        t("Since", "起始版本"),
        t("Until", "终止版本"),
        t("Last stated", "最近声明"),
        t("Evidence", "证据"),
        t("Source", "来源"),
    ]
    pairs = list(dict.fromkeys((claim["product"], claim["framework"]) for claim in claims))
    for product, framework in pairs:
        own = [claim for claim in claims if (claim["product"], claim["framework"]) == (product, framework)]
        name = f"support-{product}-{framework}"
        places = list(dict.fromkeys(claim["source"] for claim in own if claim["source"]))
        rows: list[list[Line]] = [
            [
                source.feature(claim["feature"]),
                source.spelled(claim["status"]),
                source.condition(claim) or "",
                _release(product, claim["since"]),
                _release(product, claim["until"]) if claim["until"] else t("now", "至今"),
                _release(product, claim["last_stated"]),
                source.rung_words(claim["rung"]) if claim["rung"] else "",
                _numbered(source, places, claim["source"], name),
            ]
            for claim in own
        ]
        title = source.frameworks[framework]
        if source.products[product] != title:
            title = t(f"{title} in {source.products[product]}", f"{source.products[product]} 中的 {title}")
        blocks += [Heading(title, name, 3), Table(head, rows, title)]
        if places:
            listed: list[list[Line]] = [[str(number), source.place(place)] for number, place in enumerate(places, 1)]
            anchors = [f"{name}-{number}" for number in range(1, len(places) + 1)]
            blocks.append(
                Table(
                    [t("No.", "编号"), t("Source", "来源")], listed, t(f"Sources: {title}", f"来源：{title}"), anchors
                )
            )
    return blocks


def _numbered(source: Source, places: list[str], place: str | None, name: str) -> Line:
    """A source as its number in the list below the table."""
    if not place:
        return source.place(place)
    number = places.index(place) + 1
    return Link(str(number), "", f"{name}-{number}")


def _release(product: str, release: str) -> Link:
    return Link(release, f"releases/{product}-{release}")


def _layouts(source: Source, layouts: Layouts, model: str, data: dict[str, Any]) -> list[Block]:
    t = source.t
    blocks: list[Block] = [
        Heading(t("Legal parallel sizes", "合法的并行规模"), "layouts"),
        Paragraph(
            t(
                "By the rules and the least memory for weights, gradients and optimizer state; best first, the first three shown. "
                "None of it was run on an NPU. Other methods, lengths and versions: ",
                "依据规则，以及权重、梯度与优化器状态所需的最小显存；按推荐顺序列出前三种。均未在 NPU 上运行。其他训练方法、序列长度与版本请用：",
            )
            if layouts.of(model)
            else t(
                "No framework with a job template is known to support it. To try one: ",
                "尚无带作业模板的框架声明支持该模型。可自行尝试：",
            )
        ),
        Paragraph(Code(f"ascend-compat plan {model} --framework mindspeed-llm --devices 8")),
    ]
    data["layouts"] = []
    head = [
        t("Devices", "卡数"),
        t("Legal layouts", "合法布局数"),
        t("First of them", "推荐布局"),
        t("What refuses the others", "其余被拒原因"),
    ]
    for table in layouts.of(model):
        title = f"{source.frameworks[table.framework]} {table.version} ({table.method})"
        rows: list[list[Line]] = []
        for entry in table.entries:
            refused = joined([_rule(source, layouts, rule) for rule in entry.refused])
            rows.append([str(entry.devices), f"{entry.legal} / {entry.tried}", "; ".join(entry.shown), refused])
            record = {"framework": table.framework, "version": table.version, "method": table.method}
            data["layouts"].append({**record, **entry.record()})
        blocks += [Heading(title, f"layouts-{table.framework}", 3), Table(head, rows, title)]
    return blocks


def _rule(source: Source, layouts: Layouts, rule: str) -> Line:
    page = layouts.page_of(rule)
    return Link(rule, page, rule) if page else source.t("memory", "显存不足")


def _minimum(source: Source, model: str, data: dict[str, Any]) -> list[Block]:
    t = source.t
    rows = source.rows(
        "SELECT m.product, m.release, m.framework, m.method, m.seq_length, m.said, m.snt9b, m.snt9b23, m.source FROM minimum_devices m "
        "JOIN release r USING (product, release) WHERE m.model = ? ORDER BY m.product, r.ordinal, m.framework, m.method, m.seq_length, m.source",
        model,
    )
    data["minimum_devices"] = [{**row, "source": json.loads(row["source"])} for row in rows]
    caption = t("Minimum devices", "最小卡数")
    blocks: list[Block] = [Heading(caption, "minimum-devices")]
    if not rows:
        return [*blocks, Paragraph(t("No source seen publishes a figure.", "未见来源公布最小卡数。"))]
    head = [
        t("Release", "版本"),
        t("Framework", "框架"),
        t("Method", "方法"),
        t("Sequence length", "序列长度"),
        t("Snt9b cards", "Snt9b 卡数"),
        t("Snt9b23 dies", "Snt9b23 Die 数"),
        t("Source", "来源"),
    ]
    body: list[list[Line]] = [
        [
            source.release(row["product"], row["release"]),
            source.framework(row["framework"]),
            row["method"],
            str(row["seq_length"]),
            str(row["snt9b"] if row["snt9b"] is not None else "?"),
            str(row["snt9b23"] if row["snt9b23"] is not None else "?"),
            source.place(row["source"]),
        ]
        for row in rows
    ]
    return [*blocks, Table(head, body, caption)]


def _evidence(source: Source, model: str, claims: list[dict[str, Any]], data: dict[str, Any]) -> list[Block]:
    t = source.t
    runs = source.rows(
        "SELECT id, recipe, product, release, framework, device, devices, simulated, cpu, result, ended FROM evidence "
        "WHERE model = ? ORDER BY ended DESC, id, recipe",
        model,
    )
    pairs = {(claim["framework"], claim["feature"]) for claim in claims if claim["status"] in GRANTED}
    recipes = [
        row
        for row in source.rows(
            "SELECT name, framework, features, title_{l} AS title FROM recipe ORDER BY framework, name"
        )
        if any((row["framework"], feature) in pairs for feature in row["features"])
    ]
    data["evidence"], data["recipes"] = runs, [row["name"] for row in recipes]
    blocks: list[Block] = [Heading(t("Recipes and evidence", "配方与证据"), "evidence")]
    if runs:
        head = [
            t("Recipe", "配方"),
            t("Release", "版本"),
            t("Device", "设备"),
            t("Result", "结果"),
            t("Ended", "结束时间"),
        ]
        body: list[list[Line]] = [
            [
                Link(row["recipe"], f"recipes/{row['recipe']}"),
                source.release(row["product"], row["release"]),
                f"{row['devices']} x {row['device']}" + (t(" (simulated)", "（模拟）") if row["simulated"] else ""),
                row["result"],
                (row["ended"] or "")[:10],
            ]
            for row in runs
        ]
        blocks.append(Table(head, body, t("Runs", "运行记录")))
    else:
        blocks.append(
            Paragraph(
                t(
                    "No recorded run of this model: every claim above is a claim.",
                    "没有该模型的运行记录：以上声明均仅为声明。",
                )
            )
        )
    if recipes:
        blocks.append(Paragraph(t("Recipes that exercise what is claimed for it:", "可用于验证上述声明的配方：")))
        blocks.append(
            Bullets([[Link(row["name"], f"recipes/{row['name']}"), t(": ", "："), row["title"]] for row in recipes])
        )
    return blocks


def _missing(source: Source, claims: list[dict[str, Any]], data: dict[str, Any]) -> list[Block]:
    """Denied claims that still stand, with who else grants the same."""
    t = source.t
    standing = [claim for claim in claims if claim["until"] is None]
    granted: dict[str, list[tuple[str, str]]] = {}
    for claim in standing:
        if claim["status"] in GRANTED:
            granted.setdefault(claim["feature"], []).append((claim["framework"], claim["product"]))
    missing = [claim for claim in standing if claim["status"] in ("unsupported", "withdrawn")]
    caption = t("What is missing, and what blocks it", "缺失的支持及原因")
    data["missing"] = [
        {
            **{name: claim[name] for name in ("product", "framework", "feature", "status", "last_stated")},
            "granted_by": [
                {"framework": framework, "product": product} for framework, product in granted.get(claim["feature"], ())
            ],
        }
        for claim in missing
    ]
    blocks: list[Block] = [Heading(caption, "missing")]
    if not missing:
        return [
            *blocks,
            Paragraph(
                t(
                    "No release denies it anything. What no source states is unknown.",
                    "没有版本明确声明不支持。未说明者为未知。",
                )
            ),
        ]
    rows: list[list[Line]] = []
    for claim in missing:
        ways = joined(
            [
                [
                    source.framework(framework),
                    f" ({source.products[product]})"
                    if source.products[product] != source.frameworks[framework]
                    else "",
                ]
                for framework, product in granted.get(claim["feature"], ())
            ]
        )
        says = source.release(claim["product"], claim["last_stated"])
        rows.append(
            [
                source.feature(claim["feature"]),
                source.framework(claim["framework"]),
                [says, t(" says: ", "："), source.status_words(claim["status"])],
                ways or t("nobody seen", "未见"),
            ]
        )
    head = [t("Feature", "特性"), t("Framework", "框架"), t("Blocked by", "阻碍"), t("Available in", "可用于")]
    return [*blocks, Table(head, rows, caption)]
