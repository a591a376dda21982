"""Proof records: what the frameworks' own code said to the examples of rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascend_compat.matrix.build import Table, json_text, of_kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascend_compat.matrix.documents import Document


def proof_table(documents: Sequence[Document]) -> Table:
    """``proof``: a row a record. A rule rests on proof only where one is here."""
    names = ("rule", "framework", "repo", "commit", "version", "date", "accepted", "refused", "said", "place")
    table = Table("proof", dict.fromkeys(names, "VARCHAR"))
    for document in of_kind(documents, "proofs"):
        for body in document.body.get("proofs") or ():
            row = {name: body.get("at" if name == "place" else name) for name in names}
            row |= {"framework": document.body["framework"]}
            row |= {name: json_text(body[name]) for name in ("accepted", "refused")}
            table.add(**row)
    return table
