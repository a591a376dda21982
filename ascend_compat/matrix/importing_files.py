"""An imported page beside the committed tables: which document it becomes, what it changes, and writing it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ascend_compat.errors import UsageError
from ascend_compat.files import write_whole
from ascend_compat.matrix.documents import document_files, load_document
from ascend_compat.matrix.importing import Imported, changes, compose
from ascend_compat.matrix.importing_grid import read_grid
from ascend_compat.matrix.importing_words import Words
from ascend_compat.matrix.render_yaml import flow, render
from ascend_compat.resources import matrix_dir

if TYPE_CHECKING:
    from pathlib import Path

    from ascend_compat.matrix.documents import Document


@dataclass(slots=True)
class Plan:
    """What an import would do: the document and its file, what it changes, and what the changes are counted against."""

    imported: Imported
    path: Path
    changes: list[str]
    against: str | None
    registered: bool


def plan(
    file: Path, product: str, release: str, framework: str | None = None, source: dict[str, Any] | None = None
) -> Plan:
    """Read a page and compare it with the committed tables; nothing is written.

    ``framework`` is needed only for a page about one framework that does not name it; ``source`` for a release without
    a table. Raises :class:`UsageError` for an unknown product, heading, model or word.
    """
    from ascend_compat.matrix.store import connect

    documents = product_documents(product)
    registry = next(document for document in documents if document.kind == "product")
    order = [str(entry["id"]) for entry in registry.body["releases"]]
    tables = [document for document in documents if document.kind == "table"]
    words = Words.of(product, release, [d.body for d in tables], connect())
    grid = read_grid(file)
    draft = compose(grid, file, release, words, None, framework)
    name = f"products/{product}/{release}{'.' + draft.body['framework'] if 'framework' in draft.body else ''}.yaml"
    known = _known(tables, release, draft.body, name)
    imported = compose(grid, file, release, words, known.body if known else None, framework)
    if source:
        imported.body["source"] = source
    imported.body = _ordered(imported.body)
    before = [known] if known else _latest_before(tables, order, release, imported.body)
    return Plan(
        imported=imported,
        path=matrix_dir() / (known.path if known else name),
        changes=changes([document.body for document in before], imported.body),
        against=", ".join(dict.fromkeys(str(document.body["release"]) for document in before)) or None,
        registered=release in order,
    )


def product_documents(product: str) -> list[Document]:
    """The registry and the tables of one product; raises :class:`UsageError` for a product without a registry."""
    root = matrix_dir()
    folder = root / "products" / product
    if not re.fullmatch(r"[a-z0-9][a-z0-9.\-]*", product) or not (folder / "product.yaml").is_file():
        known = ", ".join(sorted(path.parent.name for path in root.glob("products/*/product.yaml")))
        raise UsageError(f"product {product!r} is not known; known are {known}")
    return [load_document(path, root) for path in document_files(folder)]


def write(plan: Plan) -> None:
    """Write the document; a release the registry does not hold is added at its end, first: a table of none cannot be built.

    Raises :class:`UsageError` when the document has no source, :class:`DataError` where the disk refuses.
    """
    body = plan.imported.body
    if "source" not in body:
        raise UsageError("a table needs the page it comes from: give --source URL (and --date)")
    if not plan.registered:
        _register(plan.path.parent / "product.yaml", body)
    write_whole(plan.path, render(body))


def _known(tables: list[Document], release: str, draft: dict[str, Any], name: str) -> Document | None:
    """The release's committed table: of the same name, or the one that holds the same frameworks."""
    own = [document for document in tables if str(document.body["release"]) == release]
    frameworks = {column["framework"] for column in draft["columns"]}
    held = [d for d in own if frameworks <= {column["framework"] for column in d.body["columns"]}]
    return next((document for document in own if document.path == name), held[0] if held else None)


def _latest_before(tables: list[Document], order: list[str], release: str, body: dict[str, Any]) -> list[Document]:
    """For each framework, its newest table older than the release."""
    place = order.index(release) if release in order else len(order)
    found: dict[str, Document] = {}
    for framework in dict.fromkeys(column["framework"] for column in body["columns"]):
        older = [
            document
            for document in tables
            if order.index(str(document.body["release"])) < place
            and any(column["framework"] == framework for column in document.body["columns"])
        ]
        if older:
            newest = max(older, key=lambda document: order.index(str(document.body["release"])))
            found.setdefault(newest.path, newest)
    return list(found.values())


def _ordered(body: dict[str, Any]) -> dict[str, Any]:
    names = (
        "kind",
        "product",
        "release",
        "framework",
        "inferred",
        "source",
        "note",
        "title",
        "lead",
        "corner",
        "marks",
    )
    return {name: body[name] for name in (*names, "columns", "rows") if name in body}


def _register(path: Path, body: dict[str, Any]) -> None:
    source = body["source"]
    page = source if isinstance(source, dict) else source[0]
    date = page.get("date", "unknown")
    lines = [f"  - id: {flow(body['release'])}", f"    date: {flow(date)}"]
    lines += [
        f"    date_of: {'unknown' if date == 'unknown' else 'page'}",
        "    aliases: []",
        f"    pages: [{flow(page)}]",
    ]
    lines.append("    frameworks:")
    for framework in dict.fromkeys(column["framework"] for column in body["columns"]):
        lines.append(f"      {framework}: {{table: full, version: unknown}}")
    text = path.read_text(encoding="utf-8")
    write_whole(path, text.rstrip("\n") + "\n" + "\n".join(lines) + "\n")
