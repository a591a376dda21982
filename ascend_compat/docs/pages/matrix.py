"""Matrix pages: one a release, laid out as the vendor's page, every cell with what stands behind it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ascend_compat.docs.page import (
    Code,
    Grid,
    GridRow,
    Head,
    Heading,
    Link,
    Page,
    Paragraph,
    Status,
    Table,
    joined,
)
from ascend_compat.docs.source import RUNGS, SIGNS

if TYPE_CHECKING:
    from ascend_compat.docs.page import Block, Line
    from ascend_compat.docs.rungs import Rungs
    from ascend_compat.docs.source import Source

_CELLS = """
SELECT cell.*, c.features, r.date FROM cell
JOIN table_column c ON c.path = cell.path AND c.ordinal = column_ordinal
JOIN release r ON r.product = cell.product AND r.release = cell.release
WHERE cell.product = ? AND cell.release = ?
ORDER BY cell.path, row_ordinal, column_ordinal, model
"""


def pages(source: Source, rungs: Rungs) -> list[Page]:
    """The index of matrices, and one page a release that has a table."""
    releases = source.rows(
        "SELECT r.product, r.release, r.date, r.note_{l} AS note, count(DISTINCT (c.path, c.row_ordinal)) AS rows, "
        'count(DISTINCT (c.path, c.row_ordinal, c."column", c.framework)) AS cells, list(DISTINCT c.framework ORDER BY c.framework) AS frameworks '
        "FROM release r JOIN cell c USING (product, release) GROUP BY r.product, r.release, r.date, r.note_{l}, r.ordinal "
        "ORDER BY r.product, r.ordinal DESC"
    )
    made = [_index(source, releases)]
    for row in releases:
        made.append(_page(source, rungs, row))
    return made


def page_id(product: str, release: str) -> str:
    """The id of a release's matrix page."""
    return f"matrix/{product}-{release}"


def _index(source: Source, releases: list[dict[str, Any]]) -> Page:
    t = source.t
    page = Page("matrix/index", "index", t("Matrices", "支持矩阵"), "index", {"releases": releases})
    page.blocks.append(
        Paragraph(
            t(
                "One table a release, in the words and the order of its own page. What no source shows is unknown, never supported.",
                "每个版本一张表，列与措辞同其原页面一致。没有来源说明的单元格为“未知”，绝不视为支持。",
            ),
            "lead",
        )
    )
    for product in dict.fromkeys(row["product"] for row in releases):
        page.blocks.append(Heading(source.products[product], product))
        page.blocks.append(
            Table(
                [
                    t("Release", "版本"),
                    t("Date", "日期"),
                    t("Frameworks", "框架"),
                    t("Rows", "行数"),
                    t("Cells", "单元格数"),
                ],
                [
                    [
                        Link(row["release"], page_id(product, row["release"])),
                        row["date"] or "",
                        joined([source.framework(each) for each in row["frameworks"]]),
                        str(row["rows"]),
                        str(row["cells"]),
                    ]
                    for row in releases
                    if row["product"] == product
                ],
                t(f"Releases of {source.products[product]}", f"{source.products[product]} 各版本"),
            )
        )
    return page


def _page(source: Source, rungs: Rungs, release: dict[str, Any]) -> Page:
    product, name = release["product"], release["release"]
    t = source.t
    tables = source.rows(
        "SELECT path, source, note_{l} AS note, body FROM table_page WHERE product = ? AND release = ? ORDER BY path",
        product,
        name,
    )
    cells = source.rows(_CELLS, product, name)
    title = t(f"{source.products[product]} {name}: matrix", f"{source.products[product]} {name} 支持矩阵")
    data: dict[str, Any] = {"product": product, "release": name, "date": release["date"], "tables": []}
    page = Page(page_id(product, name), "matrix", title, "matrix/index", data, wide=True)
    lead: list[Line] = [source.release(product, name)]
    if release["note"]:
        lead.append(release["note"])
    page.blocks.append(Paragraph(joined(lead, t(": ", "：")), "lead"))
    notes = _Notes(source, rungs)
    for number, table in enumerate(tables):
        own = [cell for cell in cells if cell["path"] == table["path"]]
        if own:
            page.blocks += _table(source, table, own, notes, data, number, len(tables))
    page.blocks += _legend(source)
    page.blocks += notes.block()
    data["notes"] = notes.records
    return page


class _Notes:
    """What stands behind cells, each different explanation once, numbered in the order of the table."""

    def __init__(self, source: Source, rungs: Rungs) -> None:
        self._source = source
        self._rungs = rungs
        self._numbers: dict[tuple[Any, ...], int] = {}
        self.records: list[dict[str, Any]] = []

    def of(self, cell: dict[str, Any], models: list[str]) -> tuple[int, dict[str, Any]]:
        """The number and the record of a cell's explanation."""
        source = self._source
        rung = self._rungs.lowest(cell["product"], cell["release"], cell["framework"], models, cell["features"])
        record = {
            "status": cell["status"],
            "condition": source.condition(cell),
            "note": source.both(cell, "note"),
            "rung": rung.state if cell["status"] not in ("unknown", "not-applicable") else None,
            "reason": rung.reason if rung.evidence else None,
            "evidence": rung.evidence,
            "age": (rung.ended or "")[:10] or source.age(cell["source"], cell["date"]),
            "source": json.loads(cell["source"]) if cell["source"] else None,
        }
        key = (*list(record.values())[:-1], cell["source"])
        if key not in self._numbers:
            self._numbers[key] = len(self._numbers) + 1
            self.records.append({"number": self._numbers[key], **record})
        return self._numbers[key], self.records[self._numbers[key] - 1]

    def words(self, record: dict[str, Any]) -> str:
        """An explanation in one line."""
        source = self._source
        said = [source.status_words(record["status"])]
        said += [record["condition"]] if record["condition"] else []
        said += [source.rung_words(record["rung"])] if record["rung"] else []
        said += [record["age"]] if record["age"] else []
        return "; ".join(said)

    def block(self) -> list[Block]:
        """All explanations as a table that cells point into."""
        source = self._source
        t = source.t
        rows: list[list[Line]] = []
        for record in self.records:
            remark = " ".join(text for text in (record["condition"], record["note"], record["reason"]) if text)
            rows.append(
                [
                    str(record["number"]),
                    source.spelled(record["status"]),
                    remark,
                    source.rung_words(record["rung"]) if record["rung"] else "",
                    record["age"] or t("unknown", "未知"),
                    source.place(json.dumps(record["source"]) if record["source"] else None),
                ]
            )
        head = [
            t("No.", "编号"),
            t("Status", "状态"),
            t("Condition, remarks", "条件与备注"),
            t("Evidence", "证据"),
            t("As of", "日期"),
            t("Source", "来源"),
        ]
        caption = t("What stands behind the cells", "单元格说明")
        anchors = [f"note-{record['number']}" for record in self.records]
        return [Heading(caption, "notes"), Table(head, rows, caption, anchors)]


def _table(
    source: Source,
    table: dict[str, Any],
    cells: list[dict[str, Any]],
    notes: _Notes,
    data: dict[str, Any],
    number: int,
    of: int,
) -> list[Block]:
    body = json.loads(table["body"])
    language, t = source.language, source.t
    columns = source.rows(
        'SELECT framework, "column", group_{l} AS grouped, heading_{l} AS heading, features FROM table_column WHERE path = ? ORDER BY ordinal',
        table["path"],
    )
    frameworks = list(dict.fromkeys(column["framework"] for column in columns))
    named = " · ".join(source.frameworks[each] for each in frameworks)
    blocks: list[Block] = [] if of == 1 else [Heading(named, f"table-{'-'.join(frameworks)}")]
    blocks += [Paragraph(body[part][language]) for part in ("title", "lead") if part in body]
    blocks.append(Paragraph([t("Source: ", "来源："), source.place(table["source"])]))
    if table["note"]:
        blocks.append(Paragraph(table["note"], "note"))
    levels = []
    if any(column["grouped"] for column in columns):
        levels.append([column["grouped"] or "" for column in columns])
    if any(body["heads"]):
        levels.append([head[language] if head else "" for head in body["heads"]])
    elif len(frameworks) > 1:
        levels.append([source.frameworks[column["framework"]] for column in columns])
    levels.append([column["heading"] for column in columns])
    grouped = _rows(cells)
    with_series = any(row[0]["series_en"] for row in grouped)
    corner = [part[language] for part in body.get("corner", ())] or [t("Series", "模型系列"), t("Model", "模型")]
    labels = corner if with_series else corner[-1:]
    marks = {**SIGNS, **body.get("marks", {})}
    rows, records = _grid_rows(source, grouped, notes, marks, with_series)
    data["tables"].append(
        {
            "path": table["path"],
            "columns": [{**column, "head": level} for column, level in zip(columns, levels[0])],
            "rows": records,
        }
    )
    caption = body["title"][language] if "title" in body else t(f"Support in {named}", f"{named} 支持情况")
    blocks.append(
        Grid(caption, _head(levels), [" / ".join(dict.fromkeys(path)) for path in zip(*levels)], rows, labels)
    )
    return blocks


def _rows(cells: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Cells of each row of the page; a row that stands for several models has each column once a model."""
    found: dict[int, list[dict[str, Any]]] = {}
    for cell in cells:
        found.setdefault(cell["row_ordinal"], []).append(cell)
    return list(found.values())


def _grid_rows(
    source: Source, grouped: list[list[dict[str, Any]]], notes: _Notes, marks: dict[str, str], with_series: bool
) -> tuple[list[GridRow], list[dict[str, Any]]]:
    starts = [number for number, row in enumerate(grouped) if number == 0 or row[0]["series_en"]]
    rows, records = [], []
    for number, row in enumerate(grouped):
        models = list(dict.fromkeys(cell["model"] for cell in row))
        own = [cell for cell in row if cell["model"] == models[0]]
        shown, said = [], []
        for cell in own:
            note, record = notes.of(cell, models)
            text = cell["text"] if cell["text"] is not None else marks[cell["status"]]
            shown.append(Status(cell["status"], text, notes.words(record), f"note-{note}"))
            said.append({"text": text, "status": cell["status"], "note": note})
        label = row[0]["label"]
        line: Line = Link(label, f"models/{models[0]}")
        if len(models) > 1:
            line = [label, " (", *joined([source.model(each) for each in models]), ")"]
        series, down = None, 1
        if with_series and number in starts:
            at = starts.index(number)
            down = (starts[at + 1] if at + 1 < len(starts) else len(grouped)) - number
            series = source.both(row[0], "series") or ""
        rows.append(GridRow(series, down, line, shown))
        records.append({"label": label, "series": source.both(row[0], "series"), "models": models, "cells": said})
    return rows, records


def _head(levels: list[list[str]]) -> list[list[Head]]:
    """Header rows; neighbours with one text under one parent are merged, the last row never is."""
    made = []
    for number, level in enumerate(levels):
        paths = list(zip(*levels[: number + 1]))
        row, place = [], 0
        while place < len(level):
            across = 1
            while number < len(levels) - 1 and place + across < len(level) and paths[place + across] == paths[place]:
                across += 1
            row.append(Head(level[place], across))
            place += across
        made.append(row)
    return made


def _legend(source: Source) -> list[Block]:
    t = source.t
    said = {
        "supported": t("the source grants it", "来源声明支持"),
        "partial": t("granted under a condition", "满足条件时支持"),
        "unsupported": t("the source says no", "来源声明不支持"),
        "not-applicable": t("the question does not arise", "不涉及该特性"),
        "withdrawn": t("was granted, and was taken away", "曾经支持，后被移除"),
        "unknown": t("no source seen says anything", "未见任何来源说明"),
    }
    rungs = {
        "claimed": t("a source says so; nothing was run", "仅有来源声明，未运行"),
        "smoke": t("the recipe ran on a CPU; it says nothing about an NPU", "配方在 CPU 上运行通过，不代表 NPU 结果"),
        "verified": t("it ran on the NPU with the release's stack", "已在 NPU 上以该版本的软件栈运行"),
        "contradicted": t("a run on the NPU shows otherwise", "NPU 上的运行与声明相反"),
        "stale": t("recipe, claim or time has moved on", "配方或声明已变更，或已过期"),
    }
    caption = t("Legend", "图例")
    rows: list[list[Line]] = [[source.status(status), source.status_words(status), said[status]] for status in SIGNS]
    rows += [[Code(rung), source.rung_words(rung), rungs[rung]] for rung in RUNGS]
    return [
        Heading(caption, "legend"),
        Table([t("Sign", "标记"), t("Word", "名称"), t("Meaning", "含义")], rows, caption),
    ]
