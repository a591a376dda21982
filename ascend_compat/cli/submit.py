"""``ascend-compat submit``: check the job a command would start, then become that command."""

from __future__ import annotations

import os
import sys

import click

from ascend_compat.cli.options import language, language_option


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("--product", help="Whose tables answer (default: by the form of the job).")
@click.option("--release", help="The product's release.")
@click.option("--framework-version", help="The framework version that reads the job's keys.")
@click.option("--stack", help="A stack file, or 'auto' for this host.")
@click.option("--strict", is_flag=True, help="Unverified jobs, warnings, and commands without a job are refused, too.")
@click.option("--dry-run", is_flag=True, help="Check and stop there.")
@language_option
def submit(
    command: tuple[str, ...],
    product: str | None,
    release: str | None,
    framework_version: str | None,
    stack: str | None,
    strict: bool,
    dry_run: bool,
    lang: str | None,
) -> None:
    """Check the job in COMMAND (sbatch, srun, kubectl apply -f, torchrun, bash run.sh, …) and run it if nothing forbids it.

    \b
    ascend-compat submit -- sbatch job.sh

    The command replaces this process, untouched: its exit code, signals and standard streams are its own.
    A rejected job runs nothing and exits 1; one that cannot be read exits 2. What is found goes to standard error.
    """
    from ascend_compat.check import api
    from ascend_compat.check.engine import Engine, Options
    from ascend_compat.check.finding import Report
    from ascend_compat.check.settings import site_settings
    from ascend_compat.jobs.command import NAME, read_command
    from ascend_compat.matrix.store import connect
    from ascend_compat.report.formats import render

    words = language(lang)
    site = site_settings()
    con = connect()
    product = product or os.environ.get("ASCEND_COMPAT_PRODUCT") or site.product
    known = api.known(con, product, release or site.release)
    options = Options(*known, framework_version, api.stack_facts(con, stack))
    found = read_command(command, os.environ)
    engine = Engine(con)
    reports = engine.check(found.launches, options)
    for report in reports:
        report.file = " ".join(command) if report.file == NAME else report.file
    for file, problem in found.errors:
        reports.append(Report(file, None, None, None, None, None, "unreadable", [engine.problem(problem)]))
    con.close()
    if reports:
        click.echo(render("text", reports, words), err=True)
    else:
        click.echo(_NO_JOB[words], err=True)
    code = api.exit_code(reports, strict) if reports else int(strict)
    if code or dry_run:
        sys.exit(code)
    _become(command)


_NO_JOB = {
    "en": "ascend-compat: no training job recognised in this command; nothing was checked",
    "zh": "ascend-compat：未在该命令中识别到训练作业，未做任何检查",
}


def _become(command: tuple[str, ...]) -> None:
    """Replace this process; what Python did to signals is undone first."""
    import signal

    sys.stdout.flush()
    sys.stderr.flush()
    for name in ("SIGPIPE", "SIGXFSZ"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except FileNotFoundError:
        click.echo(f"error: {command[0]}: command not found", err=True)
        sys.exit(127)
    except OSError as error:
        click.echo(f"error: {command[0]}: {(error.strerror or str(error)).lower()}", err=True)
        sys.exit(126)
