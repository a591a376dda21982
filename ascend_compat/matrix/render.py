"""A table document as the page shows it: tab-separated text, Markdown or HTML, in Chinese or English."""

from __future__ import annotations

import html
from typing import Any

from ascend_compat.matrix.tables import read_cell, stated_cell

_MARKS = {
    "supported": "✅",
    "unsupported": "❌",
    "not-applicable": "NA",
    "partial": "✅",
    "withdrawn": "❌",
    "unknown": "?",
}
FORMATS = ("tsv", "markdown", "html")


def page(body: dict[str, Any], language: str, form: str) -> str:
    """The whole page: title, first sentence and table. ``form`` is one of :data:`FORMATS`."""
    before = [body[name][language] for name in ("title", "lead") if name in body]
    if form == "tsv":
        lines = [line for text in before for line in (text, "")]
        return "\n".join([*lines, *("\t".join(row).rstrip("\t") for row in grid(body, language))])
    if form == "markdown":
        return "\n".join([*(line for text in before for line in (text, "")), *_markdown(body, language)]) + "\n"
    return "\n".join([*(f"<p>{html.escape(text)}</p>" for text in before), *_html(body, language)]) + "\n"


def grid(body: dict[str, Any], language: str) -> list[list[str]]:
    """Header rows and data rows; a merged cell's text stands in its first place only, as in tab-separated pages."""
    labels = _labels(body)
    header = _header(body, language)
    corner = [
        text[language]
        for text in body.get("corner", [{"en": "Series", "zh": "模型系列"}, {"en": "Model", "zh": "模型"}])
    ]
    rows = []
    for number, level in enumerate(header):
        cells, last = [], None
        for place, text in enumerate(level):
            above = [upper[place] for upper in header[:number]]
            shown = text if number == len(header) - 1 or (text, above) != last else ""
            last = (text, above)
            cells.append(shown)
        rows.append((corner[-labels:] if number == 0 else [""] * labels) + cells)
    return rows + data(body, language)


def data(body: dict[str, Any], language: str) -> list[list[str]]:
    """The data rows: series (empty where it continues the row above), label, and the text of every cell."""
    rows = []
    for row in body["rows"]:
        label = [row.get("series", {}).get(language, ""), row["label"]] if _labels(body) == 2 else [row["label"]]
        rows.append(label + [cell_text(row, column, body) for column in body["columns"]])
    return rows


def cell_text(row: dict[str, Any], column: dict[str, Any], body: dict[str, Any]) -> str:
    """A cell in the page's own words."""
    status, _, text, _ = read_cell(stated_cell(row, column), column)
    return text if text is not None else body.get("marks", {}).get(status, _MARKS[status])


def _labels(body: dict[str, Any]) -> int:
    return 2 if any("series" in row for row in body["rows"]) else 1


def _header(body: dict[str, Any], language: str) -> list[list[str]]:
    columns = body["columns"]
    levels = [[column[name][language] for column in columns] for name in ("group", "head") if name in columns[0]]
    return [*levels, [column["heading"][language] for column in columns]]


def _markdown(body: dict[str, Any], language: str) -> list[str]:
    labels = grid(body, language)[0][: _labels(body)]
    headings = [" / ".join(path) for path in zip(*_header(body, language), strict=True)]
    rows = [labels + headings, ["---"] * (len(labels) + len(headings)), *data(body, language)]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]


def _html(body: dict[str, Any], language: str) -> list[str]:
    labels, header = _labels(body), _header(body, language)
    lines = ["<table>", "<thead>"]
    corner = grid(body, language)[0][:labels]
    for number, level in enumerate(header):
        cells = [f'<th rowspan="{len(header)}">{html.escape(text)}</th>' for text in corner] if number == 0 else []
        paths = list(zip(*header[: number + 1], strict=True))
        place = 0
        while place < len(level):
            across = 1
            if number < len(header) - 1:
                while place + across < len(level) and paths[place + across] == paths[place]:
                    across += 1
            cells.append(f'<th colspan="{across}">{html.escape(level[place])}</th>')
            place += across
        lines.append("<tr>" + "".join(cells) + "</tr>")
    lines += ["</thead>", "<tbody>"]
    rows = data(body, language)
    for number, row in enumerate(rows):
        cells = [f"<td>{html.escape(cell)}</td>" for cell in row[labels - 1 :]]
        if labels == 2 and row[0]:
            down = 1
            while number + down < len(rows) and not rows[number + down][0]:
                down += 1
            cells.insert(0, f'<td rowspan="{down}">{html.escape(row[0])}</td>')
        lines.append("<tr>" + "".join(cells) + "</tr>")
    return [*lines, "</tbody>", "</table>"]
