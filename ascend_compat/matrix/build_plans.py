"""Job templates, layouts that official scripts use, published minimum numbers of devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascend_compat.matrix.build import Table, json_text, of_kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascend_compat.matrix.documents import Document


def tables(documents: Sequence[Document]) -> list[Table]:
    """``template``, ``layout`` and ``minimum_devices``."""
    template = Table("template", dict.fromkeys(("framework", "body"), "VARCHAR"))
    for document in of_kind(documents, "templates"):
        template.add(framework=document.body["framework"], body=json_text(document.body))
    layout = Table(
        "layout",
        {
            **dict.fromkeys(("framework", "model", "method", "sizes", "source"), "VARCHAR"),
            "devices": "BIGINT",
            "seq_length": "BIGINT",
        },
    )
    for document in of_kind(documents, "layouts"):
        place = document.body["source"]
        for row in document.body["layouts"]:
            layout.add(
                framework=document.body["framework"],
                model=row["model"],
                method=row["method"],
                devices=row["devices"],
                seq_length=row.get("seq_length"),
                sizes=json_text(row["sizes"]),
                source=f"{place['repo']}:{row['script']}@{str(place['commit'])[:12]}",
            )
    return [template, layout, _minimum_devices(documents)]


def _minimum_devices(documents: Sequence[Document]) -> Table:
    table = Table(
        "minimum_devices",
        {
            **dict.fromkeys(
                ("product", "release", "model", "framework", "method", "label", "said", "source"), "VARCHAR"
            ),
            "seq_length": "BIGINT",
            "snt9b": "BIGINT",
            "snt9b23": "BIGINT",
        },
    )
    for document in of_kind(documents, "minimum-devices"):
        sources = document.body["sources"]
        for row in document.body["rows"]:
            counts = {card: row[card] if isinstance(row[card], int) else None for card in ("snt9b", "snt9b23")}
            for method in row["methods"]:
                for length in row["seq_lengths"]:
                    table.add(
                        product=document.body["product"],
                        release=row["release"],
                        model=row["model"],
                        framework=row["framework"],
                        method=method,
                        seq_length=length,
                        label=row["label"],
                        said=f"{row['snt9b']} / {row['snt9b23']}",
                        source=json_text(sources[row["source"]]),
                        **counts,
                    )
    return table
