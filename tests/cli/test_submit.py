"""``submit``: a rejected job runs nothing; any other command is run as if it had been typed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LAUNCH = (
    "torchrun --nnodes ${NNODES:-1} --nproc_per_node 8 pretrain_gpt.py --tensor-model-parallel-size ${1:-3} "
    "--num-layers 28 --hidden-size 3584 --num-attention-heads 28 --seq-length 4096 --micro-batch-size 1 "
    "--global-batch-size 64 --max-position-embeddings 4096"
)
Submit = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a job script whose training program is a stand-in that notes how it was called."""
    (tmp_path / "job.sh").write_text(f'#!/bin/bash\n#SBATCH --nodes=1\necho "$@" > ran\n{LAUNCH}\nexit 7\n')
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "torchrun").write_text("#!/bin/sh\ncat > stdin\ngrep SigIgn /proc/self/status > signals\n")
    for name in ("sbatch", "kubectl", "llamafactory-cli", "ascendfactory-cli"):
        (programs / name).write_text(f'#!/bin/sh\necho {name} "$@" > ran\n')
    for program in programs.iterdir():
        program.chmod(0o755)
    for example in (ROOT / "docs" / "examples").iterdir():
        shutil.copy(example, tmp_path)
    return tmp_path


@pytest.fixture
def submit(place: Path, cache: Path) -> Submit:
    """Runs ``ascend-compat submit`` there."""

    def run(*words: str, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "ascend_compat", "submit", *words],
            cwd=place,
            env=surroundings(place, cache) | env,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run


def surroundings(place: Path, cache: Path) -> dict[str, str]:
    path = f"{place / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return {
        **os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "ASCEND_COMPAT_CACHE": str(cache), "LC_ALL": "C.UTF-8"
    }  # fmt: skip


def test_a_rejected_job_runs_nothing(submit: Submit, place: Path) -> None:
    done = submit("--", "bash", "job.sh")
    assert done.returncode == 1
    assert not (place / "ran").exists()
    assert done.stdout == ""
    assert "ML-PAR12" in done.stderr
    assert "job.sh:4" in done.stderr


def test_a_good_job_runs_untouched(submit: Submit, place: Path) -> None:
    done = submit("--", "bash", "job.sh", "4", "a b", "--strict", stdin="one\ntwo\n")
    assert done.returncode == 7
    assert (place / "ran").read_text() == "4 a b --strict\n"
    assert (place / "stdin").read_text() == "one\ntwo\n"
    if sys.platform == "linux":
        ignored = int((place / "signals").read_text().split()[1], 16)
        assert not ignored & (1 << (signal.SIGPIPE - 1))


def test_dry_run_stops_after_the_check(submit: Submit, place: Path) -> None:
    assert submit("--dry-run", "--", "bash", "job.sh", "4").returncode == 0
    assert submit("--dry-run", "--", "bash", "job.sh").returncode == 1
    assert not (place / "ran").exists()


def test_variables_of_the_surroundings_count(submit: Submit) -> None:
    assert submit("--dry-run", "--", "bash", "job.sh", "4", NNODES="1").returncode == 0
    done = submit("--dry-run", "--", "env", "NNODES=3", "bash", "job.sh", "16")
    assert done.returncode == 1
    assert "24 devices" in done.stderr


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("sbatch job.sh", 1),
        ("sbatch -N 1 --parsable -p queue job.sh 4", 0),
        ("sbatch --nodes=1 job.sh 3", 1),
        ("srun bash job.sh", 1),
        ("llamafactory-cli train llamafactory-lora-qwen2-1.5b.yaml", 0),
        ("ascendfactory-cli train af-llamafactory-lora-qwen2-1.5b.yaml", 1),
        ("ascendfactory-cli train af-llamafactory-lora-qwen2.5-7b.yaml", 0),
        ("kubectl apply -f job.yaml", 1),
        ("kubectl apply --filename=.", 1),
        ("kubectl delete -f job.yaml", 0),
        ("own-queue --script job.sh", 1),
        ("sbatch gone.sh", 2),
        ("llamafactory-cli train broken.yaml", 1),
        ("kubectl apply -f broken.yaml", 2),
        ("ls -l", 0),
    ],
)
def test_the_job_is_found_in_the_command(submit: Submit, place: Path, command: str, code: int) -> None:
    indented = LAUNCH.replace("${1:-3}", "3").replace("${NNODES:-1}", "1")
    (place / "job.yaml").write_text(
        "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: x}\nspec: {pytorchReplicaSpecs: {Worker: "
        f"{{replicas: 1, template: {{spec: {{containers: [{{name: a, command: [bash, -c, '{indented}']}}]}}}}}}}}}}\n"
    )
    if "broken" in command:
        (place / "broken.yaml").write_text("model_name_or_path: [\n")
    done = submit("--dry-run", "--", *command.split())
    assert done.returncode == code, done.stderr
    assert not (place / "ran").exists()


def test_commands_without_a_job(submit: Submit, place: Path) -> None:
    done = submit("--", "sh", "-c", "echo hello; exit 5")
    assert (done.returncode, done.stdout) == (5, "hello\n")
    assert "nothing was checked" in done.stderr
    assert submit("--strict", "--", "true").returncode == 1
    assert submit("--", "no-such-program").returncode == 127
    assert submit("--", str(place)).returncode == 126
    assert submit().returncode == 2


def test_signals_reach_the_command(place: Path, cache: Path) -> None:
    (place / "wait.sh").write_text("trap 'echo got; exit 9' TERM\necho $$ > pid\nwhile :; do sleep 0.05; done\n")
    words = [sys.executable, "-m", "ascend_compat", "submit", "--", "bash", "wait.sh"]
    process = subprocess.Popen(words, cwd=place, env=surroundings(place, cache), stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    pid = place / "pid"
    while not (pid.exists() and pid.read_text().strip()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert int(pid.read_text()) == process.pid
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=60)
    assert (process.returncode, output) == (9, "got\n")
