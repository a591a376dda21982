"""run, evidence, audit and verify as a user meets them, with a runner that only plays the part."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ascend_compat.resources import data_root

RUNNER = """
import json, os, signal, subprocess, sys, time
from pathlib import Path
arguments = dict(zip(sys.argv[1::2], sys.argv[2::2]))
folder, plan = Path(arguments["--out"]), json.loads(Path(arguments["--job"]).read_text())
pipe = int(os.environ["ASCEND_COMPAT_EVENTS"])
parent = os.getppid()
def say(**event):
    os.write(pipe, (json.dumps(event) + "\\n").encode())
play = os.environ.get("PLAY", "pass")
(folder / "framework.log").write_text("the framework's own words\\n")
say(event="start", python="3.11.4", torch="2.7.1", torch_npu=None, framework_version="0.9.3", device=arguments["--device"], device_count=1, packages={})
say(event="step", step=1, loss=2.5, seconds=0.1, tokens_per_second=100.0)
if play == "hang" or (play == "second" and os.environ["MARK"] and Path(os.environ["MARK"]).exists()):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(os.environ["MARK"] + ".pids").write_text(f"{os.getpid()} {child.pid}")
    stopped = []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(1))
    while not stopped and os.getppid() == parent:
        time.sleep(0.02)
    child.kill()
    say(event="end", result="error", kind="killed", reason="stopped by SIGTERM", exit=-15)
    sys.exit(1)
if play == "second":
    Path(os.environ["MARK"]).write_text("one job is done")
if play == "dies":
    os.kill(os.getpid(), signal.SIGKILL)
if play == "oom":
    say(event="end", result="error", kind="oom", reason="NPU out of memory", exit=1)
    sys.exit(1)
if play == "skips":
    say(event="end", result="skipped", kind="no-device", reason="no NPU is visible", exit=None)
    sys.exit(1)
say(event="step", step=2, loss=2.0, seconds=0.1, tokens_per_second=110.0)
say(event="metric", name="train_loss", value=2.25, unit="nat/token")
say(event="end", result="pass", kind=None, reason="", exit=0)
"""


@pytest.fixture
def place(cache, tmp_path, monkeypatch):
    """Data of the checkout with a runner of our own, and a folder for evidence."""
    data = tmp_path / "data"
    (data / "runners").mkdir(parents=True)
    for name in ("matrix", "schema", "runners/recipes"):
        (data / name).symlink_to(data_root() / name)
    (data / "runners" / "llamafactory.py").write_text(RUNNER)
    monkeypatch.setenv("ASCEND_COMPAT_DATA", str(data))
    monkeypatch.setenv("ASCEND_COMPAT_EVIDENCE", str(tmp_path / "own"))
    monkeypatch.setenv("ASCEND_COMPAT_LANG", "en")
    monkeypatch.setenv("MARK", str(tmp_path / "mark"))
    return tmp_path


COMMAND = [sys.executable, "-c", "from ascend_compat.cli.main import run; run()"]


def call(*words, **variables):
    return subprocess.run(
        [*COMMAND, *words], capture_output=True, text=True, check=False, env={**os.environ, **variables}
    )


def begin(*words, **variables):
    return subprocess.Popen(
        [*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **variables}
    )


def documents(place):
    return [json.loads(path.read_text()) for path in sorted((place / "own").glob("*.json"))]


def wait_for(path):
    deadline = time.monotonic() + 60
    while not path.exists() or not path.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return path.read_text()


def gone(pid):
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            with Path(f"/proc/{pid}/stat").open() as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except OSError:
            return True
        time.sleep(0.02)
    return False


TINY = ("run", "llamafactory-lora-tiny", "--device", "cpu", "--python", sys.executable)


def test_a_run_leaves_evidence_that_the_audit_counts(place):
    done = call(*TINY)
    assert (done.returncode, done.stdout.split(":")[0]) == (0, "pass")
    assert "step 1, loss 2.5000, 100 token/s" in done.stderr
    (body,) = documents(place)
    (job,) = body["jobs"]
    assert (body["result"], body["cpu"], body["simulated"], body["device"]["kind"]) == ("pass", True, False, "cpu")
    assert job["features"] == ["sft", "lora", "flash-attention"]
    assert {metric["name"]: metric["values"] for metric in job["metrics"]}["loss"] == [2.5, 2.0]
    assert job["log_digest"].startswith("sha256:")
    totals = json.loads(call("audit", "--format", "json").stdout)["totals"]
    assert (totals["smoke"], totals["verified"]) == (3, 0)
    assert json.loads(call("audit", "--committed", "--format", "json").stdout)["totals"]["smoke"] == 0
    assert call("evidence", "verify").returncode == 0
    listed = json.loads(call("evidence", "list", "--format", "json").stdout)
    assert [(row["recipe"], row["result"]) for row in listed] == [("llamafactory-lora-tiny", "pass")]
    assert "qwen3-0.6b lora: smoke" in call("evidence", "show", body["id"][:20]).stdout


def test_the_plan_a_runner_gets(place):
    assert call(*TINY, "--out", str(place / "out")).returncode == 0
    (folder,) = (place / "out").glob("*/0-*")
    plan = json.loads((folder / "plan.json").read_text())
    assert (plan["command"], plan["steps"], plan["devices"]) == (["llamafactory-cli", "train", "job.yaml"], 5, 1)
    assert (plan["model"]["class"], plan["model"]["path"], plan["model"]["kind"]) == (
        "Qwen3ForCausalLM",
        "Qwen3-0.6B",
        "tiny",
    )
    assert plan["model"]["arch"]["num_key_value_heads"] == 8
    assert plan["data"]["name"] == "recipe_data"
    assert (folder / "job.yaml").is_file()


def test_an_impossible_job_is_refused_before_anything_starts(place):
    done = call(*TINY, "--set", "stage=nonsense")
    assert done.returncode == 1
    assert "LF-A03" in done.stderr
    assert "AC4005" in done.stderr
    assert documents(place) == []
    assert list((place / "own" / "runs").iterdir()) == []


def test_a_probe_runs_it_on_purpose(place):
    done = call(*TINY, "--set", "stage=nonsense", "--probe", PLAY="oom")
    assert (done.returncode, done.stdout.split(":")[0]) == (1, "error")
    (body,) = documents(place)
    assert (body["probe"], body["jobs"][0]["verdict"]) == (True, "impossible")
    assert body["jobs"][0]["error"] == {"kind": "oom", "reason": "NPU out of memory"}
    assert body["jobs"][0]["set"] == {"stage": "nonsense"}


@pytest.mark.parametrize(
    ("play", "result", "kind"),
    [("dies", "error", "killed"), ("oom", "error", "oom"), ("skips", "skipped", "no-device")],
)
def test_every_end_is_named(place, play, result, kind):
    done = call(*TINY, PLAY=play)
    assert done.returncode == 1
    (body,) = documents(place)
    assert (body["result"], body["jobs"][0]["error"]["kind"]) == (result, kind)
    assert json.loads(call("audit", "--format", "json").stdout)["totals"]["smoke"] == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_ends_its_whole_group_and_says_so(place, number):
    process = begin(*TINY, PLAY="hang")
    pids = wait_for(place / "mark.pids").split()
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert all(gone(pid) for pid in pids)
    (body,) = documents(place)
    assert body["jobs"][0]["error"]["kind"] == "killed"


def test_a_killed_command_leaves_no_half_document_and_no_orphan(place):
    process = begin(*TINY, PLAY="hang")
    pids = wait_for(place / "mark.pids").split()
    process.kill()
    process.communicate(timeout=60)
    assert all(gone(pid) for pid in pids)
    assert documents(place) == []
    assert list((place / "own").glob(".*.part")) == []


def test_two_runs_at_once_keep_two_documents(place):
    processes = [begin(*TINY) for _ in range(2)]
    for process in processes:
        process.communicate(timeout=60)
    assert [process.returncode for process in processes] == [0, 0]
    assert len({body["id"] for body in documents(place)}) == 2


def test_edited_evidence_fails_and_is_not_taken_in(place):
    call(*TINY)
    (path,) = (place / "own").glob("*.json")
    edited = place / "edited.json"
    edited.write_text(path.read_text().replace('"cpu": true', '"cpu": false'))
    done = call("evidence", "verify", str(edited))
    assert done.returncode == 1
    assert "AC4002" in done.stdout
    assert call("evidence", "add", str(edited)).returncode == 1
    assert call("evidence", "add", str(path)).returncode == 0
    path.write_text(edited.read_text())
    assert json.loads(call("audit", "--format", "json").stdout)["totals"]["smoke"] == 0


def test_evidence_of_an_older_recipe_is_stale(place):
    call(*TINY)
    recipes = place / "data" / "runners" / "recipes"
    originals = {path.name: path.read_text() for path in recipes.iterdir() if path.suffix == ".yaml"}
    recipes.unlink()
    recipes.mkdir()
    for name, text in originals.items():
        (recipes / name).write_text(text.replace("max_steps: 5", "max_steps: 6"))
    totals = json.loads(call("audit", "--format", "json").stdout)["totals"]
    assert (totals["smoke"], totals["stale"]) == (0, 3)
    done = call("audit", "--fail-on", "stale")
    assert done.returncode == 1
    assert "the recipe has changed since it ran" in done.stdout
    shown = call("evidence", "verify")
    assert (shown.returncode, "AC4003" in shown.stdout) == (0, True)


def test_without_an_environment_the_way_out_is_said(place):
    done = call("run", "llamafactory-lora-tiny", "--device", "cpu")
    assert done.returncode == 2
    assert "make runners" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "llamafactory-lor"), "nearest: llamafactory-lora"),
        ((*TINY, "--set", "stag=sft"), "nearest: stage"),
        ((*TINY, "--set", "seq_length=long"), "expected a value of type integer"),
        ((*TINY, "--release", "6.5.99"), "no release of ascendfactory"),
        ((*TINY[:4], "--python", "/no/such/python"), "no such interpreter"),
        (("verify", "--release", "6.5.906", "--budget", "soon"), "write a number and a unit"),
        (("audit", "--fail-on", "smoke"), "contradicted and stale"),
        (("evidence", "show", "nothing"), "no evidence is called"),
    ],
)
def test_wrong_usage_is_one_sentence(place, words, said):
    done = call(*words)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


VERIFY = ("verify", "--release", "6.5.906", "--device", "cpu", "--python", sys.executable)


def test_verify_runs_its_plan_and_repeats_nothing(place):
    plan = json.loads(call(*VERIFY[:5], "--plan", "--format", "json").stdout)
    assert (plan["runs"], plan["jobs"], plan["covered"], plan["reachable"]) == (2, 6, 10, 10)
    done = call(*VERIFY)
    assert done.returncode == 0
    assert [len(body["jobs"]) for body in documents(place)] == [3, 3]
    assert json.loads(call("audit", "--format", "json").stdout)["totals"]["smoke"] == 10
    assert json.loads(call(*VERIFY[:5], "--plan", "--format", "json").stdout)["runs"] == 0
    assert call(*VERIFY).returncode == 0
    assert len(documents(place)) == 2


def test_verify_goes_on_after_a_kill_without_repeating_what_is_done(place):
    process = begin(*VERIFY, PLAY="second")
    wait_for(place / "mark.pids")
    process.kill()
    process.communicate(timeout=60)
    assert documents(place) == []
    done = call(*VERIFY)
    assert done.returncode == 0
    bodies = documents(place)
    assert [len(body["jobs"]) for body in bodies] == [3, 3]
    folders = [path.name for path in (place / "own" / "runs").glob("*/*-llamafactory-*")]
    assert len(folders) == 6
    assert list((place / "own" / "runs" / "verify").iterdir()) == []


def test_a_spent_budget_starts_no_further_run(place):
    done = call(*VERIFY, "--budget", "0s")
    assert done.returncode == 1
    assert "2 runs are left" in done.stdout
    assert documents(place) == []


def test_recipes_are_listed_shown_and_rendered(place):
    listed = json.loads(call("recipe", "list", "--format", "json").stdout)
    assert len(listed) == 39
    assert {"name", "framework", "features", "model", "devices", "digest"} <= listed[0].keys()
    assert "finetuning_type: lora" in call("recipe", "show", "llamafactory-lora").stdout
    done = call("recipe", "render", "mindspeed-llm-pretrain", "--model", "qwen3-8b", "--out", str(place / "job"))
    assert (done.returncode, done.stdout) == (0, f"{place / 'job' / 'job.sh'}\n")
    assert "--tensor-model-parallel-size 2" in (place / "job" / "job.sh").read_text()
    bundle = call("recipe", "render", "llamafactory-lora", "--bundle").stdout
    assert "af_output_dir" in bundle
    unreached = json.loads(call("recipe", "list", "--unreached", "--release", "6.5.906", "--format", "json").stdout)
    assert len(unreached) == 59
