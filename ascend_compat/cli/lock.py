"""``ascend-compat lock``, and the comparison of ``check --lock``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ascend_compat.cli.options import write
from ascend_compat.errors import UsageError

if TYPE_CHECKING:
    from ascend_compat.check.finding import Report


@click.command()
@click.argument("jobs", nargs=-1, required=True, type=click.Path())
@click.option("--framework", help="How to read the job files.")
@click.option("--product", help="Whose tables answer (default: by the form of the job).")
@click.option("--release", help="The product's release (default: the newest that states the framework completely).")
@click.option("--framework-version", help="The framework version that reads the job's keys.")
@click.option("--recursive", is_flag=True, help="Look for job files below directories, by content.")
@click.option("--output", "-o", default=None, help="The lock file (default: ascend-compat.lock.json; - is stdout).")
def lock(
    jobs: tuple[str, ...],
    framework: str | None,
    product: str | None,
    release: str | None,
    framework_version: str | None,
    recursive: bool,
    output: str | None,
) -> None:
    """Write today's verdicts of JOBS into a lock, which ``check --lock`` holds later releases to.

    Paths in the lock are relative to the lock, so that it can be committed beside the jobs.
    """
    from ascend_compat.check import api
    from ascend_compat.check import lock as locks
    from ascend_compat.check.engine import Options
    from ascend_compat.matrix.store import connect

    path = Path(output or locks.FILE)
    con = connect()
    options = Options(*api.known(con, product, release), framework_version)
    reports = list(api.check_paths(con, jobs, framework=framework, recursive=recursive, options=options))
    unreadable = [report.file for report in reports if report.verdict == "unreadable"]
    if unreadable:
        raise UsageError(f"no job can be read in {unreadable[0]}; see: ascend-compat check {unreadable[0]}")
    if output == "-":
        write(locks.render(reports, Path()).rstrip("\n"))
        return
    try:
        path.write_text(locks.render(reports, path.parent), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {(error.strerror or str(error)).lower()}") from None
    click.echo(f"{path}: {len(reports)}", err=True)


_WORDS = {
    "en": {
        "none": "not there", "same": "{file}: {jobs} jobs, verdicts as locked", "why": "because",
        "changed": "{file}: {changed} of {jobs} jobs differ from the lock",
    },
    "zh": {
        "none": "不存在", "same": "{file}：共 {jobs} 个作业，结论与锁文件一致", "why": "原因",
        "changed": "{file}：{jobs} 个作业中有 {changed} 个与锁文件不一致",
    },
}  # fmt: skip


def locked_jobs(path: Path) -> list[str]:
    """The files a lock holds, as paths from here."""
    from ascend_compat.check.lock import read

    return list(dict.fromkeys(str(path.parent / job["file"]) for job in read(path)))


def report_changes(path: Path, reports: list[Report], language: str) -> None:
    """Say which verdicts differ from the lock; exits 1 when one does, else 0."""
    from ascend_compat.check.lock import compare, read
    from ascend_compat.report.text import label, safe

    words = _WORDS[language]
    changes = compare(read(path), reports, path.parent)
    lines = []
    for change in changes:
        before, after = (
            label(verdict, language) if verdict else words["none"] for verdict in (change.before, change.after)
        )
        lines.append(f"{safe(change.file)}: {before} -> {after}")
        lines += [f"   = {words['why']}: {safe(why.in_language(language))}" for why in change.why]
    line = words["changed" if changes else "same"]
    lines.append(line.format(file=path, jobs=len(reports), changed=len(changes)))
    write("\n".join(lines))
    sys.exit(1 if changes else 0)
