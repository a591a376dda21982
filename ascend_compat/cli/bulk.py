"""``ascend-compat audit-jobs``: a Parquet file of jobs' facts against a framework's rules and a release's claims."""

from __future__ import annotations

import sys

import click

from ascend_compat.cli.options import write


@click.command("audit-jobs")
@click.argument("file", type=click.Path())
@click.option("--framework", required=True, help="The framework all rows are jobs of.")
@click.option("--framework-version", help="Its version (default: the newest).")
@click.option("--product", help="Whose tables answer (default: the framework's own product).")
@click.option("--release", help="The product's release (default: the newest that states the framework completely).")
@click.option("--output", type=click.Path(), help="Write each row's verdict to this Parquet file.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def audit_jobs(
    file: str,
    framework: str,
    framework_version: str | None,
    product: str | None,
    release: str | None,
    output: str | None,
    form: str,
) -> None:
    """Check every row of FILE (Parquet): columns are facts by name, and 'model' by id; an empty one is unset.

    Exit code: 0 nothing forbids any row, 1 some row is unsupported or impossible, 2 wrong usage or unreadable input.
    """
    from dataclasses import asdict

    from ascend_compat.check import api
    from ascend_compat.check.bulk import audit
    from ascend_compat.check.engine import Engine
    from ascend_compat.matrix.store import connect

    con = connect()
    engine = Engine(con)
    named = engine.names.framework(framework) or framework
    known = api.known(con, product, release)
    found = audit(engine, file, named, framework_version, *known, output)
    if form == "json":
        import json

        write(json.dumps(asdict(found), ensure_ascii=False))
    else:
        lines = [
            f"{found.jobs} jobs of {found.framework} {found.version} against {found.product} {found.release or '?'}"
        ]
        lines += [f"{count:>12}  {verdict}" for verdict, count in found.verdicts.items() if count]
        lines += [f"{count:>12}  {rule}" for rule, count in found.broken.items()]
        write("\n".join(lines))
    forbidden = found.verdicts["unsupported"] + found.verdicts["impossible"]
    sys.exit(1 if forbidden else 0)
