"""Laws of the order of versions, and the pairs that no source allows."""

from __future__ import annotations

import contextlib

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_compat.check.rules import Row, Vocabulary, evaluate
from ascend_compat.check.stack import StackChecker
from ascend_compat.errors import UsageError
from ascend_compat.stack.derive import table_facts
from ascend_compat.stack.read import read_text
from ascend_compat.stack.tables import Tables
from ascend_compat.stack.versions import cann_name, release_of, version_key

_NUMBERS = st.lists(st.integers(0, 999), min_size=1, max_size=4).map(lambda parts: ".".join(map(str, parts)))
_TAILS = st.sampled_from(
    [
        "",
        ".post8",
        ".dev0",
        "rc1",
        ".RC2.2",
        ".0.alpha002",
        ".rc2.1",
        "+cpu",
        "b1",
        ".post1.dev20250619",
        ".B150",
        "@8c7bc45",
    ]
)
_HEADS = st.sampled_from(["", "v", "core_v", "core_r", "releases/v"])
VERSIONS = st.builds(lambda head, numbers, tail: f"{head}{numbers}{tail}", _HEADS, _NUMBERS, _TAILS)


@settings(deadline=None, derandomize=True)
@given(VERSIONS, VERSIONS, VERSIONS)
def test_the_order_is_total_and_transitive(first: str, second: str, third: str) -> None:
    keys = sorted(map(version_key, (first, second, third)))
    assert keys[0] <= keys[1] <= keys[2]
    assert (version_key(first) < version_key(second)) != (version_key(first) >= version_key(second))


@settings(deadline=None, derandomize=True)
@given(_NUMBERS, st.integers(0, 99))
def test_development_comes_before_candidates_before_the_release_before_its_posts(numbers: str, number: int) -> None:
    order = [f"{numbers}.dev{number}", f"{numbers}.alpha{number}", f"{numbers}b{number}", f"{numbers}rc{number}"]
    order += [f"{numbers}", f"{numbers}.post{number}.dev1", f"{numbers}.post{number}"]
    if numbers.count(".") >= 2 and not numbers.endswith(".0"):
        assert [version_key(version) for version in order] == sorted(map(version_key, order))
        assert len({version_key(version) for version in order}) == len(order)


@settings(deadline=None, derandomize=True)
@given(_NUMBERS, st.integers(0, 20))
def test_a_higher_last_number_is_newer(numbers: str, last: int) -> None:
    assert version_key(f"{numbers}.{last}.7") < version_key(f"{numbers}.{last + 1}.7")
    assert version_key(f"{numbers}.post{last}") < version_key(f"{numbers}.post{last + 1}")


@settings(deadline=None, derandomize=True)
@given(VERSIONS)
def test_local_parts_and_prefixes_do_not_count(version: str) -> None:
    plain = version.split("+")[0].split("@")[0]
    assert version_key(f"{plain}+cpu") == version_key(plain) == version_key(f"v{plain}")


def test_cann_orders_as_it_was_published() -> None:
    order = "7.0.0 8.0.RC1 8.0.RC2 8.0.RC2.2 8.0.RC3 8.0.0.alpha002 8.0.0 8.0.1 8.1.RC1 8.2.RC1 8.3.RC1 8.3.RC2 8.5.0 9.0.0".split()  # noqa: SIM905
    assert [version_key(version) for version in order] == sorted(map(version_key, order))
    assert len({version_key(version) for version in order}) == len(order)


@settings(deadline=None, derandomize=True)
@given(st.text(max_size=60))
def test_any_text_has_a_key_and_a_release(text: str) -> None:
    key = version_key(text)
    assert key == () or key[-1] == -2
    release_of(text)
    cann_name(text)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.lists(VERSIONS, min_size=1, max_size=20))
def test_rules_see_the_same_order(versions: list[str]) -> None:
    con = _connection()
    rows = con.execute("SELECT version, version_key(version) FROM (SELECT unnest(?) AS version)", [versions]).fetchall()
    assert [tuple(key) for _, key in rows] == [version_key(version) for version, _ in rows]


def _connection() -> duckdb.DuckDBPyConnection:
    from ascend_compat.matrix.macros import MACROS

    con = duckdb.connect()
    for macro in MACROS:
        con.execute(macro)
    return con


def test_a_torch_npu_moved_to_another_cann_is_rejected_unless_a_source_allows_it(
    con: duckdb.DuckDBPyConnection,
) -> None:
    tables, checker = Tables(con), StackChecker(con, today="2026-05")
    allowed = {(version_key(row["torch_npu"]), version_key(row["cann"])) for row in tables.pairs}
    canns = list(dict.fromkeys(row["cann"] for row in tables.builds))
    pairs = [(row, cann) for row in tables.builds for cann in canns]
    stacks = [f"cann: {cann}\ntorch=={row['torch']}\ntorch-npu=={row['torch_npu']}" for row, cann in pairs]
    rows = [
        Row(facts | table_facts(tables, facts, "2026-05"))
        for facts in (dict(read_text(text, "x").facts()) for text in stacks)
    ]
    outcomes = evaluate(con, rows, checker.rules, Vocabulary(checker.types, (), ()))
    rejected = 0
    for (row, cann), outcome in zip(pairs, outcomes):
        fine = (version_key(row["torch_npu"]), version_key(cann)) in allowed
        assert ("ST-CANN" in {rule.id for rule in outcome.broken}) is not fine, (row, cann)
        rejected += not fine
    print(f"{rejected} pairs rejected, {len(pairs) - rejected} allowed, of {len(pairs)}")
    assert (rejected, len(pairs)) == (1358, 62 * 23)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.text(max_size=400))
def test_any_text_is_a_stack_or_one_sentence(text: str) -> None:
    try:
        read_text(text, "x").facts()
    except UsageError as error:
        assert "\n" not in str(error)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    st.lists(
        st.sampled_from(["cann", "nnal", "npu_type", "npu_count", "python", "torch", "nodes", "npu_memory_gib"]),
        max_size=8,
    ),
    st.lists(st.text(max_size=30), min_size=8, max_size=8),
)
def test_any_value_reads_without_an_exception(names: list[str], values: list[str]) -> None:
    text = "\n".join(f"{name}: {value}" for name, value in zip(names, values))
    with contextlib.suppress(UsageError):
        read_text(text, "x").facts()


@pytest.mark.parametrize("version", ["2.7.1.post99", "2.8.0.dev20991231"])
def test_an_unknown_build_of_a_known_line_is_a_warning(version: str, con: duckdb.DuckDBPyConnection) -> None:
    text = f"cann: 8.3.RC1\ntorch=={release_of(version)}\ntorch-npu=={version}"
    report = StackChecker(con, today="2026-05").report(read_text(text, "x"))
    assert [(finding.code, finding.severity) for finding in report.findings if finding.severity != "note"] == [
        ("ST-TORCH-BUILD", "warning")
    ]
    assert report.verdict == "unverified"
