"""What is done with an input, reader by reader: all that a user's command would do with it, up to the rendered report.

Each answers whether the input was taken. Any exception but the tool's own clean errors is a fault.
"""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as Xml
import zlib
from collections.abc import Callable
from pathlib import Path

from ascend_compat.errors import CompatError, UsageError

# what steers a terminal; a report holds none of it
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_LLAMAFACTORY = (
    b"stage: sft\nmodel_name_or_path: Qwen/Qwen2-7B\ndo_train: true\nfinetuning_type: full\ndeepspeed: side.json\n"
)


class Targets:
    """The readers over one matrix, in a folder of their own, which is the working directory."""

    def __init__(self, folder: Path) -> None:
        from ascend_compat.check.engine import Engine
        from ascend_compat.check.stack import StackChecker
        from ascend_compat.matrix.store import connect

        self.folder = folder
        self.engine = Engine(connect())
        self.stacks = StackChecker(self.engine.con)
        self.words = self._words()

    def named(self, name: str) -> Callable[[bytes], bool]:
        """What is done with an input of a target."""
        jobs = {"shell": "job.sh", "verl": "run.sh", "yaml": "job.yaml"}
        if name in jobs:
            return lambda data: self.job(jobs[name], data)
        targets: dict[str, Callable[[bytes], bool]] = {
            "deepspeed": self.deepspeed, "stack": self.stack, "npu-smi": self.stack, "table": self.table, "matrix": self.matrix,
            "evidence": self.evidence, "questions": self.questions, "service": self.service, "lock": self.lock, "settings": self.settings,
        }  # fmt: skip
        return targets[name]

    def run(self, name: str, data: bytes) -> bool:
        """Whether an input was taken; a clean error says no."""
        try:
            return self.named(name)(data)
        except CompatError as error:
            assert error.exit_code == 2 or name == "matrix", f"{type(error).__name__}: {error}"
            assert str(error).strip(), "an error without a sentence"
            return False

    def job(self, name: str, data: bytes) -> bool:
        """A job file: read, checked, and rendered in one of the formats."""
        from ascend_compat.check.engine import Options
        from ascend_compat.check.finding import Report
        from ascend_compat.jobs.read import read_data
        from ascend_compat.report.formats import FORMATS, render

        self.read = read = read_data(name, data)
        reports = self.engine.check(read.launches, Options())
        if read.error is not None:
            report = Report(name, None, None, None, None, None, "unreadable", [self.engine.problem(read.error)])
            reports.append(report)
        assert reports, "a file without an answer"
        form = FORMATS[zlib.crc32(data) % len(FORMATS)]
        sound(form, render(form, reports, "zh" if len(data) % 2 else "en"))
        return bool(read.launches)

    def deepspeed(self, data: bytes) -> bool:
        """The DeepSpeed file of a job."""
        from ascend_compat.jobs.read import read_data

        (self.folder / "side.json").write_bytes(data)
        self.job("job.yaml", _LLAMAFACTORY)
        (launch,) = read_data("job.yaml", _LLAMAFACTORY).launches
        return any(setting.key.startswith("deepspeed-json:") and setting.chain for setting in launch.settings)

    def stack(self, data: bytes) -> bool:
        """A listing or an npu-smi table, checked."""
        from ascend_compat.report.formats import FORMATS, render
        from ascend_compat.stack.read import read_text

        stack = read_text(data.decode("utf-8-sig", "replace"), "host.txt")
        form = FORMATS[zlib.crc32(data) % len(FORMATS)]
        sound(form, render(form, [self.stacks.report(stack)], "en"))
        return True

    def table(self, data: bytes) -> bool:
        """A vendor's page."""
        from ascend_compat.matrix.importing import compose
        from ascend_compat.matrix.importing_grid import read_grid
        from ascend_compat.matrix.render_yaml import render

        page = self.folder / "page.txt"
        page.write_bytes(data)
        try:
            grid = read_grid(page)
            imported = compose(grid, page, "9.9.9", self.words, None, "llamafactory")
            render(imported.body)
        except UsageError as error:
            return "nothing was imported" in str(error)
        return True

    def matrix(self, data: bytes) -> bool:
        """A document of a matrix from elsewhere: linted and built."""
        import duckdb

        from ascend_compat.matrix.build import fill
        from ascend_compat.matrix.documents import load_documents
        from ascend_compat.matrix.lint import lint
        from ascend_compat.matrix.store import BUILD_ERRORS

        root = self.folder / "matrix"
        (root / "products").mkdir(parents=True, exist_ok=True)
        (root / "products" / "document.yaml").write_bytes(data)
        problems = lint(root).errors
        with duckdb.connect(config={"threads": "1"}) as con:
            try:
                fill(con, load_documents(root), "x")
            except BUILD_ERRORS:
                return False
        return not problems

    def evidence(self, data: bytes) -> bool:
        """A document of evidence, laid over the matrix."""
        from ascend_compat.evidence.document import faults, is_sealed, read, sealed
        from ascend_compat.matrix.build_evidence import layers

        path = self.folder / "evidence.json"
        path.write_bytes(data)
        body = read(path)
        is_sealed(body)
        if faults(body):
            return False
        layers(self.engine.con, [(str(path), json.dumps(sealed(body)))])
        return True

    def questions(self, data: bytes) -> bool:
        """Many questions by names."""
        from ascend_compat.check.api import check_names, read_queries

        path = self.folder / "questions.jsonl"
        path.write_bytes(data)
        asked = read_queries(str(path), None, None)
        return bool(check_names(self.engine.con, asked, self.engine))

    def service(self, data: bytes) -> bool:
        """A request body, as a check and as an admission review."""
        from ascend_compat.service import admission, requests

        try:
            body = requests.parse(data)
            if "request" in body:
                json.dumps(admission.review(self.engine, body, "en")).encode()
            else:
                requests.answer(self.engine, requests.question(body))
        except requests.BadRequest as error:
            assert str(error)
            return False
        return True

    def lock(self, data: bytes) -> bool:
        """A file of verdicts."""
        from ascend_compat.check.lock import read

        path = self.folder / "lock.json"
        path.write_bytes(data)
        return bool(read(path))

    def settings(self, data: bytes) -> bool:
        """A site's defaults."""
        from ascend_compat.check.settings import site_settings

        (self.folder / "ascend-compat.toml").write_bytes(data)
        return site_settings(self.folder).product is not None

    def _words(self) -> object:
        from ascend_compat.matrix.importing_files import product_documents
        from ascend_compat.matrix.importing_words import Words

        tables = [document.body for document in product_documents("ascendfactory") if document.kind == "table"]
        return Words.of("ascendfactory", "6.5.906", tables, self.engine.con)


def sound(form: str, text: str) -> None:
    """Asserts that a rendered report is what its format promises, whatever it quotes."""
    assert not _STEERING.search(text), f"{form} holds {_STEERING.search(text)!r}"
    if form in ("json", "sarif", "gitlab", "rdjson"):
        json.loads(text)
    elif form == "jsonl":
        assert all(isinstance(json.loads(line), dict) for line in text.split("\n"))
    elif form == "junit":
        Xml.fromstring(text)
    elif form == "github":
        assert all(re.match(r"::(error|warning|notice) ", line) for line in text.split("\n") if line), text
    elif form == "markdown":
        assert not re.search(r"<(?!br>)", re.sub(r"`[^`\n]*`", "", text)), text
