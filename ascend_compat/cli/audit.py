"""``ascend-compat audit``: how much is known of every release's cells."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ascend_compat.cli.options import write
from ascend_compat.errors import UsageError

if TYPE_CHECKING:
    from ascend_compat.evidence.audit import Audit


@click.command()
@click.option("--product", default="ascendfactory", show_default=True, help="The product, or 'all'.")
@click.option("--release", help="Only this release.")
@click.option("--framework", help="Only this framework.")
@click.option("--fail-on", default="", help="Rungs that fail the audit: contradicted, stale (comma-separated).")
@click.option("--ratchet", "held", type=click.Path(dir_okay=False), help="A file of proven counts that may not fall.")
@click.option("--committed", is_flag=True, help="Leave the user's own evidence out.")
@click.option("--format", "form", type=click.Choice(["text", "json", "markdown"]), default="text", show_default=True)
def audit(
    product: str,
    release: str | None,
    framework: str | None,
    fail_on: str,
    held: str | None,
    committed: bool,
    form: str,
) -> None:
    """Count what is claimed, smoke-tested, verified, contradicted and stale, the worst release and framework first.

    Exit code: 0 nothing fails it, 1 a cell on a rung of --fail-on, or a ratchet fell.
    """
    from ascend_compat.evidence import audit as auditing
    from ascend_compat.evidence.store import layer
    from ascend_compat.matrix.names import Names
    from ascend_compat.matrix.store import connect

    con = connect()
    names = Names(con)
    owner = None if product == "all" else names.product(product)
    if owner is None and product != "all":
        raise UsageError(
            f"no product is called {product!r}; nearest: {', '.join(names.suggest_products(product)) or 'none'}"
        )
    at = names.release(owner, release) if release and owner else release
    if release and at is None:
        nearest = ", ".join(names.suggest_releases(str(owner), release)) or "none"
        raise UsageError(f"no release of {owner} is called {release!r}; nearest: {nearest}")
    named = names.framework(framework) if framework else None
    if framework and named is None:
        raise UsageError(
            f"no framework is called {framework!r}; nearest: {', '.join(names.suggest_frameworks(framework)) or 'none'}"
        )
    wanted = [word.strip() for word in fail_on.split(",") if word.strip()]
    if unknown := set(wanted) - {"contradicted", "stale"}:
        raise UsageError(f"--fail-on takes contradicted and stale, not {', '.join(sorted(unknown))}")
    if not committed:
        layer(con)
    result = auditing.audit(con, owner, at, named, wanted)
    if held:
        auditing.ratchet(result, Path(held))
    write(_render(result, form))
    sys.exit(0 if result.passed else 1)


def _render(result: Audit, form: str) -> str:
    from ascend_compat.evidence.audit import table

    if form == "json":
        return json.dumps(_plain(result), ensure_ascii=False, indent=2)
    rows = [list(map(str, row)) for row in table(result)]
    notes = [
        f"{cell['state']}: {cell['release']} {cell['framework']} {cell['model']} {cell['feature']}: {cell['reason_en']}"
        for cell in result.failing
    ]
    notes += [f"fell: {entry}" for entry in result.fallen]
    notes += [f"expired waiver: {entry}" for entry in result.expired]
    total = f"{result.total('verified')} cells are verified on an NPU, {result.total('smoke')} are smoke-tested, of {sum(line.cells for line in result.lines)}"
    if form == "markdown":
        lines = ["| " + " | ".join(row) + " |" for row in rows]
        lines.insert(1, "|" + "---|" * len(rows[0]))
        return "\n".join([*lines, "", total, *(f"- {note}" for note in notes)])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip() for row in rows]
    return "\n".join([*lines, total, *notes])


def _plain(result: Audit) -> dict[str, Any]:
    from ascend_compat.evidence.audit import STATES

    return {
        "schema_version": 1,
        "totals": {
            "cells": sum(line.cells for line in result.lines),
            "supported": sum(line.supported for line in result.lines),
            **{state: result.total(state) for state in STATES},
        },
        "lines": [
            {
                "product": line.product,
                "release": line.release,
                "framework": line.framework,
                "cells": line.cells,
                "supported": line.supported,
                **line.states,
                "waived": line.waived,
                "shares": {state: round(line.share(state), 4) for state in STATES},
            }
            for line in result.lines
        ],
        "failing": result.failing,
        "fallen": result.fallen,
        "expired_waivers": result.expired,
    }
