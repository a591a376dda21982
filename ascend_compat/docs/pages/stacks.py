"""Stack pages: which versions of software and hardware go together, a page a table."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from ascend_compat.docs.page import Code, Heading, Link, Outside, Page, Paragraph, Table

if TYPE_CHECKING:
    from ascend_compat.docs.page import Line, Piece
    from ascend_compat.docs.source import Source

_TITLES = {
    "stack_framework_bounds": ("What frameworks require of packages", "框架对软件包的要求"),
    "stack_hardware": ("Hardware", "硬件"),
    "stack_hdk": ("Driver and firmware", "驱动与固件"),
    "stack_model_transformers": ("Model types and transformers", "模型类型与 transformers"),
    "stack_products": ("Versions products name", "各产品列出的版本"),
    "stack_sets": ("Versions a release documents together", "版本配套"),
    "stack_torch_npu": ("torch_npu, PyTorch and CANN", "torch_npu、PyTorch 与 CANN"),
    "stack_torch_npu_lifecycle": ("Life of torch_npu lines", "torch_npu 版本生命周期"),
    "stack_torch_python": ("PyTorch and Python", "PyTorch 与 Python"),
    "stack_torch_vision": ("PyTorch, torchvision and torchaudio", "PyTorch、torchvision 与 torchaudio 版本"),
    "stack_vllm_ascend": ("vLLM and vLLM Ascend", "vLLM 与 vLLM Ascend"),
}
_DATED_ADDRESS = re.compile(r"^(https?://\S+?)(?: \((.+)\))?$")


def pages(source: Source) -> list[Page]:
    """The index of stack tables, and one page each."""
    t = source.t
    tables = source.rows("SELECT id, source, note_{l} AS note FROM stack_table WHERE kind = 'stack' ORDER BY id")
    index = Page(
        "stacks/index",
        "index",
        t("Software and hardware", "软件栈与硬件"),
        "index",
        {"tables": [row["id"] for row in tables]},
    )
    made = [index]
    body: list[list[Line]] = []
    for row in tables:
        page = _page(source, row)
        made.append(page)
        body.append([Link(page.title, page.id), Code(row["id"]), str(len(page.data["rows"]))])
    index.blocks.append(
        Paragraph(
            [
                t("To check a host or a list of packages: ", "检查主机或软件包列表："),
                Code("ascend-compat doctor"),
                ", ",
                Code("ascend-compat stack check FILE"),
            ],
            "lead",
        )
    )
    index.blocks.append(
        Table([t("Table", "表"), t("Id", "标识"), t("Rows", "行数")], body, t("Tables of versions", "版本表"))
    )
    return made


def _page(source: Source, listed: dict[str, Any]) -> Page:
    t = source.t
    table, place = listed["id"], listed["source"]
    title = t(*_TITLES.get(table, (table, table)))
    rows = source.rows(f'SELECT * FROM "{table}"')
    other = {"en": "zh", "zh": "en"}[source.language]
    kept = [
        name for name in (rows[0] if rows else {}) if not name.endswith(f"_{other}") and any(row[name] for row in rows)
    ]
    kept.sort(key=lambda name: (name == "source", name.startswith("note_")))
    page = Page(
        f"stacks/{table.removeprefix('stack_').replace('_', '-')}",
        "stack",
        title,
        "stacks/index",
        {"table": table, "rows": rows},
        wide=True,
    )
    if listed["note"]:
        page.blocks.append(Paragraph(_marked(listed["note"]), "lead"))
    if place:
        page.blocks.append(Paragraph([t("Source: ", "来源："), source.place(place)]))
    groups = list(dict.fromkeys(row.get("product") for row in rows)) if "product" in kept and len(rows) > 60 else [None]
    for group in groups:
        own = [row for row in rows if group is None or row["product"] == group]
        shown = [name for name in kept if any(row[name] for row in own)]
        if group is not None:
            page.blocks.append(Heading(source.products.get(group, group), group.replace(" ", "-")))
        heads = [t("remarks", "备注") if name == f"note_{source.language}" else name for name in shown]
        body = [[_value(source, row[name]) for name in shown] for row in own]
        page.blocks.append(Table(heads, body, f"{title} {source.products.get(group, group) if group else ''}".strip()))
    return page


def _marked(text: str) -> list[Piece]:
    """A note with what it has in backquotes as code."""
    return [Code(part) if number % 2 else part for number, part in enumerate(text.split("`")) if part]


def _value(source: Source, value: Any) -> Line:
    text = "" if value is None else str(value)
    found = _DATED_ADDRESS.match(text)
    if found:
        address, date = found.groups()
        return Outside(address.rstrip("/").rsplit("/", 1)[-1] + (f" ({date})" if date else ""), address)
    if text.startswith("{"):
        try:
            return source.place(json.dumps(json.loads(text)))
        except ValueError:
            return text
    return text
