"""Recipes and evidence: what can be run, how, and what the last runs showed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ascend_compat.docs.drawing import Curve, curves
from ascend_compat.docs.page import Bullets, Code, Heading, Link, Page, Paragraph, Picture, Table, pieces

if TYPE_CHECKING:
    from ascend_compat.docs.page import Block, Line
    from ascend_compat.docs.source import Source

_RUNS = """
SELECT id, recipe, model, model_kind, product, release, framework, device, devices, simulated, cpu, framework_version, torch, torch_npu, cann,
       result, error_kind, error_reason, metrics, ended
FROM evidence ORDER BY recipe, ended DESC, id, model
"""


def pages(source: Source) -> list[Page]:
    """The page of all recipes, and one page each."""
    t = source.t
    recipes = source.rows(
        "SELECT name, framework, features, title_{l} AS title, digest, body FROM recipe ORDER BY framework, name"
    )
    runs = source.rows(_RUNS)
    index = Page(
        "recipes/index",
        "index",
        t("Recipes and evidence", "配方与证据"),
        "index",
        {"recipes": [row["name"] for row in recipes], "runs": len(runs)},
    )
    index.blocks.append(
        Paragraph(
            t(
                f"{len(recipes)} recipes, {len(runs)} recorded runs. A run on a CPU shows that the job is well-formed, never that an NPU runs it; skipped is not passed.",
                f"共 {len(recipes)} 个配方，{len(runs)} 条运行记录。CPU 运行只说明作业写法正确，绝不代表 NPU 能运行；跳过不等于通过。",
            ),
            "lead",
        )
    )
    head = [t("Recipe", "配方"), t("What it does", "内容"), t("Features", "特性"), t("Last run", "最近运行")]
    made = [index]
    for framework in dict.fromkeys(row["framework"] for row in recipes):
        body: list[list[Line]] = []
        for row in recipes:
            if row["framework"] != framework:
                continue
            own = [run for run in runs if run["recipe"] == row["name"]]
            last: Line = _result(source, own[0]) if own else t("never", "从未运行")
            body.append(
                [Link(row["name"], f"recipes/{row['name']}"), row["title"], source.features_of(row["features"]), last]
            )
            made.append(_page(source, row, own))
        title = source.frameworks.get(framework, framework)
        index.blocks += [Heading(title, framework), Table(head, body, title)]
    return made


def _result(source: Source, run: dict[str, Any]) -> str:
    where = f"{run['devices']} x {run['device']}" + (source.t(", simulated", "，模拟") if run["simulated"] else "")
    return f"{run['result']} ({where}, {(run['ended'] or '')[:10]})"


def _page(source: Source, row: dict[str, Any], runs: list[dict[str, Any]]) -> Page:
    t = source.t
    recipe = json.loads(row["body"])
    for run in runs:
        run["metrics"] = json.loads(run["metrics"] or "[]")
    data = {"recipe": recipe, "digest": row["digest"], "runs": runs}
    page = Page(f"recipes/{row['name']}", "recipe", row["name"], "recipes/index", data)
    page.blocks.append(Paragraph(row["title"], "lead"))
    model = recipe.get("model") or {}
    named: Line = (
        source.model(model["id"])
        if model.get("id") in source.models
        else str(model.get("id") or model.get("kind") or "?")
    )
    page.blocks.append(
        Bullets(
            [
                [
                    t("Framework: ", "框架："),
                    source.framework(row["framework"]) if row["framework"] in source.frameworks else row["framework"],
                ],
                [t("Features: ", "特性："), *source.features_of(row["features"])],
                [t("Model: ", "模型："), *pieces(named), f" ({model.get('kind', '?')})"],
                [t("Digest: ", "摘要："), Code(row["digest"])],
            ]
        )
    )
    settings = {**recipe.get("settings", {}), **recipe.get("facts", {})}
    caption = t("What the job says", "作业内容")
    body: list[list[Line]] = [[Code(name), Code(_text(value))] for name, value in sorted(settings.items())]
    page.blocks += [Heading(caption, "job"), Table([t("Name", "名称"), t("Value", "取值")], body, caption)]
    page.blocks += _how(source, row["name"])
    page.blocks += _expected(source, recipe)
    page.blocks += _runs(source, runs)
    return page


def _how(source: Source, name: str) -> list[Block]:
    t = source.t
    items: list[Line] = [
        [Code(f"ascend-compat recipe render {name}"), t(": the job file", "：生成作业文件")],
        [
            Code(f"ascend-compat run {name} --device npu"),
            t(": check it, run it, keep the evidence", "：检查、运行并保存证据"),
        ],
    ]
    return [Heading(t("How to run it", "运行方法"), "run"), Bullets(items)]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _expected(source: Source, recipe: dict[str, Any]) -> list[Block]:
    t = source.t
    caption = t("What must hold afterwards", "运行后必须满足")
    rows: list[list[Line]] = [
        [Code(name), Code(_text(value))]
        for name, value in {**recipe.get("expect", {}), **recipe.get("tolerance", {})}.items()
    ]
    return [Heading(caption, "expect"), Table([t("Name", "名称"), t("Value", "取值")], rows, caption)] if rows else []


def _numbers(run: dict[str, Any], name: str) -> list[float]:
    """The values of a metric of a run; what is no finite number is left out."""
    for metric in run["metrics"]:
        if metric["name"] == name:
            return [float(value) for value in metric["values"] if isinstance(value, (int, float))]
    return []


def _figures(run: dict[str, Any]) -> str:
    """Each metric with the mean of its values, and how many there are."""
    said = []
    for metric in run["metrics"]:
        values = _numbers(run, metric["name"])
        if values:
            many = f" ({len(values)})" if len(values) > 1 else ""
            said.append(f"{metric['name']} {sum(values) / len(values):.4g} {metric['unit']}{many}".replace("  ", " "))
    return "; ".join(said)


def _runs(source: Source, runs: list[dict[str, Any]]) -> list[Block]:
    t = source.t
    caption = t("Runs", "运行记录")
    if not runs:
        return [Heading(caption, "runs"), Paragraph(t("No run is recorded.", "没有运行记录。"))]
    head = [
        t("Ended", "结束时间"),
        t("Result", "结果"),
        t("Model", "模型"),
        t("Device", "设备"),
        t("Stack", "软件栈"),
        t("Release", "版本"),
        t("Figures (mean, number of values)", "指标（均值，取值个数）"),
    ]
    body: list[list[Line]] = []
    for run in runs:
        stack = ", ".join(
            f"{name} {run[name]}" for name in ("framework_version", "torch", "torch_npu", "cann") if run[name]
        )
        reason = f": {run['error_reason']}" if run["error_reason"] else ""
        where = f"{run['devices']} x {run['device']}" + (t(" (simulated)", "（模拟）") if run["simulated"] else "")
        model = f"{source.models.get(run['model'], run['model'])} ({run['model_kind']})"
        about: list[Line] = [model, where, stack, source.release(run["product"], run["release"]), _figures(run)]
        body.append([(run["ended"] or "")[:19], run["result"] + reason, *about])
    return [Heading(caption, "runs"), Table(head, body, caption), *_loss(source, runs), *_throughput(source, runs)]


def _loss(source: Source, runs: list[dict[str, Any]]) -> list[Block]:
    """Loss over steps of the newest runs."""
    t = source.t
    lines = [Curve((run["ended"] or "?")[:16], _numbers(run, "loss")) for run in runs[:4] if _numbers(run, "loss")]
    if not lines:
        return []
    steps = [str(number + 1) for number in range(max(len(line.values) for line in lines))]
    words = "; ".join(f"{line.name}: {line.values[0]:.3f} → {line.values[-1]:.3f}" for line in lines)
    return [Heading(t("Loss", "损失曲线"), "loss"), Picture(curves(steps, lines, t("loss by step", "各步损失")), words)]


def _throughput(source: Source, runs: list[dict[str, Any]]) -> list[Block]:
    """Throughput per device from run to run: the mean of the steps after the first, with the least and the most of them."""
    t = source.t
    told: list[tuple[str, list[float]]] = []
    for run in reversed(runs):
        values = _numbers(run, THROUGHPUT)
        steps = [value / max(run["devices"] or 1, 1) for value in (values[1:] or values)]
        if steps:
            told.append(((run["ended"] or "?")[:10], steps))
    if not told:
        return []
    line = Curve(
        THROUGHPUT, [sum(steps) / len(steps) for _, steps in told], [(min(steps), max(steps)) for _, steps in told]
    )
    words = "; ".join(f"{day}: {value:.4g}" for (day, _), value in zip(told, line.values))
    caption = t("Throughput per device", "单卡吞吐")
    drawn = curves([day for day, _ in told], [line], t("tokens per second and device", "每卡每秒 token 数"))
    return [Heading(caption, "throughput"), Picture(drawn, words)]


THROUGHPUT = "tokens_per_second"
