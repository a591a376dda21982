"""A comparison of two states of the matrix, told to a person or a machine."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ascend_compat.report.text import safe

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ascend_compat.check.regress import Change, Difference

FORMATS = ("text", "markdown", "json")
_PARTS = ("default", "claim", "cell", "names", "rule", "example", "grid", "job", "evidence")
_KINDS = ("lost", "changed", "became unknown", "gained", "added")
_SHOWN = 12
_MAX_SAID = 240
_WORDS = {
    "en": {
        "default": "Answers without naming a release", "claim": "Claims", "cell": "Cells that move no claim",
        "names": "Questions by names that no claim explains", "rule": "Rules", "example": "Rule examples, at every version",
        "grid": "Grid of parallel sizes", "job": "Known job files", "evidence": "Evidence of runs",
        "lost": "lost", "changed": "changed", "became unknown": "became unknown", "gained": "gained", "added": "new",
        "declared": "declared: {reason}", "undeclared": "NOT DECLARED", "more": "and {count} more",
        "same": "Nothing answers differently.", "compared": "Compared: {listed}.",
        "end": "{total} differences, {open} of them need a reason in matrix/CHANGES.yaml.",
        "reach": "moves {example} example cases, {grid} grid points, {job} job files",
        "models": "{count} models", "features": "{count} features",
    },
    "zh": {
        "default": "未指定版本时的应答", "claim": "声明", "cell": "不影响声明的单元格",
        "names": "无法由声明解释的名称查询", "rule": "规则", "example": "各版本下的规则示例",
        "grid": "并行规模网格", "job": "已知作业文件", "evidence": "运行证据",
        "lost": "不再支持", "changed": "变化", "became unknown": "变为未说明", "gained": "新支持", "added": "新增",
        "declared": "已声明：{reason}", "undeclared": "未声明", "more": "另有 {count} 项",
        "same": "所有应答均无变化。", "compared": "比较范围：{listed}。",
        "end": "共 {total} 处差异，其中 {open} 处需要在 matrix/CHANGES.yaml 中说明原因。",
        "reach": "影响 {example} 个示例用例、{grid} 个网格点、{job} 个作业文件",
        "models": "{count} 个模型", "features": "{count} 个特性",
    },
}  # fmt: skip


def render(form: str, difference: Difference, language: str) -> str:
    """The difference in one of :data:`FORMATS`."""
    if form == "json":
        return _json(difference)
    words = _WORDS[language]
    heading, bullet = ("## ", "- ") if form == "markdown" else ("", "  ")
    lines = [f"{'# ' if form == 'markdown' else ''}{safe(difference.base)} -> {safe(difference.now)}"]
    listed = ", ".join(f"{words[part]} {count}" for part, count in difference.compared.items())
    lines += ["", words["compared"].format(listed=listed)]
    for part in _PARTS:
        changes = [change for change in difference.changes if change.part == part]
        if not changes:
            continue
        lines += ["", f"{heading}{words[part]}: {_counts(changes, words)}"]
        for kind in _KINDS:
            lines += [
                f"{bullet}{line}"
                for line in _block([one for one in changes if one.kind == kind], difference, words, form)
            ]
    if not difference.changes:
        lines += ["", words["same"]]
    end = words["end"].format(total=len(difference.changes), open=len(difference.undeclared))
    return "\n".join([*lines, "", end])


def _counts(changes: Iterable[Change], words: dict[str, str]) -> str:
    counts: dict[str, int] = {}
    for change in changes:
        counts[change.kind] = counts.get(change.kind, 0) + 1
    return ", ".join(f"{words[kind]} {counts[kind]}" for kind in _KINDS if kind in counts)


def _block(changes: list[Change], difference: Difference, words: dict[str, str], form: str) -> list[str]:
    """Equal changes of several models and features are one line."""
    features: dict[Any, list[str]] = {}
    for change in changes:
        what, model, feature = _place(change)
        if change.part == "rule":
            model = _reach(change, difference, words)
        features.setdefault(((change.kind, what, change.before, change.after, change.reason), model), []).append(
            feature
        )
    groups: dict[Any, list[str]] = {}
    for (shared, model), names in features.items():
        groups.setdefault((shared, tuple(names)), []).append(model)
    by_reach = sorted(groups.items(), key=lambda group: -len(group[1]) * len(group[0][1]))
    lines = []
    for ((kind, what, before, after, reason), names), models in by_reach:
        told = [words[kind], what, _some(models, words["models"], words), _some(names, words["features"], words)]
        line = " | ".join(part for part in told if part)
        line += f" | {_short(before)} -> {_short(after)}"
        if kind != "added":
            line += f" | {words['declared'].format(reason=reason) if reason else words['undeclared']}"
        lines.append(_markdown(safe(line)) if form == "markdown" else safe(line))
    rest = len(lines) - 4 * _SHOWN
    return lines if rest <= 0 else [*lines[: 4 * _SHOWN], words["more"].format(count=rest)]


def _short(said: str | None) -> str:
    return "-" if not said else said if len(said) <= _MAX_SAID else said[: _MAX_SAID - 1] + "…"


def _reach(change: Change, difference: Difference, words: dict[str, str]) -> str:
    """How far a rule's change reaches: the cases and job files it moves."""
    rule = change.key.get("rule")
    counts = {
        part: sum(
            int(other.key.get("cases", 1))
            for other in difference.changes
            if other.part == part and rule in (other.key.get("rule"), *other.codes)
        )
        for part in ("example", "grid", "job")
    }
    return words["reach"].format(**counts)


def _place(change: Change) -> tuple[str, str, str]:
    key = change.key
    feature = key.get("feature") or key.get("column") or ""
    if change.part in ("example", "grid"):
        return f"{key['framework']} {key['rule']} ({key['cases']}/{key['of']}: {key['first']})", "", ""
    if change.part == "rule":
        return f"{key['framework']} {key['rule']}", "", ""
    if change.part == "job":
        return key["file"], "", ""
    return f"{key['product']} {key['release']} {key['framework']}", key["model"], feature


def _some(names: Iterable[str], counted: str, words: dict[str, str]) -> str:
    names = [name for name in names if name]
    if len(names) <= _SHOWN:
        return ", ".join(names)
    return f"{counted.format(count=len(names))} ({', '.join(names[:4])}, …)"


def _markdown(text: str) -> str:
    return text.replace("\\", "\\\\").replace("*", "\\*").replace("<", "&lt;").replace("_", "\\_").replace("|", "—")


def _json(difference: Difference) -> str:
    changes = [
        {
            "part": change.part, "kind": change.kind, **change.key, "before": change.before, "after": change.after,
            "reason": change.reason, "needs_reason": change.needs_reason,
        }
        for change in difference.changes
    ]  # fmt: skip
    body = {
        "schema_version": 1, "base": difference.base, "now": difference.now, "compared": difference.compared,
        "undeclared": len(difference.undeclared), "changes": changes,
    }  # fmt: skip
    return json.dumps(body, ensure_ascii=False, indent=1)
