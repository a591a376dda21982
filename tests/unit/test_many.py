"""Hundreds of files checked in processes give the reports that one process gives, in the same order."""

from __future__ import annotations

from pathlib import Path

import pytest

from ascend_compat.check import api
from ascend_compat.check.finding import Report
from ascend_compat.check.many import WORTHWHILE, listed
from ascend_compat.matrix.store import connect

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "docs" / "examples").iterdir())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("jobs")
    kinds = [path for path in EXAMPLES if path.suffix in (".yaml", ".sh")]
    assert len(kinds) >= 4
    for number in range(WORTHWHILE + 30):
        source = kinds[number % len(kinds)]
        (folder / f"{number:04d}{source.suffix}").write_bytes(source.read_bytes())
    (folder / "0007.broken.yaml").write_text("a: [", encoding="utf-8")
    (folder / "notes.txt").write_text("nothing here", encoding="utf-8")
    return folder


def shown(reports: list[Report]) -> list[tuple[str, str, list[str]]]:
    return [(report.file, report.verdict, [finding.code for finding in report.findings]) for report in reports]


@pytest.mark.parametrize("whole", [True, False])
def test_processes_change_nothing(folder: Path, whole: bool) -> None:
    con = connect()
    paths = [str(folder)] if whole else [str(path) for path in sorted(folder.iterdir())]
    alone = shown(list(api.check_paths(con, paths, recursive=whole)))
    together = shown(list(api.check_paths(con, paths, recursive=whole, processes=2)))
    assert together == alone
    assert len(together) >= WORTHWHILE + 30


def test_few_files_and_standard_input_stay_here(folder: Path) -> None:
    assert listed(["-", str(folder)], True) == []
    assert listed([str(folder)], False) == []
    assert len(listed([str(folder)], True)) == WORTHWHILE + 32


def test_a_directory_without_jobs_is_told(tmp_path: Path) -> None:
    for number in range(WORTHWHILE + 1):
        (tmp_path / f"{number}.txt").write_text("nothing", encoding="utf-8")
    (report,) = api.check_paths(connect(), [str(tmp_path)], recursive=True, processes=2)
    assert [finding.code for finding in report.findings] == ["AC2014"]
