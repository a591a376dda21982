"""What changed between two releases, told in blocks: equal changes of several features and models are one line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ascend_compat.matrix.query import Frame

_WORDS = {
    "en": {
        "added": "added", "lost": "lost", "changed": "changed", "newly stated": "newly stated (unknown before)",
        "became unknown": "became unknown (no longer stated; not a loss)", "none": "no difference",
        "supported": "supported", "partial": "partial", "unsupported": "unsupported", "not-applicable": "not applicable",
        "withdrawn": "withdrawn", "unknown": "unknown",
    },
    "zh": {
        "added": "新增", "lost": "不再支持", "changed": "变化", "newly stated": "新给出说明（此前未说明）",
        "became unknown": "变为未说明（不等于不再支持）", "none": "没有差异",
        "supported": "支持", "partial": "有条件支持", "unsupported": "不支持", "not-applicable": "不适用",
        "withdrawn": "已下线", "unknown": "未说明",
    },
}  # fmt: skip


def render(frame: Frame, product: str, old: str, new: str, language: str) -> str:
    """The rows of :func:`ascend_compat.matrix.history.diff` as text."""
    words = _WORDS[language]
    lines = [f"{product} {old} -> {new}"]
    if not frame.rows:
        return "\n".join([*lines, words["none"]])
    counts: dict[str, int] = {}
    blocks: dict[str, list[str]] = {}
    records = frame.records()
    for record in records:
        counts[record["change"]] = counts.get(record["change"], 0) + 1
    for (change, framework, before, after), models, features in _grouped(records):
        said = f"{_status(before, words)} -> {_status(after, words)}"
        blocks.setdefault(change, []).append(f"  {framework} | {', '.join(models)} | {', '.join(features)} | {said}")
    for change, block in blocks.items():
        lines += ["", f"{words[change]}: {counts[change]}", *block]
    return "\n".join(lines)


def _status(said: tuple[str, str | None], words: dict[str, str]) -> str:
    status, condition = said
    return words[status] + (f" ({condition})" if condition else "")


def _grouped(records: list[dict[str, Any]]) -> list[tuple[Any, list[str], tuple[str, ...]]]:
    """Change, framework, before and after; the models it happened to alike; the features it happened to."""
    features: dict[Any, list[str]] = {}
    for record in records:
        before = (record["before"], record["condition_before"])
        after = (record["after"], record["condition_after"])
        key = ((record["change"], record["framework"], before, after), record["model"])
        features.setdefault(key, []).append(record["feature"])
    models: dict[Any, list[str]] = {}
    for (what, model), names in features.items():
        models.setdefault((what, tuple(names)), []).append(model)
    return [(what, found, names) for (what, names), found in models.items()]
