"""What a release's page has around its table: title, first sentence, marks, heads above its columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascend_compat.matrix.build import Table, first_source, in_both, json_text, of_kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascend_compat.matrix.documents import Document

_KEPT = ("title", "lead", "corner", "marks")


def tables(documents: Sequence[Document]) -> list[Table]:
    """``table_page``: one row a table document; ``body`` holds title, lead, corner, marks, and the ``heads`` in column order."""
    names = ("path", "product", "release", "source", "note_en", "note_zh", "body")
    page = Table("table_page", dict.fromkeys(names, "VARCHAR"))
    for document in of_kind(documents, "table"):
        body = document.body
        note_en, note_zh = in_both(body.get("note"))
        kept = {name: body[name] for name in _KEPT if name in body}
        page.add(
            path=document.path,
            product=str(body["product"]),
            release=str(body["release"]),
            source=json_text(first_source(body.get("source"))),
            note_en=note_en,
            note_zh=note_zh,
            body=json_text({**kept, "heads": [column.get("head") for column in body.get("columns") or ()]}),
        )
    return [page]
