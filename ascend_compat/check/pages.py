"""The offline page of a code: of a finding in the catalogue, or of a rule."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ascend_compat.check.sources import address

if TYPE_CHECKING:
    import duckdb

_WORDS = {
    "en": {
        "why": "Why", "fix": "What to do", "when": "Applies when", "requires": "Must hold", "source": "Source",
        "window": "Framework versions", "all": "all", "rests": "Rests on", "proof": "the framework's own code was run with it",
        "reading": "reading the source; not run", "pass": "Passes", "fail": "Breaks", "candidates": "Taken from",
        "impossible": "impossible", "warning": "warning", "always": "always", "seen": "Seen", "accepted": "accepted", "refused": "refused",
    },
    "zh": {
        "why": "原因", "fix": "处理办法", "when": "适用条件", "requires": "必须满足", "source": "来源",
        "window": "框架版本", "all": "全部", "rests": "依据", "proof": "已用框架自身代码运行验证",
        "reading": "仅阅读源码，未运行", "pass": "通过示例", "fail": "违反示例", "candidates": "取自",
        "impossible": "不可能", "warning": "警告", "always": "总是", "seen": "实测", "accepted": "接受", "refused": "拒绝",
    },
}  # fmt: skip


def page(con: duckdb.DuckDBPyConnection, code: str, language: str) -> str | None:
    """The page as text; None for a code nobody knows."""
    row = con.execute(
        f"SELECT code, name, severity, message_{language}, why_{language}, fix_{language} FROM code WHERE upper(code) = upper(?)",
        [code],
    ).fetchone()
    words = _WORDS[language]
    if row is not None:
        return f"{row[0]} {row[1]} ({row[2]})\n\n{row[3]}\n\n{words['why']}: {row[4]}\n{words['fix']}: {row[5]}"
    rule = con.execute(
        f"SELECT id, framework, topic, severity, message_{language}, when_sql, requires_sql, since, until, source, rests_on, "
        "examples, candidates FROM rule WHERE upper(id) = upper(?)",
        [code],
    ).fetchone()
    return None if rule is None else "\n".join([_rule(rule, words), *_proofs(con, rule[0], words)])


def _proofs(con: duckdb.DuckDBPyConnection, rule: str, words: dict[str, str]) -> list[str]:
    rows = con.execute(
        "SELECT repo, commit, version, date, accepted, refused, said, place FROM proof WHERE rule = ? ORDER BY date, commit",
        [rule],
    ).fetchall()
    lines = []
    for repo, commit, version, date, accepted, refused, said, at in rows:
        lines.append(f"{words['seen']} {date}, {repo}@{commit[:12]}" + (f" ({version})" if version else ""))
        lines.append(f"  {words['accepted']}: {accepted}")
        lines.append(f"  {words['refused']}: {refused}")
        lines.append(f"    {said}" + (f" [{at}]" if at else ""))
    return lines


def _rule(rule: tuple[Any, ...], words: dict[str, str]) -> str:
    since, until = rule[7], rule[8]
    window = words["all"] if not since and not until else f"{since or '…'} – {until or '…'}"
    source = json.loads(rule[9]) if rule[9] else {}
    examples = json.loads(rule[11]) if rule[11] else {}
    lines = [
        f"{rule[0]} {rule[2]} ({rule[1]}, {words[rule[3]]})",
        "",
        rule[4],
        "",
        f"{words['when']}: {rule[5] or words['always']}",
        f"{words['requires']}: {rule[6]}",
        f"{words['window']}: {window}",
        f"{words['source']}: {address(source)}" + (f" ({source['symbol']})" if source.get("symbol") else ""),
        f"{words['rests']}: {words.get(rule[10] or 'reading', rule[10])}",
    ]
    for kind in ("pass", "fail"):
        for example in examples.get(kind, ()):
            lines.append(f"{words[kind]}: {json.dumps(example, ensure_ascii=False)}")
    if rule[12]:
        lines.append(f"{words['candidates']}: {', '.join(rule[12])}")
    return "\n".join(lines)
