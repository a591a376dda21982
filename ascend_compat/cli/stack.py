"""``ascend-compat stack`` and ``ascend-compat doctor``: check a software stack, suggest one, look over this host."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from ascend_compat.cli.options import language, language_option, wants_colour, write
from ascend_compat.errors import UsageError

if TYPE_CHECKING:
    import duckdb

    from ascend_compat.check.finding import Report
    from ascend_compat.stack.model import Stack
    from ascend_compat.stack.suggest import Answer, Suggestion

_COLOUR = click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True)
_FORM = click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
_ROWS = (
    ("chip", "chip", "芯片"), ("npu_count", "devices", "设备数"), ("npu_memory_gib", "memory (GiB)", "内存（GiB）"),
    ("driver", "driver", "驱动"), ("firmware", "firmware", "固件"), ("cann", "CANN", "CANN"), ("kernels", "kernels", "算子包"),
    ("nnal", "NNAL", "NNAL"), ("python", "Python", "Python"), ("architecture", "architecture", "架构"),
)  # fmt: skip
_PACKAGES = (
    "torch",
    "torch-npu",
    "vllm",
    "vllm-ascend",
    "transformers",
    "llamafactory",
    "verl",
    "mindspeed",
    "deepspeed",
)
_VARIABLES = (
    "ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "ATB_HOME_PATH", "LD_LIBRARY_PATH", "ASCEND_RT_VISIBLE_DEVICES",
    "TORCH_DEVICE_BACKEND_AUTOLOAD", "PYTORCH_NPU_ALLOC_CONF",
)  # fmt: skip


@click.group()
def stack() -> None:
    """Check a software stack against the version tables, or suggest one."""


@stack.command()
@click.argument("stacks", nargs=-1, required=True)
@click.option("--strict", is_flag=True, help="Warnings and unverified stacks exit 1 too.")
@_FORM
@_COLOUR
@language_option
def check(stacks: tuple[str, ...], strict: bool, form: str, color: str, lang: str | None) -> None:
    """Check STACKS: stack files (also pip, conda or env listings, npu-smi output), image names, or 'auto' for this host.

    Exit code: 0 nothing speaks against them, 1 rejected, 2 unreadable.
    """
    from ascend_compat.check.api import exit_code
    from ascend_compat.check.stack import StackChecker
    from ascend_compat.matrix.store import connect
    from ascend_compat.stack.read import read_stack

    read = [read_stack(given) for given in stacks]
    checker = StackChecker(connect())
    reports = [checker.report(found) for found in read]
    _render(reports, form, color, language(lang))
    sys.exit(exit_code(reports, strict))


@stack.command()
@click.option("--framework", help="A training framework, vllm-ascend, or ascendfactory.")
@click.option("--framework-version", help="A release of that framework.")
@click.option("--cann", help="A CANN release.")
@click.option("--torch", help="A torch release.")
@click.option("--torch-npu", help="A torch_npu build.")
@click.option("--python", help="A Python release.")
@click.option("--vllm", help="A vllm release.")
@click.option("--vllm-ascend", help="A vllm-ascend release.")
@click.option("--chip", help="A chip by any of its names, or a generation (A2, A3).")
@click.option("--limit", type=click.IntRange(1), default=3, show_default=True, help="How many sets to show.")
@_FORM
@language_option
def suggest(limit: int, form: str, lang: str | None, **asked: str | None) -> None:
    """Sets of versions that agree, newest first, with what each pair rests on and how to install them.

    Exit code: 0 there is a set, 1 there is none (the reasons are shown, and the nearest set), 2 an unknown name.
    """
    from ascend_compat.matrix.store import connect
    from ascend_compat.stack.suggest import suggest as find
    from ascend_compat.stack.tables import Tables

    con = connect()
    tables = Tables(con)
    wishes = {name: value for name, value in asked.items() if value}
    if "framework" in wishes:
        wishes["framework"] = _framework(con, wishes["framework"], {row["product"] for row in tables.sets})
    if "chip" in wishes:
        row = tables.chip(wishes["chip"])
        if row is None:
            raise UsageError(f"no chip is called {wishes['chip']!r}; generations: A2, A3, 910, 310P, 310B, 950")
        wishes["chip"] = row["family"]
    answer = find(tables, wishes)
    words = language(lang)
    write(_json(answer, wishes, limit) if form == "json" else _text(answer, limit, words))
    sys.exit(0 if answer.sets else 1)


@click.command()
@click.option("--python", help="Another interpreter to look into.")
@click.option("--probe", is_flag=True, help="Import torch and torch_npu in a process of its own.")
@click.option(
    "--probe-seconds", type=click.FloatRange(1), default=120.0, show_default=True, help="Time limit of each import."
)
@click.option("--save", type=click.Path(dir_okay=False), help="Write a stack file, without user and host names.")
@_FORM
@_COLOUR
@language_option
def doctor(
    python: str | None, probe: bool, probe_seconds: float, save: str | None, form: str, color: str, lang: str | None
) -> None:
    """Look over this host, without importing torch: what is installed, and what speaks against a job here.

    Exit code: 0 nothing, 1 something would fail, 2 wrong usage.
    """
    from ascend_compat.check.api import exit_code
    from ascend_compat.check.stack import StackChecker, probe_findings
    from ascend_compat.matrix.store import connect
    from ascend_compat.stack.host import probe as try_imports
    from ascend_compat.stack.host import scan_host

    found = scan_host(python)
    if save:
        _save(found, save)
    checker = StackChecker(connect())
    report = checker.report(found)
    if probe:
        extra = probe_findings(checker, try_imports(python, probe_seconds))
        report.findings = extra + report.findings
        if any(finding.severity == "error" for finding in extra):
            report.verdict = "impossible"
    words = language(lang)
    if form == "text":
        write(_summary(found, words))
        report.file = "本机" if words == "zh" else report.file
    _render([report], form, color, words)
    sys.exit(exit_code([report]))


def _render(reports: list[Report], form: str, color: str, words: str) -> None:
    from ascend_compat.report.formats import render

    write(render(form, reports, words, wants_colour(color)))


def _save(found: Stack, path: str) -> None:
    from pathlib import Path

    from ascend_compat.stack.write import stack_text

    try:
        Path(path).write_text(stack_text(found), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None


def _summary(found: Stack, words: str) -> str:
    chinese = words == "zh"
    lines = []
    for name, english, zh in _ROWS:
        value = found.value(name)
        if value is None and name in found.absent:
            value = "未安装" if chinese else "not installed"
        if value is not None:
            lines.append(f"  {zh if chinese else english}: {value}")
    packages = [f"{name} {found.version(name)}" for name in _PACKAGES if found.version(name)]
    none = "无（torch、torch-npu、框架均未安装）" if chinese else "none of torch, torch-npu and the frameworks"
    lines.append(f"  {'软件包' if chinese else 'packages'}: {', '.join(packages) or none}")
    variables = [f"{name}={found.env[name].value}" for name in _VARIABLES if name in found.env]
    lines.append(
        f"  {'环境变量' if chinese else 'environment'}: {', '.join(variables) or ('未设置 CANN 变量' if chinese else 'no CANN variables')}"
    )
    return "\n".join([*lines, ""])


def _framework(con: duckdb.DuckDBPyConnection, written: str, documented: set[str]) -> str:
    from ascend_compat.matrix.names import Names

    names = Names(con)
    for candidate in (names.framework(written), names.product(written), written.lower().replace("_", "-")):
        if candidate in documented or candidate == "vllm-ascend":
            return str(candidate)
    raise UsageError(f"no documented set is of {written!r}; known: {', '.join(sorted({*documented, 'vllm-ascend'}))}")


def _json(answer: Answer, wishes: dict[str, str], limit: int) -> str:
    def plain(made: Suggestion) -> dict[str, object]:
        sources = [{"pair": pair, "address": address} for pair, address in made.sources]
        pythons = list(made.pythons)
        return {"versions": made.components, "pythons": pythons, "sources": sources, "install": made.install()}

    whole = {
        "schema_version": 1,
        "asked": wishes,
        "found": len(answer.sets),
        "sets": [plain(made) for made in answer.sets[:limit]],
        "reasons": [{"en": english, "zh": chinese} for english, chinese in answer.reasons],
        "nearest": [plain(made) for made in answer.nearest],
    }
    return json.dumps(whole, ensure_ascii=False, indent=2)


def _text(answer: Answer, limit: int, words: str) -> str:
    from ascend_compat.stack.suggest import NAMES, NAMES_ZH

    chinese = words == "zh"
    labels = NAMES_ZH if chinese else NAMES
    lines: list[str] = []

    def block(made: Suggestion, head: str) -> None:
        parts = made.components
        lines.append(head)
        shown = [
            f"{labels[name]} {parts[name]}"
            for name in NAMES
            if name in parts and name not in ("framework", "framework_version")
        ]
        lines.append(f"  {', '.join(shown)}")
        lines.append(f"  {'支持的 Python' if chinese else 'Python releases'}: {', '.join(made.pythons)}")
        lines.extend(f"  {'来源' if chinese else 'source'}: {pair}: {address}" for pair, address in made.sources)
        lines.extend(f"    {line}" for line in made.install(words))
        lines.append("")

    def title(made: Suggestion) -> str:
        parts = made.components
        return f"{parts['framework']} {parts['framework_version']}" if "framework" in parts else "torch-npu"

    for number, made in enumerate(answer.sets[:limit], 1):
        block(made, f"{number}. {title(made)}")
    if len(answer.sets) > limit:
        rest = len(answer.sets) - limit
        lines.append(f"另有 {rest} 套（--limit）" if chinese else f"{rest} more sets (--limit)")
    if not answer.sets:
        lines.append("没有同时满足要求的整套版本：" if chinese else "No set meets all of this:")
        lines.extend(f"  {reason[1] if chinese else reason[0]}" for reason in answer.reasons)
        for made in answer.nearest:
            block(made, f"{'最接近' if chinese else 'nearest'}: {title(made)}")
    return "\n".join(lines).rstrip()
