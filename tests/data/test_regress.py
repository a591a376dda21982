"""Nothing of the matrix changes unseen: cells flipped, rules deleted, windows widened are all told.

All mutants are made with ``make mutants`` (``MUTANTS=all``); the suite takes a seeded sample of those that cost a comparison each.
"""

from __future__ import annotations

import dataclasses
import json
import os
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from support import ROOT, Command

from ascend_compat.check import regress, sides
from ascend_compat.check.engine import Engine
from ascend_compat.check.regress import Difference, compare
from ascend_compat.check.sides import Side
from ascend_compat.errors import UsageError
from ascend_compat.matrix.build import write_database
from ascend_compat.matrix.documents import load_documents
from ascend_compat.report.regress import render
from ascend_compat.resources import matrix_dir

ALL = os.environ.get("MUTANTS") == "all"
SAMPLE = 6


@pytest.fixture(scope="module")
def base(con: duckdb.DuckDBPyConnection) -> Side:
    """The matrix as it is."""
    return Side("base", con)


@pytest.fixture
def mutate(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> Iterator[Callable[..., Side]]:
    """A copy of the database with statements run on it."""
    (path,) = con.execute("SELECT path FROM duckdb_databases() WHERE database_name = current_database()").fetchall()[0]
    made: list[duckdb.DuckDBPyConnection] = []

    def copy(*statements: str) -> Side:
        file = tmp_path / f"mutant-{len(made)}.duckdb"
        shutil.copyfile(path, file)
        changed = duckdb.connect(str(file))
        made.append(changed)
        for statement in statements:
            changed.execute(statement)
        return Side("mutant", changed)

    yield copy
    for one in made:
        one.close()


@pytest.fixture
def rebuilt(tmp_path: Path) -> Iterator[Callable[..., Side]]:
    """The matrix built anew, after ``edit`` had its way with a copy of every rule (None drops it)."""
    documents = load_documents()
    made: list[duckdb.DuckDBPyConnection] = []

    def build(edit: Callable[[str, dict[str, Any]], dict[str, Any] | None], *statements: str) -> Side:
        changed = []
        for document in documents:
            if document.kind == "rules":
                edited = (edit(document.body["framework"], dict(rule)) for rule in document.body["rules"])
                body = {**document.body, "rules": [rule for rule in edited if rule is not None]}
                document = dataclasses.replace(document, body=body)
            changed.append(document)
        file = tmp_path / f"rebuilt-{len(made)}.duckdb"
        write_database(str(file), changed, "mutant")
        made.append(duckdb.connect(str(file)))
        for statement in statements:
            made[-1].execute(statement)
        return Side("mutant", made[-1])

    yield build
    for one in made:
        one.close()


def test_the_same_matrix_is_the_same(base: Side, con: duckdb.DuckDBPyConnection) -> None:
    difference = compare(base, Side("now", con), [ROOT / "docs" / "examples"])
    assert difference.changes == []
    assert difference.compared["claim"] >= 20_000
    assert difference.compared["cell"] >= 15_000
    assert difference.compared["rule"] >= 700
    assert difference.compared["names"] >= 5_000
    assert difference.compared["job"] >= 4


FLIPPED = (
    "CASE status WHEN 'supported' THEN 'unsupported' WHEN 'unknown' THEN 'supported' WHEN 'partial' THEN 'supported' "
    "ELSE 'unknown' END"
)


def test_every_flipped_cell_is_caught(base: Side, mutate: Callable[..., Side]) -> None:
    """All cells at once, each of them seen on its own; then their claims, too."""
    cells = base.rows("SELECT count(*) FROM cell")[0][0]
    now = mutate(f"UPDATE cell SET status = {FLIPPED}")
    found = [change for change in compare(base, now).undeclared if change.part == "cell"]
    assert len({tuple(change.key.values()) for change in found}) == cells >= 15_000
    claims = base.rows("SELECT count(*) FROM claim")[0][0]
    now = mutate(f"UPDATE claim SET status = {FLIPPED}")
    found = [change for change in compare(base, now).undeclared if change.part == "claim"]
    assert len({tuple(change.key.values()) for change in found}) == claims >= 20_000


def test_a_cell_flipped_in_its_document_is_caught(base: Side, tmp_path: Path) -> None:
    """Through the whole build: the page's own word for one cell is another one."""
    matrix = tmp_path / "matrix"
    shutil.copytree(matrix_dir(), matrix)
    table = matrix / "products" / "ascendfactory" / "6.5.906.yaml"
    text = table.read_text(encoding="utf-8")
    old = next(line for line in text.splitlines() if "supported" in line and "Qwen2.5-7B" in line)
    table.write_text(text.replace(old, old.replace(" supported", " unsupported", 1)), encoding="utf-8")
    assert table.read_text(encoding="utf-8") != text
    with sides.built(matrix, tmp_path / "now.duckdb", "now") as now:
        undeclared = compare(base, now).undeclared
    assert undeclared
    assert {change.key["release"] for change in undeclared if change.part == "claim"} == {"6.5.906"}


def rules(base: Side) -> list[tuple[str, str]]:
    found = base.rows("SELECT DISTINCT framework, id FROM rule ORDER BY 1, 2")
    assert len(found) >= 700
    return [(row[0], row[1]) for row in found]


def fired(base: Side, now: Side) -> list[regress.Change]:
    """What a comparison sees of verdicts alone, without looking at the rules' own text."""
    difference = Difference("", "")
    return list(regress._fired(base, now, difference))


def test_rules_that_no_case_breaks_are_few(base: Side) -> None:
    """Deleting a rule shows in the verdicts wherever one example breaks it; by its text it is seen always."""
    seen: set[str] = set()
    for examples, grid in sides.fired(base, base).values():
        seen = seen.union(*examples.values(), *grid.values())
    every = {rule for _, rule in rules(base)}
    share = len(every & seen) / len(every)
    print(f"deleted rules seen in verdicts alone: {share:.1%} of {len(every)}")
    assert share >= 0.95


def test_widened_windows_that_no_verdict_shows_are_few(base: Side) -> None:
    """Widening a window shows in the verdicts wherever a known version lies outside it and an example breaks the rule."""
    breaking: dict[str, set[str]] = {}
    for examples, _ in sides.fired(base, base).values():
        for case, broken in examples.items():
            for rule in broken:
                breaking.setdefault(rule, set()).add(case)
    windowed = base.rows(
        "SELECT DISTINCT r.framework, r.id FROM rule r JOIN framework f ON f.id = r.framework WHERE EXISTS ("
        "SELECT 1 FROM release v WHERE v.product = f.product AND (v.ordinal < r.since_ordinal OR v.ordinal > r.until_ordinal))"
    )
    share = sum(bool(breaking.get(rule)) for _, rule in windowed) / len(windowed)
    print(f"widened windows seen in verdicts alone: {share:.1%} of {len(windowed)}")
    assert len(windowed) >= 100
    assert share >= 0.95


def sample(items: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return items if ALL else random.Random(8).sample(items, SAMPLE)


def test_deleted_rules_and_widened_windows_are_caught(base: Side, rebuilt: Callable[..., Side]) -> None:
    windowed = base.rows(
        "SELECT DISTINCT r.framework, r.id FROM rule r JOIN framework f ON f.id = r.framework WHERE EXISTS ("
        "SELECT 1 FROM release v WHERE v.product = f.product AND (v.ordinal < r.since_ordinal OR v.ordinal > r.until_ordinal)) "
        "AND (SELECT count(*) FROM rule o WHERE (o.framework, o.id) = (r.framework, r.id)) = 1 ORDER BY ALL"
    )
    assert len(windowed) >= 100
    halves: list[tuple[set[tuple[str, str]], set[tuple[str, str]]]] = []
    if ALL:
        halves += [(set(rules(base)), set()), (set(), {(row[0], row[1]) for row in windowed})]
    else:
        widened = set(sample([(row[0], row[1]) for row in windowed]))
        halves.append((set(sample([rule for rule in rules(base) if rule not in widened])), widened))
    for deleted, widened in halves:

        def edit(framework: str, rule: dict[str, Any], deleted: Any = deleted, widened: Any = widened) -> Any:
            if (framework, rule["id"]) in widened:
                for key in ("since", "until", "windows"):
                    rule.pop(key, None)
            return None if (framework, rule["id"]) in deleted else rule

        now = rebuilt(edit)
        by_text = {change.key["rule"] for change in regress._rules(base, now, Difference("", ""))}
        assert by_text == {rule for _, rule in deleted | widened}
        by_verdict = {change.key["rule"] for change in fired(base, now)}
        assert by_verdict <= by_text
        print(f"seen in verdicts alone: {len(by_verdict)} of {len(by_text)}")
        assert len(by_verdict) >= 0.95 * len(by_text) - 0.5


def test_a_declared_change_passes(base: Side, rebuilt: Callable[..., Side]) -> None:
    claim = (
        "UPDATE claim SET status = 'unsupported' WHERE product = 'ascendfactory' AND release = '6.5.906' "
        "AND framework = 'llamafactory' AND model = 'qwen2.5-7b' AND feature = 'lora'"
    )

    def edit(_: str, rule: dict[str, Any]) -> dict[str, Any]:
        return {**rule, "requires": "tensor_parallel > 0"} if rule["id"] == "ML-PAR12" else rule

    now = rebuilt(edit, claim)
    difference = compare(base, now, [ROOT / "docs" / "examples"])
    parts = {change.part for change in difference.undeclared}
    assert parts == {"claim", "rule", "example", "grid", "job"}
    jobs = {
        change.key["file"]: (change.kind, change.before, change.after)
        for change in difference.undeclared
        if change.part == "job"
    }
    assert jobs["examples/af-llamafactory-lora-qwen2.5-7b.yaml"] == ("lost", "supported", "unsupported AC1001")
    regress._declare(
        difference.changes,
        [
            {"reason": {"en": "the page was corrected", "zh": "页面已更正"},
             "match": {"part": "claim", "model": "qwen2.5-7b", "feature": "lora", "after": "unsupported"}},
            {"reason": "any head count will do", "match": {"rule": "ML-PAR1?"}},
        ],
    )  # fmt: skip
    assert difference.undeclared == []


def test_an_entry_the_base_held_lets_nothing_through(base: Side, mutate: Callable[..., Side]) -> None:
    now = mutate("UPDATE claim SET status = 'withdrawn' WHERE model = 'qwen2.5-7b' AND feature = 'lora'")
    now.declared = [{"reason": "taken away", "match": {"model": "qwen2.5-7b", "kind": "lost"}}]
    assert compare(base, now).changes
    assert {change.kind for change in compare(base, now).undeclared} <= {"changed"}
    old = Side("base", base.con, now.declared)
    assert "lost" in {change.kind for change in compare(old, now).undeclared}


def test_a_new_default_release_reads_well(base: Side, mutate: Callable[..., Side]) -> None:
    now = mutate(
        "UPDATE release_framework SET completeness = 'full' WHERE product = 'ascendfactory' AND release = '6.5.910' "
        "AND framework IN ('llamafactory', 'mindspeed-llm')"
    )
    difference = compare(base, now)
    assert {change.part for change in difference.changes} == {"default"}
    assert {"lost", "became unknown", "gained"} & {change.kind for change in difference.undeclared}
    for language, word in (("en", "Answers without naming a release"), ("zh", "未指定版本时的应答")):
        text = render("text", difference, language)
        assert word in text
        assert "ascendfactory 6.5.906 -> 6.5.910 llamafactory" in text
        assert len(text.splitlines()) < 120
    markdown = render("markdown", difference, "en")
    assert markdown.startswith("# base -> mutant\n")
    body = json.loads(render("json", difference, "en"))
    assert len(body["changes"]) == len(difference.changes) > body["undeclared"] // 2 > 0


def test_evidence_may_not_fall(base: Side, con: duckdb.DuckDBPyConnection) -> None:
    """States of cells stand in for runs: what was verified and is smoke, stale or nothing now is told; what rose is new."""
    cells = con.execute("SELECT product, release, framework, model, feature FROM claim ORDER BY ALL LIMIT 5").fetchall()

    class Told(Side):
        states: tuple[str, ...] = ()

        def rows(self, sql: str) -> list[tuple[Any, ...]]:
            return [(*cell, state) for cell, state in zip(cells, self.states) if state != "claimed"]

    old, new = Told("old", con), Told("new", con)
    old.states = ("verified", "verified", "smoke", "claimed", "claimed")
    new.states = ("smoke", "stale", "claimed", "contradicted", "verified")
    found = list(regress._evidence(old, new, Difference("", "")))
    assert [change.kind for change in found] == ["lost", "lost", "lost", "changed", "added"]
    assert [change.needs_reason for change in found] == [True, True, True, True, False]
    assert list(regress._evidence(base, base, Difference("", ""))) == []


def test_bases_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "x.duckdb").write_text("no database")
    for wrong in (str(tmp_path / "x.duckdb"), str(tmp_path / "gone.duckdb"), "no-such-revision", "--output=x"):
        with pytest.raises(UsageError), sides.base_side(wrong, ROOT):
            pass


def test_command_against_a_revision(command: Command, tmp_path: Path) -> None:
    """In a repository of its own: a flipped cell is told and exits 1; neither the tree nor git's state is touched."""
    repository = tmp_path / "data"
    for name in ("matrix", "schema"):
        shutil.copytree(ROOT / name, repository / name)
    git = ["git", "-C", str(repository), "-c", "user.name=x", "-c", "user.email=x@example.com"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    same = command("regress", "--base", "HEAD", ASCEND_COMPAT_DATA=str(repository))
    assert (same.returncode, same.stderr) == (0, "")
    table = repository / "matrix" / "products" / "llamafactory" / "0.9.5.yaml"
    text = table.read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if line.lstrip().startswith("- {") and " supported" in line)
    table.write_text(text.replace(line, line.replace(" supported", " unsupported", 1)), encoding="utf-8")
    before = subprocess.run([*git, "status", "--porcelain"], check=True, capture_output=True).stdout
    done = command("regress", "--base", "HEAD", "--format", "markdown", ASCEND_COMPAT_DATA=str(repository))
    assert done.returncode == 1, done.stderr
    assert "NOT DECLARED" in done.stdout
    assert subprocess.run([*git, "status", "--porcelain"], check=True, capture_output=True).stdout == before
    assert not (repository / ".git" / "worktrees").exists()
    assert command("regress", "--base", "gone", ASCEND_COMPAT_DATA=str(repository)).returncode == 2


def test_engine_is_made_once(con: duckdb.DuckDBPyConnection) -> None:
    side = Side("x", con)
    assert isinstance(side.engine, Engine)
    assert side.engine is side.engine
