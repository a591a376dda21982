"""The commands that read the matrix, run as a user runs them."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ascend_compat import Matrix
from ascend_compat.errors import UsageError

REPOSITORY = Path(__file__).resolve().parents[2]


def run(*arguments: str, code: int = 0, **environment: str) -> str:
    """Standard output of a command that must end with ``code`` (standard error where that is not 0)."""
    settings = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG"))}
    settings |= {"PYTHONPATH": str(REPOSITORY), **environment}
    done = subprocess.run(
        [sys.executable, "-m", "ascend_compat", *arguments], env=settings, capture_output=True, check=False
    )
    output, error = done.stdout.decode(), done.stderr.decode()
    assert done.returncode == code, error or output
    if code:
        assert output == ""
        assert error.count("\n") == 1 and error.startswith("error: ")
        return error
    assert error == ""
    return output


def test_the_figures_of_the_seed_table():
    out = run(
        "sql", "select status, count(*) from cell where release='6.5.906' group by 1 order by 1", "--format", "json"
    )
    assert [tuple(row.values()) for row in json.loads(out)] == [
        ("not-applicable", 132),
        ("supported", 339),
        ("unsupported", 213),
    ]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT 1; SELECT 2", "2 statements"),
        ("", "0 statements"),
        ("DELETE FROM cell", "only queries"),
        ("CREATE TEMP TABLE t (i INT)", "only queries"),
        ("COPY cell TO 'x.csv'", "only queries"),
        ("SET threads = 1", "only queries"),
        ("SELEC 1", "syntax error"),
        ("SELECT * FROM nowhere", "nowhere does not exist"),
        ("SELECT * FROM read_text('/etc/hostname')", "disabled by configuration"),
        ("SELECT CAST('x' AS INTEGER)", "Could not convert"),
    ],
)
def test_a_bad_query_is_one_sentence(query, said):
    assert said in run("sql", query, code=2)


def test_sql_formats(tmp_path):
    query = "SELECT 'a|b,\"c\"' AS text, 2 AS number, NULL AS nothing, [1, 2] AS list, '中文' AS wide, 2 AS number"
    (record,) = json.loads(run("sql", query, "--format", "json"))
    assert record == {"text": 'a|b,"c"', "number": 2, "nothing": None, "list": [1, 2], "wide": "中文", "number_1": 2}
    header, row = csv.reader(io.StringIO(run("sql", query, "--format", "csv"), newline=""))
    assert header == list(record)
    assert row == ['a|b,"c"', "2", "", "[1, 2]", "中文", "2"]
    lines = run("sql", query, "--format", "markdown").splitlines()
    assert lines[2] == '| a\\|b,"c" | 2 |  | 1, 2 | 中文 | 2 |'
    assert run("sql", query).splitlines()[2].split() == ['a|b,"c"', "2", "1,", "2", "中文", "2"]
    import polars

    target = tmp_path / "rows.parquet"
    assert run("sql", query, "--format", "parquet", "--output", str(target)) == ""
    assert polars.read_parquet(target).to_dicts() == [record]
    assert "--output" in run("sql", query, "--format", "parquet", code=2)
    assert "cannot write" in run("sql", query, "--output", str(tmp_path / "no" / "where"), code=2)


def test_table_columns_line_up_with_wide_characters():
    lines = run("sql", "SELECT * FROM (VALUES ('中文', 1), ('ab', 22)) t(name, n)").splitlines()
    assert lines == ["name   n", "----  --", "中文   1", "ab    22"]


def test_numbers_json_cannot_hold_become_text():
    assert json.loads(run("sql", "SELECT 'nan'::DOUBLE AS x", "--format", "json")) == [{"x": "nan"}]


@pytest.mark.parametrize(
    ("what", "least"),
    [
        ("models", 103),
        ("frameworks", 5),
        ("features", 40),
        ("products", 5),
        ("releases", 30),
        ("columns", 40),
        ("codes", 11),
        ("rules", 1),
        ("facts", 100),
        ("stacks", 1),
    ],
)
def test_lists(what, least):
    rows = json.loads(run("list", what, "--format", "json"))
    assert len(rows) >= least
    assert len({json.dumps(row) for row in rows}) == len(rows)


def test_list_releases_of_one_product_in_order():
    rows = json.loads(run("list", "releases", "--product", "AscendFactory", "--format", "json"))
    names = [row["release"] for row in rows]
    assert names == sorted(names)
    assert {"6.5.901", "6.5.906", "6.5.910", "6.5.912"} <= set(names)


@pytest.mark.parametrize(
    ("name", "kind", "found"),
    [
        ("/data/models/Qwen2.5-7B-Instruct", "model", "qwen2.5-7b"),
        ("LLaMA Factory", "framework", "llamafactory"),
        ("LoRA", "feature", "lora"),
        ("6.5.906", "release", "6.5.906"),
        ("ascendfactory@6.5.906", "release", "6.5.906"),
        ("ascendfactory", "product", "ascendfactory"),
        ("Qwen2.5系列", "series", "Qwen2.5系列"),
    ],
)
def test_show(name, kind, found):
    record = json.loads(run("show", name, "--format", "json"))
    assert (record["kind"], record["id"]) == (kind, found)
    assert len(record) > 2
    assert found in run("show", name).splitlines()[0]
    assert run("show", name, "--format", "markdown").startswith("# ")


def test_show_speaks_the_language_of_the_locale():
    assert run("show", "lora", LANG="zh_CN.UTF-8").startswith("特性 lora")
    assert run("show", "lora", LANG="C").startswith("Feature lora")
    assert run("show", "lora", "--lang", "zh", LANG="C").startswith("特性 lora")


@pytest.mark.parametrize(
    ("arguments", "nearest"),
    [
        (("show", "qwen3-8bb"), "qwen3-8b"),
        (("history", "qwen3-8bb"), "qwen3-8b"),
        (("history", "qwen3-8b", "--framework", "verll"), "verl"),
        (("history", "qwen3-8b", "--feature", "loraa"), "lora"),
        (("diff", "6.5.906", "6.5.9100"), "6.5.910"),
        (("diff", "6.5.906", "6.5.910", "--product", "ascendfactry"), "ascendfactory"),
        (("diff", "6.5.906", "6.5.910", "--model", "qwen3-8bb"), "qwen3-8b"),
    ],
)
def test_a_miss_names_the_nearest(arguments, nearest):
    assert nearest in run(*arguments, code=2).split("nearest: ")[1]


def test_history_of_a_cell_that_came():
    rows = json.loads(run("history", "Qwen3-8B", "--framework", "verl", "--feature", "grpo", "--format", "json"))
    assert [(row["status"], row["since"], row["until"]) for row in rows if row["product"] == "ascendfactory"] == [
        ("unsupported", "6.5.905", "6.5.905"),
        ("supported", "6.5.906", None),
    ]


def test_diff_between_releases():
    rows = json.loads(run("diff", "6.5.906", "6.5.910", "--framework", "verl", "--format", "json"))
    assert len(rows) >= 50
    assert {row["framework"] for row in rows} == {"verl"}
    assert all(row["after"] != "unknown" for row in rows if row["change"] == "lost")
    assert all(row["after"] == "unknown" for row in rows if row["change"] == "became unknown")
    assert any(row["change"] == "added" for row in rows)
    assert json.loads(run("diff", "6.5.906", "v6.5.906", "--format", "json")) == []


@pytest.mark.parametrize(
    ("old", "new", "least"), [("6.5.906", "6.5.907", {"lost"}), ("6.5.906", "6.5.910", {"added", "changed"})]
)
def test_diff_as_text_groups_equal_changes(old, new, least):
    rows = json.loads(run("diff", old, new, "--format", "json"))
    changes = {row["change"] for row in rows}
    assert least | {"became unknown"} <= changes
    lines = run("diff", old, new).splitlines()
    assert lines[0] == f"ascendfactory {old} -> {new}"
    for change in changes:
        count = sum(row["change"] == change for row in rows)
        (heading,) = [line for line in lines if line.startswith(change)]
        assert heading.endswith(f": {count}")
    assert len(lines) < len(rows) / 4
    assert "没有差异" in run("diff", old, old, "--lang", "zh")


def test_conflicts_are_a_grant_against_a_denial(tmp_path):
    """Two bundles differ on lora for model b; on model a they agree, and on c one says nothing; old releases do not count."""
    (tmp_path / "schema").mkdir()
    folder = tmp_path / "matrix"
    folder.mkdir()
    said = {
        ("one", "1"): {"a": "unsupported", "b": "unsupported", "c": "supported"},
        ("one", "2"): {"a": "supported", "b": "unsupported", "c": "supported"},
        ("two", "1"): {"a": "partial", "b": "supported", "c": "unknown"},
    }
    source = {"url": "https://example.com", "date": "2025-01-01"}
    for product in ("one", "two"):
        stated = {"verl": {"table": "full", "version": "unknown"}}
        releases = [
            {"id": name, "date": "2025-01-01", "frameworks": stated} for owner, name in said if owner == product
        ]
        body = {"kind": "product", "id": product, "names": {"en": product, "zh": product}, "releases": releases}
        (folder / f"{product}.json").write_text(json.dumps(body))
    column = {
        "id": "lora",
        "framework": "verl",
        "heading": {"en": "x", "zh": "x"},
        "features": ["lora"],
        "form": "tick",
    }
    for (product, release), models in said.items():
        rows = [{"label": model, "models": [model], "verl": status} for model, status in models.items()]
        body = {
            "kind": "table",
            "product": product,
            "release": release,
            "source": source,
            "columns": [column],
            "rows": rows,
        }
        (folder / f"{product}-{release}.json").write_text(json.dumps(body))
    place = {"ASCEND_COMPAT_DATA": str(tmp_path), "ASCEND_COMPAT_CACHE": str(tmp_path / "cache")}
    (row,) = json.loads(run("conflicts", "--format", "json", **place))
    assert (row["model"], row["framework"], row["feature"]) == ("b", "verl", "lora")
    assert (row["product_a"], row["release_a"], row["status_a"]) == ("one", "2", "unsupported")
    assert (row["product_b"], row["release_b"], row["status_b"]) == ("two", "1", "supported")


def test_python():
    with Matrix.open() as matrix:
        ((first, *_),) = [
            matrix.claims(
                product="ascendfactory", release="6.5.906", model="Qwen2-1.5B", framework="verl", feature="grpo"
            )
        ]
        assert (first.model, first.status) == ("qwen2-1.5b", "unsupported")
        assert json.loads(first.source)
        assert matrix.sql("SELECT count(*) AS cells FROM cell WHERE release = '6.5.906'") == [{"cells": 684}]
        assert {claim.status for claim in matrix.claims(product="ascendfactory", status="withdrawn")} == {"withdrawn"}
        with pytest.raises(UsageError, match="qwen9"):
            matrix.claims(model="qwen9")
        with pytest.raises(UsageError, match="product"):
            matrix.claims(release="6.5.906")
        with pytest.raises(UsageError):
            matrix.sql("DELETE FROM cell")


def test_importing_the_package_is_cheap():
    code = "import sys, ascend_compat; print(sorted({'duckdb', 'yaml', 'polars', 'click', 'json'} & set(sys.modules)))"
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
