"""Starts a framework's own processes, follows their log, and ends them: the part that all runners have in common."""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import os
import select
import signal
import subprocess
import sys
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Any

from common import failures, guard
from common.events import Events
from common.plan import Measured, PlanError, judge, load

GRACE = 10.0
_TAIL = 400
_LINE = 65536
_PROBE = "import torch, torch_npu; print('devices', torch.npu.device_count())"


class Framework:
    """What differs between frameworks. A subclass reads the log lines of its own framework.

    ``events``, ``measured`` and ``job_file`` are set before anything is called.
    """

    package = ""
    events: Events
    measured: Measured
    job_file: Path

    def __init__(self, plan: dict[str, Any], folder: Path, device: str) -> None:
        self.plan, self.folder, self.device = plan, folder, device
        self.cwd = Path(plan.get("cwd") or folder)
        if not self.cwd.is_absolute():
            self.cwd = folder / self.cwd
        self._clock = time.monotonic()

    @property
    def devices(self) -> int:
        """Devices, or processes on a CPU, that the plan asks for."""
        return int(self.plan.get("devices") or 1)

    def preparation(self) -> list[str] | None:
        """Command line that makes what the job needs (tiny model, data), in a process of its own."""
        made = (self.plan.get("model") or {}).get("kind") == "tiny" or (self.plan.get("data") or {}).get("kind")
        if not made:
            return None
        script = Path(__file__).resolve().parent.parent / "tiny.py"
        return [sys.executable, str(script), "--plan", str(self.job_file), "--out", str(self.cwd)]

    def prepare(self) -> None:
        """Called once before the start, when what the job needs is there."""

    def command(self) -> list[str]:
        """The command line as it is started."""
        command = self.plan["command"]
        if isinstance(command, dict):
            # without pipefail a script that ends in `| tee` reports the status of tee
            return ["bash", "-o", "pipefail", command["main"]]
        return list(command)

    def environment(self) -> dict[str, str]:
        """Variables beside those of the plan."""
        return {}

    def line(self, text: str) -> None:
        """Reads one line of the log."""

    def poll(self) -> None:
        """Reads what the framework writes beside its log; called about ten times a second and once at the end."""

    def died(self, tail: list[str]) -> tuple[str, str] | None:
        """Kind and reason where the log shows a failure that the exit status hides."""
        return None

    def step(self, step: int, loss: float | None, *, seconds: float | None = None, **fields: Any) -> None:
        """One optimizer step as an event; ``seconds`` defaults to the time since the last one was seen here."""
        now = time.monotonic()
        measured = self.measured
        if seconds is None and measured.steps and step > measured.steps:
            seconds = (now - self._clock) / (step - measured.steps)
        self._clock = now
        measured.steps = max(measured.steps, step)
        if loss is not None:
            measured.losses.append((step, loss))
        if seconds is not None:
            measured.seconds.append(seconds)
        for name in ("tokens_per_second", "memory_bytes"):
            if fields.get(name) is not None:
                getattr(measured, name).append(float(fields[name]))
        kept = {key: value for key, value in fields.items() if value is not None}
        self.events.write("step", step=step, loss=loss, seconds=None if seconds is None else round(seconds, 6), **kept)

    def metric(self, name: str, value: float, unit: str, **more: Any) -> None:
        """One measured figure, kept for judging and written."""
        self.measured.metrics[name] = value
        self.events.metric(name, value, unit, **more)


class _Stop(Exception):
    """Ends a run: result, kind, reason."""


def main(framework: type[Framework], argv: list[str] | None = None) -> int:
    """A runner's whole life; 0 when the run passed, 1 when it did not, 2 when there is no plan to run."""
    parser = argparse.ArgumentParser(description=(framework.__doc__ or "").strip().split("\n")[0])
    parser.add_argument("--job", type=Path, required=True, help="plan.json of the run")
    parser.add_argument("--device", choices=["npu", "cpu"], required=True)
    parser.add_argument("--out", type=Path, required=True, help="folder for events.jsonl and framework.log")
    options = parser.parse_args(argv)
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    folder = options.out.resolve()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        events = Events(folder)
    except OSError as error:
        print(f"{folder}: {error.strerror}", file=sys.stderr)
        return 2
    began = time.monotonic()
    try:
        plan = load(options.job)
    except PlanError as error:
        events.write("end", result="error", kind="plan", reason=str(error), exit=None, seconds=0.0)
        print(error, file=sys.stderr)
        return 2
    caught: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda received, _frame: caught.append(received))
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: should the guard be killed
    job = framework(plan, folder, options.device)
    job.events, job.measured, job.job_file = events, Measured(), options.job.resolve()
    status: int | None = None
    try:
        count, missing = _devices(options.device, job)
        events.start(plan, options.device, count, framework.package)
        if missing:
            raise _Stop("skipped", *missing)
        parent = os.getppid()
        making = job.preparation()
        if making:
            status, tail = _follow(job, making, "prepare.log", (began, caught, parent))
            if status:
                kind, reason = failures.name(tail, status)
                raise _Stop("error", "preparation" if kind == "framework" else kind, reason, status)
        job.prepare()
        status, tail = _follow(job, job.command(), "framework.log", (began, caught, parent))
        result = _verdict(job, status, tail)
    except _Stop as stop:
        result = stop.args[:3]
        status = stop.args[3] if len(stop.args) > 3 else None
    except Exception as error:  # whatever a framework's own code raises while the run is prepared
        kind, _ = failures.name([f"{type(error).__name__}: {error}"], 1)
        result = ("error", kind if kind != "framework" else "preparation", f"{type(error).__name__}: {error}"[:400])
    guard.sweep(GRACE)
    seconds = round(time.monotonic() - began, 3)
    events.write("end", result=result[0], kind=result[1] or None, reason=result[2], exit=status, seconds=seconds)
    if events.broken:
        print(events.broken, file=sys.stderr)
        return 1
    return 0 if result[0] == "pass" else 1


def _devices(device: str, job: Framework) -> tuple[int | None, tuple[str, str] | None]:
    """How many devices there are, and why a run on NPUs cannot start. Asked in a process of its own:
    where CANN is missing, the import itself raises."""
    if device == "cpu":
        return job.devices, None
    environment = {**os.environ, **{k: str(v) for k, v in (job.plan.get("env") or {}).items()}}
    try:
        probe = subprocess.run(
            [sys.executable, "-c", _PROBE], capture_output=True, text=True, timeout=120, check=False, env=environment
        )
    except subprocess.TimeoutExpired:
        return None, ("no-device", "torch_npu did not answer within 120 seconds")
    found = [line.split()[1] for line in probe.stdout.splitlines() if line.startswith("devices ")]
    if probe.returncode or not found:
        kind, reason = failures.name(probe.stderr.splitlines()[-40:], probe.returncode or 1)
        return None, (kind if kind in ("missing-cann", "missing-package") else "no-device", reason)
    count = int(found[-1])
    if count < job.devices:
        return count, ("no-device", f"{count} NPUs are visible, the plan asks for {job.devices}")
    return count, None


def _follow(
    job: Framework, command: list[str], name: str, watch: tuple[float, list[int], int]
) -> tuple[int, list[str]]:
    """Runs a command to its end, its output in file ``name``; returns its real exit status and its last lines."""
    framework = name == "framework.log"
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", **job.environment()}
    environment.update({key: str(value) for key, value in (job.plan.get("env") or {}).items()})
    log_out, log_in = os.pipe()
    status_out, status_in = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-S", str(Path(guard.__file__)), str(status_in), str(GRACE), *command],
        stdin=subprocess.PIPE,
        stdout=log_in,
        stderr=log_in,
        pass_fds=[status_in],
        cwd=job.cwd,
        env=environment,
        start_new_session=True,
    )
    os.close(log_in)
    os.close(status_in)
    tail: deque[str] = deque(maxlen=_TAIL)
    report, rest, stop = b"", b"", None
    waiting = {log_out, status_out}
    with (job.folder / name).open("wb", buffering=0) as log:
        while waiting:
            for ready in select.select(list(waiting), [], [], 0.1)[0]:
                data = os.read(ready, 65536)
                if not data:
                    waiting.discard(ready)
                elif ready == status_out:
                    report += data
                else:
                    try:
                        log.write(data)
                    except OSError as error:
                        stop = stop or ("error", "disk-full", f"{name} cannot be written: {error.strerror}")
                    rest = _lines(rest + data, job if framework else None, tail)
            if framework:
                job.poll()
            stop = stop or _reason_to_stop(job, *watch)
            if stop and process.stdin and not process.stdin.closed:
                process.stdin.close()
            if (
                status_out not in waiting
                and process.poll() is not None
                and not select.select([log_out], [], [], 0.3)[0]
            ):
                break
    if rest:
        _lines(rest + b"\n", job if framework else None, tail)
    if framework:
        job.poll()
    os.close(log_out)
    os.close(status_out)
    process.wait()
    told = json.loads(report.splitlines()[0]) if report.strip() else {}
    status = int(told.get("status", -signal.SIGKILL))
    if told.get("error"):
        tail.append(f"FileNotFoundError: {told['error']}")
    if framework and told.get("peak_rss"):
        job.metric("peak_host_memory", int(told["peak_rss"]), "byte")
    if stop:
        raise _Stop(*stop, status)
    return status, list(tail)


def _lines(data: bytes, job: Framework | None, tail: deque[str]) -> bytes:
    """Hands whole lines to the job; returns what is not a whole line yet. Progress bars end theirs with CR."""
    *whole, rest = data.replace(b"\r", b"\n").split(b"\n")
    for raw in whole:
        text = raw[:_LINE].decode("utf-8", "replace").rstrip()
        if text:
            tail.append(text)
            if job is not None:
                job.line(text)
    return rest[-_LINE:]


def _reason_to_stop(job: Framework, began: float, caught: list[int], parent: int) -> tuple[str, str, str] | None:
    limit = float(job.plan.get("time_limit") or 0)
    if caught:
        return "error", "killed", f"stopped by {signal.Signals(caught[0]).name}"
    if limit and time.monotonic() - began > limit:
        return "error", "timeout", f"not done within {limit:g} seconds, {job.measured.steps} steps seen"
    if job.events.broken:
        return "error", "disk-full", job.events.broken
    if job.events.orphaned or (job.events.piped and os.getppid() != parent):
        return "error", "killed", "the process that followed the run is gone"
    losses = job.measured.losses
    if losses and not math.isfinite(losses[-1][1]) and (job.plan.get("expect") or {}).get("finite_loss", True):
        return "fail", "nan-loss", f"the loss of step {losses[-1][0]} is {losses[-1][1]}"
    return None


def _verdict(job: Framework, status: int, tail: list[str]) -> tuple[str, str, str]:
    if status:
        kind, reason = failures.name(tail, status)
        return ("fail" if kind == "nan-loss" else "error"), kind, reason
    hidden = job.died(tail)
    if hidden:
        return ("fail" if hidden[0] == "nan-loss" else "error"), hidden[0], hidden[1]
    result, kind, reason = judge(job.plan, job.measured)
    if kind == "framework":
        # the processes ended with 0 and yet not all steps are there: a script whose last word was not the trainer's
        named, sentence = failures.name(tail, 1)
        if named != "framework" or failures.is_exception(sentence):
            return result, named, sentence
    return result, kind, reason
