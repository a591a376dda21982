"""The published minimum numbers of devices, all of them, against the memory floors."""

from __future__ import annotations

import json

import duckdb
import pytest

from ascend_compat.check.memory import DEVICE_GIB, least_gib

SWAPPED = {("6.5.905", "qwen2-7b", "full", 4096), ("6.5.905", "qwen2-7b", "full", 8192)}


def test_every_row_is_there(con: duckdb.DuckDBPyConnection) -> None:
    counts = con.execute("SELECT count(*), count(DISTINCT release) FROM minimum_devices").fetchone()
    assert counts == (354, 4)


def test_no_published_row_is_below_a_floor_but_the_two_swapped_ones(con: duckdb.DuckDBPyConnection) -> None:
    rows = con.execute(
        "SELECT d.release, d.model, d.method, d.seq_length, d.snt9b, m.total_params, d.source FROM minimum_devices d "
        "JOIN model m ON m.id = d.model WHERE d.snt9b IS NOT NULL"
    ).fetchall()
    assert len(rows) > 200
    refused = {
        (release, model, method, length)
        for release, model, method, length, devices, total, source in rows
        if least_gib(method, total, devices) > DEVICE_GIB
    }
    assert refused == SWAPPED


@pytest.mark.parametrize(("devices", "warned"), [(8, True), (64, False)])
def test_a_job_below_the_published_minimum_is_warned(
    command: object, tmp_path: object, devices: int, warned: bool
) -> None:
    job = tmp_path / "job.sh"  # type: ignore[operator]
    visible = ",".join(map(str, range(8)))
    job.write_text(
        f"export ASCEND_RT_VISIBLE_DEVICES={visible}\nascendfactory-cli train job.yaml --env.NNODES={devices // 8}\n",
        encoding="utf-8",
    )
    (tmp_path / "job.yaml").write_text(  # type: ignore[operator]
        "af_output_dir: ./o\nbackend_config:\n  training:\n    model_name_or_path: Qwen2-72B\n    stage: sft\n    finetuning_type: full\n"
        "    template: qwen\n    cutoff_len: 4096\n    deepspeed: ds_z3.json\n",
        encoding="utf-8",
    )
    done = command("check", str(job), "--format", "json", "--release", "6.5.906")  # type: ignore[operator]
    codes = {finding["code"] for finding in json.loads(done.stdout)["jobs"][0]["findings"]}
    assert ("AF-W09" in codes) is warned
