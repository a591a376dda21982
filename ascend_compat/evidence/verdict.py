"""Whether a document can be believed: its shape, its digest, its recipe, its log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ascend_compat.errors import UsageError
from ascend_compat.evidence.document import faults, file_digest, is_sealed, read
from ascend_compat.evidence.store import runs_dir

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb


@dataclass(frozen=True, slots=True)
class Complaint:
    """One thing wrong with a document, by its code in the catalogue, with the words of its message."""

    code: str
    words: dict[str, str]


def complaints(con: duckdb.DuckDBPyConnection, path: Path) -> list[Complaint]:
    """Everything wrong with a document; an older recipe is a remark (AC4003), the rest makes it worthless."""
    try:
        body = read(path)
    except UsageError as error:
        return [Complaint("AC4001", {"file": str(path), "reason": str(error)})]
    wrong = faults(body)
    if wrong:
        return [Complaint("AC4001", {"file": str(path), "reason": wrong[0]})]
    found = []
    if not is_sealed(body):
        found.append(Complaint("AC4002", {"file": str(path)}))
    digests = dict(con.execute("SELECT name, digest FROM recipe").fetchall())
    for number, job in enumerate(body["jobs"]):
        if digests.get(job["recipe"]) != job["recipe_digest"]:
            found.append(Complaint("AC4003", {"file": str(path), "recipe": job["recipe"]}))
        log = runs_dir() / body["id"] / f"{number}-{job['recipe']}@{job['model']}" / "framework.log"
        if log.is_file() and job["log_digest"] != file_digest(log):
            found.append(Complaint("AC4004", {"file": str(path), "log": str(log)}))
    return found
