"""Evidence: the ladder of a cell, documents nobody edited, the audit, and the plan of the fewest runs."""

from __future__ import annotations

import datetime
import json
import os

import pytest

from ascend_compat.check.engine import Engine
from ascend_compat.errors import DataError, UsageError
from ascend_compat.evidence import audit as auditing
from ascend_compat.evidence import document, store
from ascend_compat.evidence.cover import cover
from ascend_compat.evidence.process import Heard
from ascend_compat.evidence.run import outcome
from ascend_compat.evidence.verdict import complaints
from ascend_compat.files import write_whole
from ascend_compat.matrix.store import connect

RELEASE = "6.5.908"
NPU = {
    "python": "3.11.4",
    "torch": "2.5.1+cpu",
    "torch_npu": "2.5.1",
    "framework": "0.9.3",
    "cann": "8.2.RC1",
    "packages": {},
}


@pytest.fixture
def db(cache):
    with connect() as con:
        yield con


def run_of(con, *, device="npu", result="pass", error=None, feature="lora", end="2026-01-05", **more):
    """A sound document of one job: LoRA of Qwen2.5-7B, which 6.5.908 supports in LLaMA-Factory."""
    digest = con.execute("SELECT digest FROM recipe WHERE name = 'llamafactory-lora'").fetchall()[0][0]
    claim = con.execute(
        "SELECT status FROM claim WHERE product = 'ascendfactory' AND release = ? AND framework = 'llamafactory' AND model = ? AND feature = ?",
        [RELEASE, more.get("model", "qwen2.5-7b"), feature],
    ).fetchall()[0][0]
    job = {
        "recipe": "llamafactory-lora", "recipe_digest": more.get("digest", digest), "model": more.get("model", "qwen2.5-7b"),
        "model_kind": more.get("kind", "real"), "features": [feature], "claims": {feature: more.get("claim", claim)},
        "set": more.get("set", {}), "devices": 8, "command": ["llamafactory-cli", "train", "job.yaml"],
        "verdict": more.get("verdict", "supported"), "result": result, "error": error,
        "metrics": [{"name": "loss", "unit": "nat/token", "values": [2.0, 1.5]}], "log_digest": "sha256:" + "0" * 64,
        "start": f"{end}T10:00:00Z", "end": f"{end}T10:10:00Z",
    }  # fmt: skip
    return document.sealed(
        {
            "kind": "evidence", "schema_version": 1, "id": document.new_id("llamafactory-lora"), "product": "ascendfactory", "release": RELEASE,
            "framework": "llamafactory", "framework_version": "0.9.3", "matrix": "0" * 32, "device": {"kind": device, "count": 8},
            "cpu": device == "cpu", "simulated": more.get("simulated", False), "probe": False, "stack": {**NPU, **more.get("stack", {})},
            "command": ["ascend-compat", "run"], "start": f"{end}T10:00:00Z", "end": f"{end}T10:10:00Z", "result": result, "jobs": [job],
        }
    )  # fmt: skip


def state(con, *documents, model="qwen2.5-7b", feature="lora"):
    store.layers(con, [(f"{body['id']}.json", json.dumps(body)) for body in documents])
    rows = con.execute(
        "SELECT state, reason FROM cell_state WHERE product = 'ascendfactory' AND release = ? AND framework = 'llamafactory' AND model = ? AND feature = ?",
        [RELEASE, model, feature],
    ).fetchall()
    assert len(rows) == 1
    return rows[0]


FAILED = {"result": "error", "error": {"kind": "framework", "reason": "ValueError"}}


@pytest.mark.parametrize(
    ("told", "rung"),
    [
        (None, ("claimed", "no-run")),
        ({}, ("verified", "npu-run")),
        ({"device": "cpu"}, ("smoke", "cpu-run")),
        ({"simulated": True}, ("smoke", "cpu-run")),
        ({"kind": "tiny"}, ("smoke", "tiny-model")),
        ({"stack": {"framework": "0.9.1"}}, ("smoke", "other-stack")),
        ({"stack": {"cann": "8.0.RC3"}}, ("smoke", "other-stack")),
        ({"stack": {"torch": "2.1.0"}}, ("smoke", "other-stack")),
        ({"result": "skipped"}, ("claimed", "no-run")),
        (FAILED, ("contradicted", "failed-on-npu")),
        ({"result": "fail", "error": {"kind": "nan-loss", "reason": "nan"}}, ("contradicted", "failed-on-npu")),
        ({**FAILED, "device": "cpu"}, ("claimed", "failed-elsewhere")),
        ({**FAILED, "set": {"seq_length": 9}}, ("claimed", "failed-elsewhere")),
        ({**FAILED, "verdict": "impossible"}, ("claimed", "failed-elsewhere")),
        ({"result": "error", "error": {"kind": "killed", "reason": ""}}, ("claimed", "failed-elsewhere")),
        ({"result": "error", "error": {"kind": "missing-cann", "reason": ""}}, ("claimed", "failed-elsewhere")),
        ({"digest": "sha256:" + "1" * 64}, ("stale", "recipe-changed")),
        ({"claim": "unsupported"}, ("stale", "claim-changed")),
        ({"end": "2023-01-05"}, ("stale", "too-old")),
    ],
)
def test_the_ladder(db, told, rung):
    assert state(db, *([] if told is None else [run_of(db, **told)])) == rung


def test_the_newest_run_on_an_npu_speaks_before_others(db):
    good, bad = run_of(db, end="2026-01-05"), run_of(db, end="2026-01-06", **FAILED)
    smoke = run_of(db, device="cpu", end="2026-01-07")
    assert state(db, good, bad, smoke) == ("contradicted", "failed-on-npu")
    assert state(db, bad, run_of(db, end="2026-01-08"), smoke) == ("verified", "npu-run")
    killed = run_of(db, end="2026-01-09", result="error", error={"kind": "killed", "reason": ""})
    assert state(db, smoke, killed) == ("smoke", "cpu-run")


def test_a_claim_of_no_support_that_ran_is_contradicted(db):
    model = db.execute(
        "SELECT model FROM claim WHERE product = 'ascendfactory' AND release = ? AND framework = 'llamafactory' AND feature = 'lora' AND status = 'unsupported' ORDER BY model",
        [RELEASE],
    ).fetchall()[0][0]
    assert state(db, run_of(db, model=model), model=model) == ("contradicted", "ran-though-unsupported")
    assert state(db, run_of(db, model=model, device="cpu"), model=model)[0] == "claimed"
    assert state(db, run_of(db, model=model, **FAILED), model=model) == ("claimed", "failed-as-claimed")


def test_every_rung_has_its_reason_in_both_languages(db):
    store.layers(db, [("a.json", json.dumps(run_of(db)))])
    rows = db.execute("SELECT DISTINCT state, reason_en, reason_zh FROM cell_state").fetchall()
    assert {row[0] for row in rows} == {"claimed", "verified"}
    assert all(row[1] and row[2] for row in rows)


def test_documents_are_sound_and_edits_are_seen(db, tmp_path, monkeypatch):
    monkeypatch.setenv("ASCEND_COMPAT_EVIDENCE", str(tmp_path / "own"))
    body = run_of(db)
    assert document.faults(body) == []
    path = document.write(tmp_path, body)
    assert complaints(db, path) == []
    path.write_text(path.read_text().replace('"pass"', '"fail"', 1))
    assert [entry.code for entry in complaints(db, path)] == ["AC4002"]
    old = document.write(tmp_path, run_of(db, digest="sha256:" + "1" * 64))
    assert [entry.code for entry in complaints(db, old)] == ["AC4003"]
    for text in ("{", "[]", '{"kind": "evidence"}'):
        (tmp_path / "broken.json").write_text(text)
        assert [entry.code for entry in complaints(db, tmp_path / "broken.json")] == ["AC4001"]


def test_an_edited_document_speaks_for_nothing(db, tmp_path, monkeypatch):
    monkeypatch.setenv("ASCEND_COMPAT_EVIDENCE", str(tmp_path))
    path = document.write(tmp_path, run_of(db))
    store.layer(db)
    assert db.execute("SELECT count(*) FROM cell_state WHERE state = 'verified'").fetchall() == [(1,)]
    path.write_text(path.read_text().replace("2.5.1+cpu", "2.5.1"))
    store.layer(db)
    assert db.execute("SELECT count(*) FROM cell_state WHERE state = 'verified'").fetchall() == [(0,)]


def test_a_log_that_is_not_the_runs_own_is_seen(db, tmp_path, monkeypatch):
    monkeypatch.setenv("ASCEND_COMPAT_EVIDENCE", str(tmp_path))
    body = run_of(db)
    folder = tmp_path / "runs" / body["id"] / "0-llamafactory-lora@qwen2.5-7b"
    folder.mkdir(parents=True)
    (folder / "framework.log").write_text("another log")
    assert [entry.code for entry in complaints(db, document.write(tmp_path, body))] == ["AC4004"]


def test_no_half_document_is_left_where_the_disk_refuses(tmp_path, monkeypatch):
    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DataError, match="no space left on device"):
        write_whole(tmp_path / "a.json", "{}")
    assert list(tmp_path.iterdir()) == []


def test_two_runs_at_once_have_ids_of_their_own():
    assert len({document.new_id("llamafactory-lora") for _ in range(100)}) == 100


@pytest.mark.parametrize(
    ("heard", "result"),
    [
        (Heard(end={"result": "pass"}), ("pass", None)),
        (Heard(end={"result": "fail", "kind": "nan-loss", "reason": "nan"}), ("fail", "nan-loss")),
        (Heard(end={"result": "skipped", "kind": "no-device", "reason": ""}), ("skipped", "no-device")),
        (Heard(end={"result": "pass"}, status=-9), ("error", "killed")),
        (Heard(status=-11), ("error", "killed")),
        (Heard(status=1), ("error", "runner")),
        (Heard(status=0), ("error", "runner")),
        (Heard(interrupted=True, status=-15), ("error", "killed")),
    ],
)
def test_how_a_run_ends(tmp_path, heard, result):
    (tmp_path / "log").write_text("Traceback\nValueError: no such thing\n\n")
    got, error = outcome(heard, tmp_path / "log")
    assert (got, error and error["kind"]) == result


def test_the_result_of_a_run_is_that_of_its_worst_job():
    assert document.worst(["pass", "pass"]) == "pass"
    assert document.worst(["pass", "skipped"]) == "skipped"
    assert document.worst(["skipped", "fail", "error"]) == "error"
    assert document.worst([]) == "skipped"


def test_the_committed_data_verifies_nothing_on_an_npu(db):
    result = auditing.audit(db)
    assert len(result.lines) >= 40
    assert sum(line.cells for line in result.lines) > 10_000
    assert (result.total("verified"), result.total("contradicted"), result.total("stale")) == (0, 0, 0)
    assert result.passed


def _bad(db):
    store.layers(db, [("a.json", json.dumps(run_of(db, **FAILED)))])


def test_the_audit_puts_the_worst_first_and_fails_on_what_is_asked(db):
    _bad(db)
    result = auditing.audit(db, fail_on=["contradicted"])
    assert (result.lines[0].release, result.lines[0].framework) == (RELEASE, "llamafactory")
    assert [cell["model"] for cell in result.failing] == ["qwen2.5-7b"]
    assert not result.passed
    assert auditing.audit(db, fail_on=["stale"]).passed
    assert auditing.audit(db, release="6.5.906", fail_on=["contradicted"]).passed


def test_a_waiver_forgives_until_its_day(db, monkeypatch):
    _bad(db)
    waiver = {
        "release": RELEASE,
        "framework": "llamafactory",
        "feature": "lora",
        "state": "contradicted",
        "reason": {"en": "a known fault", "zh": "已知问题"},
        "until": "2026-06-30",
    }
    monkeypatch.setattr(auditing, "read_waivers", lambda: [waiver])
    held = auditing.audit(db, fail_on=["contradicted"], today=datetime.date(2026, 6, 30))
    assert held.passed
    assert held.lines[0].waived == 1
    over = auditing.audit(db, fail_on=["contradicted"], today=datetime.date(2026, 7, 1))
    assert not over.passed
    assert over.expired == [f"{RELEASE} llamafactory: a known fault"]


def test_a_ratchet_rises_and_may_not_fall(db, tmp_path):
    path = tmp_path / "ratchet.json"
    key = f"ascendfactory {RELEASE} llamafactory"

    def turn(*documents):
        store.layers(db, [(f"{body['id']}.json", json.dumps(body)) for body in documents])
        result = auditing.audit(db)
        auditing.ratchet(result, path)
        return result.fallen

    assert turn(run_of(db, device="cpu")) == []
    assert json.loads(path.read_text()) == {key: {"smoke": 1, "verified": 0}}
    assert turn(run_of(db)) == []
    assert json.loads(path.read_text()) == {key: {"smoke": 1, "verified": 1}}
    assert turn(run_of(db, device="cpu")) == [f"{key}: verified 1 -> 0"]
    assert len(turn()) == 2
    path.write_text('{"a": 1}')
    with pytest.raises(UsageError, match="is no ratchet"):
        turn()


def test_the_plan_covers_every_reachable_cell_with_a_tenth_of_the_runs(db):
    store.layers(db, [])
    found = cover(Engine(db), "ascendfactory", "6.5.906")
    covered = {(run.framework, *cell) for run in found.runs for cell in run.cells}
    assert (found.cells, found.reachable, len(covered)) == (742, 683, 683)
    columns = db.execute(
        "SELECT count(*) FROM cell WHERE product = 'ascendfactory' AND release = '6.5.906' AND status = 'supported'"
    ).fetchall()[0][0]
    assert columns == 339
    assert len(found.runs) * 10 <= columns
    for run in found.runs:
        assert {job.recipe.framework for job in run.jobs} == {run.framework}
        touched = {(job.model["id"], feature) for job in run.jobs for feature in job.recipe.features}
        assert set(run.cells) <= touched


def test_what_is_proven_or_answered_is_not_planned_again(db):
    store.layers(db, [])
    before = cover(Engine(db), "ascendfactory", RELEASE, "llamafactory")
    proven = run_of(db)
    store.layers(db, [("a.json", json.dumps(proven))])
    after = cover(Engine(db), "ascendfactory", RELEASE, "llamafactory")
    assert before.due - after.due == 1
    jobs = {(job.recipe.name, job.model["id"]) for run in after.runs for job in run.jobs}
    assert ("llamafactory-lora", "qwen2.5-7b") not in jobs
    killed = run_of(db, result="error", error={"kind": "killed", "reason": ""})
    store.layers(db, [("a.json", json.dumps(killed))])
    again = cover(Engine(db), "ascendfactory", RELEASE, "llamafactory")
    assert {(job.recipe.name, job.model["id"]) for run in again.runs for job in run.jobs} == {
        (job.recipe.name, job.model["id"]) for run in before.runs for job in run.jobs
    }


def test_on_a_cpu_only_tiny_recipes_are_planned(db):
    store.layers(db, [])
    found = cover(Engine(db), "ascendfactory", "6.5.906", device="cpu")
    assert found.reachable == 10
    assert all(job.recipe.tiny for run in found.runs for job in run.jobs)
