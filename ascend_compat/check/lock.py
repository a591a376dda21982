"""A lock: the verdicts of a set of job files on one day, and what has changed since."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ascend_compat.check.finding import VERDICTS, Text
from ascend_compat.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ascend_compat.check.finding import Report

FILE = "ascend-compat.lock.json"
VERSION = 1
_ASKED = ("product", "release", "framework", "framework_version")
_MAX_BYTES = 20_000_000


@dataclass(frozen=True, slots=True)
class Change:
    """One job whose verdict is not the locked one: what it was, what it is, and why, a sentence each."""

    file: str
    before: str | None
    after: str | None
    why: tuple[Text, ...]


def entries(reports: Iterable[Report], base: Path) -> list[dict[str, Any]]:
    """What a lock keeps of reports; files are written relative to ``base``, the folder of the lock."""
    listed = []
    for report in reports:
        codes = sorted({finding.code for finding in report.findings if finding.severity != "note"})
        listed.append(
            {
                "file": _relative(report.file, base),
                "digest": _digest(report.file),
                "product": report.product,
                "release": report.release,
                "framework": report.framework,
                "framework_version": report.version,
                "verdict": report.verdict,
                "codes": codes,
            }
        )
    return listed


def render(reports: Iterable[Report], base: Path) -> str:
    """The text of a lock file; the same verdicts give the same text."""
    return json.dumps({"lock_version": VERSION, "jobs": entries(reports, base)}, ensure_ascii=False, indent=2) + "\n"


def read(path: Path) -> list[dict[str, Any]]:
    """The jobs of a lock file; raises :class:`UsageError` where it is none."""
    try:
        if path.exists() and not path.is_file():
            raise UsageError(f"{path} is not a regular file")
        if path.stat().st_size > _MAX_BYTES:
            raise UsageError(f"{path} is larger than a lock may be ({_MAX_BYTES // 1_000_000} MB)")
        body = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"cannot read the lock {path}: {' '.join(str(error).split())}") from None
    if not isinstance(body, dict) or body.get("lock_version") != VERSION or not isinstance(body.get("jobs"), list):
        raise UsageError(f"{path} is not a lock of version {VERSION}; write one with: ascend-compat lock FILE…")
    for number, job in enumerate(body["jobs"], 1):
        if not _is_job(job):
            raise UsageError(f"{path}: job {number} is not as a lock writes it")
    jobs: list[dict[str, Any]] = body["jobs"]
    return jobs


def _is_job(job: Any) -> bool:
    return (
        isinstance(job, dict)
        and isinstance(job.get("file"), str)
        and job.get("verdict") in VERDICTS
        and isinstance(job.get("codes"), list)
        and all(isinstance(code, str) for code in job["codes"])
        and all(job.get(name) is None or isinstance(job[name], str) for name in (*_ASKED, "digest"))
    )


def compare(locked: Sequence[dict[str, Any]], reports: Sequence[Report], base: Path) -> list[Change]:
    """Jobs whose verdict differs from the locked one, and jobs that only one side knows."""
    before = _by_place(locked)
    now = entries(reports, base)
    messages = {
        place: {finding.code: finding.message for finding in report.findings}
        for place, report in zip(_by_place(now), reports)
    }
    after = _by_place(now)
    changes = []
    for place in [*before, *(place for place in after if place not in before)]:
        old, new = before.get(place), after.get(place)
        if old is None:
            assert new is not None
            why = (Text("the lock does not hold this job", "锁文件中没有该作业"),)
            changes.append(Change(place[0], None, new["verdict"], why))
        elif new is None:
            why = (Text("the file no longer starts this job", "该文件不再启动此作业"),)
            changes.append(Change(place[0], old["verdict"], None, why))
        elif old["verdict"] != new["verdict"]:
            changes.append(Change(place[0], old["verdict"], new["verdict"], _why(old, new, messages[place])))
    return changes


def _by_place(jobs: Iterable[dict[str, Any]]) -> dict[tuple[str, int], dict[str, Any]]:
    """Jobs by file and their order in it, which stays when lines move."""
    placed: dict[tuple[str, int], dict[str, Any]] = {}
    counts: dict[str, int] = {}
    for job in jobs:
        number = counts[job["file"]] = counts.get(job["file"], 0) + 1
        placed[job["file"], number] = job
    return placed


def _why(old: dict[str, Any], new: dict[str, Any], messages: dict[str, Text]) -> tuple[Text, ...]:
    why = []
    if old.get("digest") != new["digest"]:
        why.append(Text("the file was edited", "文件已修改"))
    for name, english, chinese in (
        ("product", "answered by", "应答产品"),
        ("release", "release", "版本"),
        ("framework", "framework", "框架"),
        ("framework_version", "framework version", "框架版本"),
    ):
        if old.get(name) != new[name]:
            was, is_ = old.get(name) or "-", new[name] or "-"
            why.append(Text(f"{english}: {was} -> {is_}", f"{chinese}：{was} -> {is_}"))
    for code in new["codes"]:
        if code not in old["codes"]:
            message = messages[code]
            why.append(Text(f"new {code}: {message.en}", f"新增 {code}：{message.in_language('zh')}"))
    gone = [code for code in old["codes"] if code not in new["codes"]]
    if gone:
        why.append(Text(f"gone: {', '.join(gone)}", f"消失：{'、'.join(gone)}"))
    if not why:
        why.append(Text("the matrix says otherwise now", "兼容性矩阵的结论已改变"))
    return tuple(why)


def _relative(file: str, base: Path) -> str:
    import os

    return Path(os.path.relpath(Path(file).resolve(), base.resolve())).as_posix()


def _digest(file: str) -> str | None:
    try:
        return "sha256:" + hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except OSError:
        return None
