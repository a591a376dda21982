"""``ascend-compat plan``: legal layouts of a model on a number of devices."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ascend_compat.cli.options import language, language_option, write
from ascend_compat.errors import UsageError

if TYPE_CHECKING:
    from ascend_compat.check.engine import Engine
    from ascend_compat.check.plan import Layout, Plan

_WORDS = {
    "en": {
        "title": "{model} in {framework} {version}, {method}, {devices} devices ({chip}), sequences of {seq}: "
        "{legal} legal layouts of {tried} tried",
        "floor": "floor", "why": "why", "more": "… and {count} more (--limit)", "none": "No layout is legal. What refuses them:",
        "of": "{rule} refuses {count} of {tried}, such as: {text}", "smallest": "The least number of devices with a legal layout: {devices}.",
        "nothing": "No number of devices up to 512 nodes has one.", "gib": "{floor:.1f} GiB", "unknown": "unknown",
        "order": "Order: official sizes first, then the least splitting whose state leaves room "
        "(NVIDIA/Megatron-LM docs/user-guide/parallelism-guide.md at d98e8a64ddf3). The floor holds weights, gradients and "
        "optimizer state only. Nothing here was run on an NPU.",
    },
    "zh": {
        "title": "{framework} {version} 中的 {model}，{method}，{devices} 卡（{chip}），序列长度 {seq}：共尝试 {tried} 种，合法 {legal} 种",
        "floor": "显存下限", "why": "理由", "more": "… 另有 {count} 种（--limit）", "none": "没有合法的并行方案。拒绝原因：",
        "of": "{rule} 拒绝 {tried} 种中的 {count} 种，例如：{text}", "smallest": "存在合法方案的最少卡数：{devices}。",
        "nothing": "在 512 个节点以内均没有合法方案。", "gib": "{floor:.1f} GiB", "unknown": "未知",
        "order": "排序：先列官方脚本使用的规模，其后为放得下且切分最少的方案"
        "（NVIDIA/Megatron-LM docs/user-guide/parallelism-guide.md，d98e8a64ddf3）。下限只含权重、梯度与优化器状态。以上均未在 NPU 上运行过。",
    },
}  # fmt: skip
_SHORT = {
    "tensor_parallel": "TP", "pipeline_parallel": "PP", "context_parallel": "CP", "expert_parallel": "EP",
    "expert_tensor_parallel": "ETP", "data_parallel": "DP", "zero_stage": "ZeRO", "ulysses_sp": "SP",
    "rollout_tensor_parallel": "rollout TP", "global_batch_size": "GBS", "micro_batch_size": "MBS", "num_layers": "layers",
    "noop_layers": "noop",
}  # fmt: skip


@click.command()
@click.argument("model")
@click.option("--framework", default="mindspeed-llm", show_default=True)
@click.option(
    "--devices", type=click.IntRange(1, 100_000), required=True, help="Devices in all (a die of an A3 card is one)."
)
@click.option("--chip", type=click.Choice(["a2", "a3"]), default="a2", show_default=True)
@click.option("--seq-length", type=click.IntRange(1, 10_000_000), default=4096, show_default=True)
@click.option("--method", help="pretrain, full, lora or grpo (default: full, or grpo for the RL frameworks).")
@click.option("--framework-version", help="The framework version whose rules hold.")
@click.option("--limit", type=click.IntRange(1, 1000), default=10, show_default=True, help="Layouts to print.")
@click.option("--write", "target", type=click.Path(), help="Write the first layout as a job file of the framework.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@language_option
def plan(
    model: str,
    framework: str,
    devices: int,
    chip: str,
    seq_length: int,
    method: str | None,
    framework_version: str | None,
    limit: int,
    target: str | None,
    form: str,
    lang: str | None,
) -> None:
    """List the legal layouts of MODEL on a number of devices, each checked by the same rules as a job.

    Exit code: 0 with a legal layout, 1 without one.
    """
    from ascend_compat.check.engine import Engine
    from ascend_compat.check.plan import Request
    from ascend_compat.check.plan import plan as make
    from ascend_compat.matrix.store import connect

    engine = Engine(connect())
    found = engine.names.model(model)
    if found is None:
        raise UsageError(
            f"no model is called {model!r}; nearest: {', '.join(engine.names.suggest_models(model)) or 'none'}"
        )
    named = engine.names.framework(framework)
    if named is None:
        nearest = ", ".join(engine.names.suggest_frameworks(framework)) or "none"
        raise UsageError(f"no framework is called {framework!r}; nearest: {nearest}")
    method = method or ("grpo" if named in ("verl", "mindspeed-rl") else "full")
    result = make(engine, Request(found.id, named, devices, method, chip, seq_length, framework_version))
    if target and result.layouts:
        _write_job(engine, result, Path(target))
    if form == "json":
        write(json.dumps(_plain(result, limit, language(lang)), ensure_ascii=False, indent=2))
    else:
        write("\n".join(_lines(result, limit, language(lang))))
    sys.exit(0 if result.layouts else 1)


def _write_job(engine: Engine, result: Plan, target: Path) -> None:
    from ascend_compat.check.plan import job_of

    if not target.name or target.is_dir():
        raise UsageError(f"cannot write {target}: it is a directory")
    rendered = job_of(engine, result, result.layouts[0])
    files = {target.name if name == rendered.main else name: text for name, text in rendered.files.items()}
    for name, text in files.items():
        path = target.parent / name
        part = path.with_name(path.name + ".part")
        try:
            part.write_text(text, encoding="utf-8")
            part.replace(path)
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror}") from None


def _sizes(layout: Layout) -> str:
    shown = []
    for name, short in _SHORT.items():
        value = layout.sizes.get(name)
        if value is not None and not (name in ("context_parallel", "expert_tensor_parallel") and value == 1):
            shown.append(f"{short} {','.join(map(str, value)) if isinstance(value, list) else value}")
    return "  ".join(shown)


def _lines(result: Plan, limit: int, words_of: str) -> list[str]:
    words = _WORDS[words_of]
    request = result.request
    lines = [
        words["title"].format(
            model=request.model, framework=request.framework, version=result.version, method=request.method,
            devices=request.devices, chip=request.chip, seq=request.seq_length, legal=len(result.layouts), tried=result.tried,
        )
    ]  # fmt: skip
    for layout in result.layouts[:limit]:
        floor = words["unknown"] if layout.floor is None else words["gib"].format(floor=layout.floor)
        lines.append(f"  {_sizes(layout)}  [{words['floor']}: {floor}]")
        why = layout.why.in_language(words_of) + (f" ({layout.shipped.address})" if layout.shipped else "")
        lines.append(f"      {words['why']}: {why}")
    if len(result.layouts) > limit:
        lines.append(words["more"].format(count=len(result.layouts) - limit))
    if result.layouts:
        return [*lines, words["order"]]
    lines.append(words["none"])
    for rule, text, count in result.reasons[:limit]:
        said = text.in_language(words_of)
        lines.append("  " + words["of"].format(rule=rule, text=said, count=count, tried=result.tried))
    smallest = words["nothing"] if result.smallest is None else words["smallest"].format(devices=result.smallest)
    return [*lines, smallest]


def _plain(result: Plan, limit: int, words_of: str) -> dict[str, Any]:
    request = result.request
    return {
        "schema_version": 1,
        "model": request.model,
        "framework": request.framework,
        "framework_version": result.version,
        "method": request.method,
        "devices": request.devices,
        "chip": request.chip,
        "seq_length": request.seq_length,
        "tried": result.tried,
        "legal": len(result.layouts),
        "layouts": [
            {
                "sizes": dict(layout.sizes),
                "floor_gib": None if layout.floor is None else round(layout.floor, 2),
                "warnings": list(layout.warnings),
                "official": layout.shipped.address if layout.shipped else None,
                "why": layout.why.in_language(words_of),
            }
            for layout in result.layouts[:limit]
        ],
        "refused_by": [
            {"rule": rule, "text": text.in_language(words_of), "layouts": count} for rule, text, count in result.reasons
        ],
        "smallest_devices": result.smallest,
    }
