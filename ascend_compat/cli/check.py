"""``ascend-compat check``: job files, or names, against the matrix."""

from __future__ import annotations

import os
import sys

import click

from ascend_compat.cli.options import language, language_option, wants_colour, write
from ascend_compat.errors import UsageError
from ascend_compat.report.formats import FORMATS


@click.command()
@click.argument("jobs", nargs=-1, type=click.Path())
@click.option("--model", help="Ask by names: the model.")
@click.option("--framework", help="The framework; with job files: how to read them.")
@click.option("--feature", "features", multiple=True, help="A feature asked for; may be repeated.")
@click.option(
    "--queries", type=click.Path(), help='JSON Lines of {"model", "framework", "features"}: many questions at once.'
)
@click.option("--product", help="Whose tables answer (default: by the form of the job).")
@click.option("--release", help="The product's release (default: the newest that states the framework completely).")
@click.option("--framework-version", help="The framework version that reads the job's keys.")
@click.option("--stack", help="A stack file, or 'auto' for this host.")
@click.option("--recursive", is_flag=True, help="Look for job files below directories, by content.")
@click.option("--jobs-only", is_flag=True, help="Pass over files that hold no job, as a folder's are.")
@click.option(
    "--lock", type=click.Path(), help="Compare with the verdicts in this lock; without JOBS: of the files it holds."
)
@click.option("--strict", is_flag=True, help="Unverified jobs and warnings exit 1 too.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True)
@language_option
def check(
    jobs: tuple[str, ...],
    model: str | None,
    framework: str | None,
    features: tuple[str, ...],
    queries: str | None,
    product: str | None,
    release: str | None,
    framework_version: str | None,
    stack: str | None,
    recursive: bool,
    jobs_only: bool,
    lock: str | None,
    strict: bool,
    form: str,
    color: str,
    lang: str | None,
) -> None:
    """Check JOBS (files, directories with --recursive, or - for stdin), or names, against the matrix.

    Exit code: 0 nothing forbids it, 1 unsupported or impossible, 2 wrong usage or unreadable input, 3 internal error.
    """
    from ascend_compat.check import api
    from ascend_compat.check.engine import Options
    from ascend_compat.check.many import processors
    from ascend_compat.check.settings import site_settings
    from ascend_compat.matrix.store import connect
    from ascend_compat.report.formats import render

    if lock is not None:
        from pathlib import Path

        from ascend_compat.cli.lock import locked_jobs, report_changes

        jobs = jobs or tuple(locked_jobs(Path(lock)))
    site = site_settings()
    product = product or os.environ.get("ASCEND_COMPAT_PRODUCT") or site.product
    release = release or site.release
    asked = [bool(jobs), model is not None, queries is not None]
    if sum(asked) != 1:
        raise UsageError(
            "give either job files, or --model with --framework, or --queries; see: ascend-compat check --help"
        )
    if jobs_only:
        from ascend_compat.jobs.read import holds_job

        jobs = tuple(job for job in jobs if holds_job(job, framework))
        if not jobs:
            return
    con = connect()
    if queries is not None:
        reports = api.check_names(con, api.read_queries(queries, product, release))
    elif model is not None:
        reports = api.check(con, model=model, framework=framework, features=features, product=product, release=release)
    else:
        options = Options(*api.known(con, product, release), framework_version, api.stack_facts(con, stack))
        found = api.check_paths(
            con, jobs, framework=framework, recursive=recursive, options=options, processes=processors()
        )
        reports = list(found)
    words = language(lang)
    if lock is not None:
        report_changes(Path(lock), reports, words)
    write(render(form, reports, words, wants_colour(color)))
    sys.exit(api.exit_code(reports, strict))
