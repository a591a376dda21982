"""Diff and history over any tables: unknown is never a loss, order is the registry's, nothing is told twice."""

from __future__ import annotations

import itertools

import duckdb
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ascend_compat.matrix.build import fill
from ascend_compat.matrix.documents import Document
from ascend_compat.matrix.history import CHANGES, diff, history
from ascend_compat.matrix.tables import STATUSES

MODELS = ("a", "b")
FEATURES = ("grpo", "lora")
GRANTED = ("supported", "partial")
RELEASES = st.lists(
    st.sampled_from(["1.9", "1.10", "v2", "2.0.rc1", "8.0.RC2.2", "main"]), min_size=2, max_size=4, unique=True
)
ROW = st.fixed_dictionaries({feature: st.sampled_from(STATUSES) for feature in FEATURES})
SOURCE = {"url": "https://example.com", "date": "2025-01-01"}


@st.composite
def matrices(draw):
    """Releases in order, and per release which models its table lists and what it says of them."""
    return [(release, draw(st.dictionaries(st.sampled_from(MODELS), ROW))) for release in draw(RELEASES)]


def database(said) -> duckdb.DuckDBPyConnection:
    releases = [
        {"id": name, "date": "2025-01-01", "frameworks": {"verl": {"table": "full", "version": "unknown"}}}
        for name, _ in said
    ]
    documents = [
        Document("p/product.yaml", "product", {"id": "p", "names": {"en": "P", "zh": "P"}, "releases": releases})
    ]
    heading = {"en": "x", "zh": "x"}
    columns = [
        {"id": name, "framework": "verl", "heading": heading, "features": [name], "form": "tick"} for name in FEATURES
    ]
    for release, models in said:
        rows = [{"label": model, "models": [model], "verl": dict(cells)} for model, cells in models.items()]
        body = {"product": "p", "release": release, "source": SOURCE, "columns": columns, "rows": rows}
        documents.append(Document(f"p/{release}.yaml", "table", body))
    con = duckdb.connect()
    fill(con, documents, "hash")
    return con


def status(models, model: str, feature: str) -> str:
    return models.get(model, {}).get(feature, "unknown")


slow = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)


@slow
@given(matrices())
def test_diff_tells_every_difference_once_and_unknown_is_no_loss(said):
    with database(said) as con:
        for old, before in said:
            for new, after in said:
                changes = diff(con, "p", old, new).records()
                told = {(row["model"], row["feature"]): row for row in changes}
                assert len(told) == len(changes)
                for model in MODELS:
                    for feature in FEATURES:
                        first, second = status(before, model, feature), status(after, model, feature)
                        row = told.pop((model, feature), None)
                        assert (row is not None) == (first != second)
                        if row is None:
                            continue
                        assert (row["before"], row["after"]) == (first, second)
                        change = row["change"]
                        assert change in CHANGES
                        assert (change == "became unknown") == (second == "unknown")
                        assert (change == "lost") == (first in GRANTED and second not in (*GRANTED, "unknown"))
                        if change == "added":
                            assert second in GRANTED
                            assert first not in GRANTED
                        if change == "newly stated":
                            assert first == "unknown"
                        if change == "changed":
                            assert "unknown" not in (first, second)
                assert told == {}


@slow
@given(matrices())
def test_diff_the_other_way_round_swaps_added_and_lost(said):
    with database(said) as con:
        (old, before), (new, after) = said[0], said[-1]
        there = {(row["model"], row["feature"]): row["change"] for row in diff(con, "p", old, new).records()}
        back = {(row["model"], row["feature"]): row["change"] for row in diff(con, "p", new, old).records()}
        assert there.keys() == back.keys()
        for key, change in there.items():
            if "unknown" in (status(before, *key), status(after, *key)):
                continue
            assert back[key] == {"added": "lost", "lost": "added", "changed": "changed"}[change]


@slow
@given(matrices())
def test_history_is_the_stated_releases_in_order(said):
    order = [release for release, _ in said]
    with database(said) as con:
        for model in MODELS:
            spans = history(con, model).records()
            for feature in FEATURES:
                stated = [
                    (release, status(models, model, feature))
                    for release, models in said
                    if status(models, model, feature) != "unknown"
                ]
                own = [span for span in spans if span["feature"] == feature]
                covered = []
                for span in own:
                    first, last = order.index(span["since"]), order.index(span["last_stated"])
                    assert first <= last
                    covered += [
                        (release, said_so) for release, said_so in stated if first <= order.index(release) <= last
                    ]
                    assert {said_so for _, said_so in covered[-1:]} == {span["status"]}
                assert covered == stated
                assert [span["until"] for span in own] == [span["last_stated"] for span in own[:-1]] + [None] * bool(
                    own
                )
                assert all(one["status"] != two["status"] for one, two in itertools.pairwise(own))


@slow
@given(matrices())
def test_ordinals_follow_the_registry(said):
    with database(said) as con:
        rows = con.execute("SELECT release FROM release ORDER BY ordinal").fetchall()
    assert [row[0] for row in rows] == [release for release, _ in said]
