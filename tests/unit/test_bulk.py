"""A Parquet file of jobs gets the verdicts that the same jobs get one by one."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner

from ascend_compat.check.bulk import audit
from ascend_compat.check.claims import Question
from ascend_compat.check.engine import Engine, worst
from ascend_compat.check.rules import Row, evaluate
from ascend_compat.cli.main import main
from ascend_compat.errors import UsageError
from ascend_compat.matrix.store import connect

COLUMNS = {
    "model": "VARCHAR",
    "nnodes": "BIGINT",
    "devices_per_node": "BIGINT",
    "tensor_parallel": "BIGINT",
    "pipeline_parallel": "BIGINT",
    "context_parallel": "BIGINT",
    "num_attention_heads": "BIGINT",
    "stage": "VARCHAR",
    "finetuning_type": "VARCHAR",
    "entry": "VARCHAR",
    "noop_layers": "BIGINT[]",
}


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(connect())


def jobs() -> list[dict[str, Any]]:
    models = ("qwen2.5-7b", "qwen3-32b", None)
    grid = itertools.product(models, (1, 2), (1, 3, 8), (1, 4), (28, None), ("lora", "full"))
    return [
        {
            "model": model,
            "nnodes": nodes,
            "devices_per_node": 8,
            "tensor_parallel": tensor,
            "pipeline_parallel": pipeline,
            "context_parallel": 1,
            "num_attention_heads": heads,
            "stage": "sft",
            "finetuning_type": method,
            "entry": "posttrain_gpt.py",
            "noop_layers": None,
        }
        for model, nodes, tensor, pipeline, heads, method in grid
    ]


def written(path: Path, rows: list[dict[str, Any]]) -> str:
    with duckdb.connect() as con:
        con.execute(f"CREATE TABLE jobs ({', '.join(f'{name} {kind}' for name, kind in COLUMNS.items())})")
        marks = ", ".join("?" for _ in COLUMNS)
        con.executemany(f"INSERT INTO jobs VALUES ({marks})", [[row[name] for name in COLUMNS] for row in rows])
        con.execute(f"COPY jobs TO '{path}' (FORMAT parquet)")
    return str(path)


@pytest.mark.parametrize("framework", ["mindspeed-llm", "llamafactory", "verl"])
def test_rows_get_the_verdicts_of_single_jobs(engine: Engine, tmp_path: Path, framework: str) -> None:
    rows = jobs()
    assert len(rows) == 144
    output = tmp_path / "verdicts.parquet"
    found = audit(engine, written(tmp_path / "jobs.parquet", rows), framework, output=str(output))
    rules = engine.rules(framework, found.version)
    expected, broken = [], {}
    for row in rows:
        (outcome,) = evaluate(engine.con, [Row(row)], rules, engine.vocabulary(framework))
        verdicts = ["impossible"] if any(rule.severity == "impossible" for rule in outcome.broken) else []
        if row["model"] is None:
            verdicts.append("unverified")
        else:
            question = Question(framework, row["model"], outcome.features, {})
            verdicts.append(engine.claims.answer(found.product, found.release, question).verdict)
        expected.append(worst(verdicts))
        for rule in outcome.broken:
            broken[rule.id] = broken.get(rule.id, 0) + 1
    with duckdb.connect() as con:
        said = con.execute(f"SELECT verdict FROM '{output}' ORDER BY row").fetchall()
    assert [verdict for (verdict,) in said] == expected
    assert found.broken == broken
    assert found.jobs == 144
    assert found.verdicts["impossible"] == expected.count("impossible")


def test_a_wild_value_spoils_only_its_own_rule(engine: Engine, tmp_path: Path) -> None:
    rows = [{**row, "pipeline_parallel": 0 if at == 5 else 1} for at, row in enumerate(jobs())]
    found = audit(engine, written(tmp_path / "jobs.parquet", rows), "mindspeed-llm")
    assert sum(found.verdicts.values()) == 144
    assert found.verdicts["impossible"] > 0


def test_bad_files_are_one_sentence(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "it's not.parquet"
    path.write_bytes(b"PAR1 no")
    with pytest.raises(UsageError, match="as Parquet"):
        audit(engine, str(path), "verl")
    with duckdb.connect() as con:
        con.execute(f"COPY (SELECT 1 AS \"x) --\") TO '{tmp_path / 'odd.parquet'}' (FORMAT parquet)")
    with pytest.raises(UsageError, match="no fact"):
        audit(engine, str(tmp_path / "odd.parquet"), "verl")


def test_the_command_counts(tmp_path: Path) -> None:
    path = written(tmp_path / "jobs.parquet", jobs())
    done = CliRunner().invoke(main, ["audit-jobs", path, "--framework", "mindspeed-llm", "--format", "json"])
    assert done.exit_code == 1
    assert json.loads(done.stdout)["jobs"] == 144
