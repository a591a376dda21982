"""Generated parts of committed Markdown: between ``<!-- generated: NAME ARGUMENTS -->`` and ``<!-- /generated -->``."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from ascend_compat.docs.markdown import table
from ascend_compat.docs.pages.home import COUNTS
from ascend_compat.docs.source import RUNGS, SIGNS, Source
from ascend_compat.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import duckdb

_PART = re.compile(
    r"(?P<open><!-- generated: (?P<said>[^\n]*?) -->\n)(?P<body>.*?)(?P<close><!-- /generated -->)", re.DOTALL
)
_FENCE = re.compile(r"^(```|~~~).*?^\1\s*$", re.DOTALL | re.MULTILINE)


def updated(con: duckdb.DuckDBPyConnection, text: str, name: str) -> str:
    """A document with its generated parts made anew; ``name`` is for messages. Examples inside code fences stay as they are.

    Raises :class:`UsageError` for a part nobody can make.
    """
    fences = [match.span() for match in _FENCE.finditer(text)]

    def make(match: re.Match[str]) -> str:
        if any(start <= match.start() < end for start, end in fences):
            return match.group(0)
        return f"{match['open']}{part(con, match['said'], name)}{match['close']}"

    return _PART.sub(make, text)


def part(con: duckdb.DuckDBPyConnection, said: str, name: str) -> str:
    """One generated part, as lines that end."""
    words = said.split()
    language = "en"
    if words and words[-1].startswith("lang="):
        language = words.pop().removeprefix("lang=")
    maker = _MAKERS.get(words[0]) if words else None
    if maker is None or language not in ("en", "zh"):
        raise UsageError(f"{name}: nothing generates {said!r}; there are: {', '.join(_MAKERS)} (and lang=en, lang=zh)")
    return "\n".join(maker(Source(con, language), words[1:])) + "\n"


def _counts(source: Source, _: Sequence[str]) -> list[str]:
    row = source.rows(COUNTS)[0]
    t = source.t
    named = {
        "models": t("models", "模型"),
        "frameworks": t("frameworks", "框架"),
        "features": t("features", "特性"),
        "releases": t("releases", "版本"),
        "claims": t("stated claims", "已声明的支持信息"),
        "rules": t("rules", "规则"),
        "codes": t("codes of findings", "诊断代码"),
        "recipes": t("recipes", "配方"),
        "verified": t("claims verified on an NPU", "已在 NPU 上验证的声明"),
    }
    return table(
        [t("What", "内容"), t("How many", "数量")], [[words, f"{row[name]:,}"] for name, words in named.items()]
    )


def _releases(source: Source, arguments: Sequence[str]) -> list[str]:
    rows = source.rows(
        "SELECT release, date, note_{l} AS note FROM release WHERE product = ? ORDER BY ordinal", *arguments[:1]
    )
    t = source.t
    return table(
        [t("Release", "版本"), t("Date", "日期"), t("Remarks", "备注")],
        [[row["release"], row["date"] or "", row["note"] or ""] for row in rows],
    )


def _matrix(source: Source, arguments: Sequence[str]) -> list[str]:
    """``matrix PRODUCT RELEASE FRAMEWORK``: models by columns."""
    cells = source.rows(
        "SELECT c.label, c.row_ordinal, c.column_ordinal, c.heading_{l} AS heading, c.status, c.text, p.body FROM cell c JOIN table_page p USING (path) "
        "WHERE c.product = ? AND c.release = ? AND c.framework = ? ORDER BY c.row_ordinal, c.column_ordinal, c.model",
        *arguments[:3],
    )
    if not cells:
        raise UsageError(f"no table: {' '.join(arguments)}")
    marks: dict[str, str] = {**SIGNS, **json.loads(cells[0]["body"]).get("marks", {})}
    heads = {row["column_ordinal"]: row["heading"] for row in cells}
    lines: dict[int, dict[str, Any]] = {}
    for row in cells:
        line = lines.setdefault(row["row_ordinal"], {"label": row["label"]})
        line[row["column_ordinal"]] = row["text"] if row["text"] is not None else marks[row["status"]]
    body = [[line["label"], *(line[number] for number in sorted(heads))] for line in lines.values()]
    return table([source.t("Model", "模型"), *(heads[number] for number in sorted(heads))], body)


def _health(source: Source, arguments: Sequence[str]) -> list[str]:
    rows = source.rows(
        "SELECT s.release, s.framework, "
        + ", ".join(f"count(*) FILTER (state = '{rung}') AS {rung}" for rung in RUNGS)
        + " FROM cell_state s JOIN release r ON r.product = s.product AND r.release = s.release WHERE s.product = ? "
        "GROUP BY s.release, s.framework, r.ordinal ORDER BY r.ordinal, s.framework",
        *arguments[:1],
    )
    t = source.t
    heads = [t("Release", "版本"), t("Framework", "框架"), *(source.rung_words(rung) for rung in RUNGS)]
    return table(
        heads,
        [[row["release"], source.frameworks[row["framework"]], *(str(row[rung]) for rung in RUNGS)] for row in rows],
    )


_MAKERS: dict[str, Callable[[Source, Sequence[str]], list[str]]] = {
    "counts": _counts,
    "releases": _releases,
    "matrix": _matrix,
    "health": _health,
}
