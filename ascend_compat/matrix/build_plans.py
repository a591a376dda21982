"""Job templates and the layouts that official scripts use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascend_compat.matrix.build import Table, json_text, of_kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascend_compat.matrix.documents import Document


def tables(documents: Sequence[Document]) -> list[Table]:
    """``template`` and ``layout``."""
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
    return [template, layout]
