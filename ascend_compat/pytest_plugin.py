"""A pytest plugin: ``compat.yaml`` states jobs and the verdict each is expected to get; every statement is a test.

.. code-block:: yaml

    jobs:
      - file: train/sft.sh
        expect: supported                  # under the default release, or the one of --compat-release
      - model: Qwen2.5-7B
        framework: llamafactory
        features: [lora]
        expect: {"6.5.906": supported, "6.5.910": [supported, unverified]}

Nothing of the matrix is loaded before the first such test runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from ascend_compat.check.engine import Engine
    from ascend_compat.check.finding import Report
    from ascend_compat.jobs.yaml_tree import Node

_NAMES = ("compat.yaml", "compat.yml")
_KEYS = frozenset(("file", "model", "framework", "features", "product", "release", "framework_version", "expect"))
_MAX_BYTES = 1_000_000


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--compat-release``."""
    group = parser.getgroup("ascend-compat")
    group.addoption(
        "--compat-release",
        action="append",
        default=[],
        metavar="RELEASE",
        help="check compat.yaml under this release; may be repeated",
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Takes files called compat.yaml that state ``jobs``."""
    if file_path.name not in _NAMES:
        return None
    with file_path.open("rb") as stream:
        text = stream.read(_MAX_BYTES)
    if not any(line.startswith((b"jobs:", b'"jobs":', b"{")) for line in text.splitlines()):
        return None
    collector: pytest.Collector = CompatFile.from_parent(parent, path=file_path)
    return collector


class ExpectationError(Exception):
    """A verdict that is not the expected one; its text is the whole failure."""


class CompatFile(pytest.File):
    """One ``compat.yaml``."""

    def collect(self) -> Iterator[pytest.Item]:
        """An item for each job and release it states."""
        from ascend_compat.jobs.yaml_tree import TreeError, parse

        try:
            documents = parse(self.path.read_text(encoding="utf-8"), str(self.path))
        except (TreeError, UnicodeDecodeError) as error:
            line = error.problem.span.line if isinstance(error, TreeError) else 1
            raise self._wrong(line - 1, "this is not valid YAML") from None
        for document in documents:
            jobs = document.root.get("jobs")
            if jobs is None or jobs.items is None:
                raise self._wrong(document.root.line, "expected a list under jobs")
            for number, job in enumerate(jobs.items, 1):
                yield from self._items(job, number)

    def _wrong(self, line: int, reason: str) -> Exception:
        return self.CollectError(f"{self.path.name}:{line + 1}: {reason}")

    def _items(self, job: Node, number: int) -> Iterator[pytest.Item]:
        unknown = sorted(job.names() - _KEYS)
        if job.pairs is None or unknown:
            what = f"unknown key {unknown[0]!r}" if unknown else "expected a mapping"
            raise self._wrong(job.line, f"job {number}: {what}; a job has {', '.join(sorted(_KEYS))}")
        stated = {key: _plain(node) for key, node in job.pairs}
        if ("file" in stated) == ("model" in stated):
            raise self._wrong(job.line, f"job {number}: give either a file, or a model with a framework and features")
        if "model" in stated and "framework" not in stated:
            raise self._wrong(job.line, f"job {number}: a question by names needs a framework beside the model")
        expectations = self._expectations(job, stated, number)
        asked = self.config.getoption("compat_release")
        name = str(stated.get("file") or f"{stated['model']}/{stated['framework']}")
        for release, verdicts in expectations.items():
            if not asked or release in (None, *asked):
                for one in asked if asked and release is None else [release]:
                    title = f"{name}[{one}]" if one else name
                    yield CompatItem.from_parent(
                        self, name=title, job=stated, at=one, expected=verdicts, line=job.line, reason=None
                    )
        for one in asked:
            if None not in expectations and one not in expectations:
                reason = f"states nothing of {one}"
                yield CompatItem.from_parent(
                    self, name=f"{name}[{one}]", job=stated, at=one, expected=(), line=job.line, reason=reason
                )

    def _expectations(self, job: Node, stated: dict[str, Any], number: int) -> dict[str | None, tuple[str, ...]]:
        from ascend_compat.check.finding import VERDICTS

        expect = stated.get("expect")
        listed = expect if isinstance(expect, dict) else {stated.get("release"): expect}
        found: dict[str | None, tuple[str, ...]] = {}
        for release, verdicts in listed.items():
            verdicts = tuple(verdicts) if isinstance(verdicts, list) else (verdicts,)
            if not verdicts or not set(verdicts) <= set(VERDICTS):
                raise self._wrong(job.line, f"job {number}: expect one of {', '.join(VERDICTS)}")
            found[None if release is None else str(release)] = verdicts
        if not found:
            raise self._wrong(job.line, f"job {number}: expect one of {', '.join(VERDICTS)}")
        return found


def _plain(node: Node) -> Any:
    """Texts, lists and mappings as they are written: a release such as 6.5 stays text."""
    if node.pairs is not None:
        return {key: _plain(value) for key, value in node.pairs}
    if node.items is not None:
        return [_plain(item) for item in node.items]
    return None if node.scalar is None else str(node.scalar)


class CompatItem(pytest.Item):
    """One job under one release."""

    def __init__(
        self,
        *,
        job: dict[str, Any],
        at: str | None,
        expected: tuple[str, ...],
        line: int,
        reason: str | None,
        **rest: Any,
    ) -> None:
        super().__init__(**rest)
        self.job, self.at, self.expected, self.line, self.reason = job, at, expected, line, reason

    def runtest(self) -> None:
        """Checks the job; raises :class:`ExpectationError` on another verdict."""
        from ascend_compat.check.engine import worst
        from ascend_compat.errors import CompatError

        if self.reason is not None:
            pytest.skip(self.reason)
        try:
            reports = self._reports()
        except CompatError as error:
            raise ExpectationError(str(error)) from None
        verdict = worst(report.verdict for report in reports)
        if verdict not in self.expected:
            raise ExpectationError(self._difference(verdict, reports))

    def _reports(self) -> list[Report]:
        from ascend_compat.check import api
        from ascend_compat.check.engine import Options

        engine = _engine(self.config)
        job = self.job
        if "file" not in job:
            features = job.get("features") or []
            features = tuple([features] if isinstance(features, str) else features)
            question = api.Names(job["model"], job["framework"], features, job.get("product"), self.at)
            return api.check_names(engine.con, [question], engine)
        path = self.path.parent / job["file"]
        options = Options(*api.known(engine.con, job.get("product"), self.at), job.get("framework_version"))
        return list(
            api.check_paths(
                engine.con, [path], framework=job.get("framework"), recursive=path.is_dir(), options=options
            )
        )

    def _difference(self, verdict: str, reports: Iterable[Report]) -> str:
        from ascend_compat.report.text import TextRenderer

        under = f" under {self.at}" if self.at else ""
        head = f"{self.path.name}:{self.line + 1}: expected {' or '.join(self.expected)}{under}, found {verdict}"
        return "\n".join([head, "", *TextRenderer("en", colour=False).render(reports)])

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The difference alone, without a traceback."""
        if isinstance(excinfo.value, ExpectationError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where the job is stated."""
        return self.path, self.line, self.name


_ENGINE = pytest.StashKey[Any]()


def _engine(config: pytest.Config) -> Engine:
    """One engine a session, made when the first job is checked."""
    if _ENGINE not in config.stash:
        from ascend_compat.check.engine import Engine
        from ascend_compat.matrix.store import connect

        config.stash[_ENGINE] = Engine(connect())
    engine: Engine = config.stash[_ENGINE]
    return engine
