"""Documents into tables, tables into one DuckDB file. Names of tables and columns are an interface: docs/views.md."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import duckdb

    from ascend_compat.matrix.documents import Document

# small blocks: many small tables, a database of hundreds of kilobytes instead of megabytes
_BLOCK_SIZE = 16384
_ENCODER = json.JSONEncoder(ensure_ascii=False, default=str, separators=(",", ":"))
_JSON_TYPES = {"VARCHAR[]": ["VARCHAR"]}


class Table:
    """Rows of one table while it is put together; a row is a mapping, a column it leaves out is NULL."""

    def __init__(self, name: str, columns: dict[str, str]) -> None:
        self.name = name
        self.columns = columns
        self.rows: list[dict[str, Any]] = []

    def add(self, **row: Any) -> None:
        """Append one row."""
        self.rows.append(row)


def tables_of(documents: Sequence[Document]) -> list[Table]:
    """Every table of the database, filled."""
    from ascend_compat.matrix import (
        build_claims,
        build_evidence,
        build_frameworks,
        build_models,
        build_pages,
        build_plans,
        build_products,
        build_recipes,
    )

    products = build_products.tables(documents)
    ordinals = {(row["product"], row["release"]): row["ordinal"] for row in products["release"].rows}
    models = build_models.tables(documents)
    return [
        *products.values(),
        *build_claims.tables(documents, ordinals),
        *models,
        *build_frameworks.tables(documents, products, ordinals, models[0]),
        *build_pages.tables(documents),
        *build_plans.tables(documents),
        *_stacks(documents),
        *build_evidence.tables(documents),
        build_recipes.table(build_recipes.read_recipes()),
    ]


def write_database(path: str, documents: Sequence[Document], content_hash: str) -> None:
    """Build the database file at ``path``, which must not exist yet (or in memory: ``:memory:`` is refused)."""
    import duckdb

    con = duckdb.connect()
    try:
        con.execute(f"ATTACH {_text(path)} AS matrix (BLOCK_SIZE {_BLOCK_SIZE})")
        con.execute("USE matrix")
        fill(con, documents, content_hash)
        con.execute("CHECKPOINT matrix")
        con.execute("USE memory")
        con.execute("DETACH matrix")
    finally:
        con.close()


def fill(con: duckdb.DuckDBPyConnection, documents: Sequence[Document], content_hash: str) -> None:
    """Create and fill every table in the connection's current database."""
    from ascend_compat._version import __version__
    from ascend_compat.matrix.build_evidence import views
    from ascend_compat.matrix.macros import MACROS

    meta = Table("meta", {"key": "VARCHAR", "value": "VARCHAR"})
    meta.add(key="content_hash", value=content_hash)
    meta.add(key="version", value=__version__)
    meta.add(key="documents", value=str(len(documents)))
    con.execute("BEGIN")
    for macro in MACROS:
        con.execute(macro)
    for table in [meta, *tables_of(documents)]:
        _create(con, table)
    for view in views():
        con.execute(view)
    con.execute("COMMIT")


def _create(con: duckdb.DuckDBPyConnection, table: Table) -> None:
    names = ", ".join(f"{quoted(name)} {kind}" for name, kind in table.columns.items())
    con.execute(f"CREATE TABLE {quoted(table.name)} ({names})")
    if not table.rows:
        return
    # one JSON text of all columns costs a third of what the same values cost as parameters
    values = {f"c{at}": [row.get(name) for row in table.rows] for at, name in enumerate(table.columns)}
    shape = {f"c{at}": [_JSON_TYPES.get(kind, kind)] for at, kind in enumerate(table.columns.values())}
    columns = ", ".join(f"unnest(j.{key})" for key in values)
    insert = f"INSERT INTO {quoted(table.name)} SELECT {columns} FROM (SELECT from_json($values, $shape) AS j)"
    con.execute(insert, {"values": json_text(values), "shape": json_text(shape)})


def quoted(name: str) -> str:
    """An identifier as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def json_text(value: Any) -> str | None:
    """A value of a document as JSON text; None stays None, dates become text."""
    return None if value is None else _ENCODER.encode(value)


def first_source(source: Any) -> Any:
    """The leading source where a document names several."""
    return source[0] if isinstance(source, list) else source


def in_both(value: Any) -> tuple[str | None, str | None]:
    """The English and Chinese wording of a document's value: ``{en, zh}``, or one text for both."""
    if value is None:
        return None, None
    if isinstance(value, dict):
        english, chinese = value.get("en"), value.get("zh")
        return english or chinese, chinese or english
    return str(value), str(value)


def of_kind(documents: Iterable[Document], kind: str) -> list[Document]:
    """The documents of one kind."""
    return [document for document in documents if document.kind == kind]


def _stacks(documents: Sequence[Document]) -> list[Table]:
    listed = Table("stack_table", dict.fromkeys(("id", "kind", "path", "source", "note_en", "note_zh"), "VARCHAR"))
    tables: dict[str, Table] = {}
    for document in documents:
        rows = document.body.get("rows")
        if not document.path.startswith("stacks/") or not isinstance(rows, list):
            continue
        name = str(document.body.get("id") or document.path.rsplit("/", 1)[-1].rsplit(".", 1)[0])
        name = "stack_" + re.sub(r"[^a-z0-9]+", "_", name.lower())
        told = json_text(document.body.get("source"))
        note_en, note_zh = in_both(document.body.get("notes"))
        listed.add(id=name, kind=document.kind, path=document.path, source=told, note_en=note_en, note_zh=note_zh)
        columns: dict[str, str] = {}
        for row in rows:
            columns.update(dict.fromkeys(map(_column, row), "VARCHAR"))
        table = tables.setdefault(name, Table(name, columns))
        table.columns.update(columns)
        table.rows += [{_column(key): _flat(value) for key, value in row.items()} for row in rows]
    return [listed, *tables.values()]


def _column(key: Any) -> str:
    # YAML 1.1 reads a bare ``on`` as true
    return "on" if key is True else str(key)


def _flat(value: Any) -> Any:
    return json_text(value) if isinstance(value, (dict, list)) else value
