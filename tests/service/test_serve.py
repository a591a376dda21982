"""The service as clients meet it, on loopback: answers, limits, a crowd half of which talks nonsense, reload, shutdown."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from support import ROOT

REQUESTS = int(os.environ.get("SERVE_REQUESTS", "1000"))
CLIENTS = 8
BAD_JOB = (ROOT / "docs" / "examples" / "mindspeed-llm-qwen2.5-7b-tp8.sh").read_text(encoding="utf-8")
NAMES = {"model": "qwen2-1.5b", "framework": "llamafactory", "features": ["lora"]}


class Running:
    """A service in its own process."""

    def __init__(self, cache: Path, *options: str, **env: str) -> None:
        surroundings = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "ASCEND_COMPAT_CACHE": str(cache),
            "PYTHONWARNINGS": "error",
            **env,
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ascend_compat", "serve", "--port", "0", *options],
            env=surroundings, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        match = re.fullmatch(r"http://127\.0\.0\.1:(\d+)\n", line)
        assert match, line
        self.port = int(match.group(1))
        deadline = time.monotonic() + 60
        while True:
            try:
                assert self.get("/healthz")[0] == 200
                return
            except OSError:
                assert time.monotonic() < deadline
                assert self.process.poll() is None, self.process.stderr.read()
                time.sleep(0.05)

    def send(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            text = response.read()
            return response.status, json.loads(text) if text.startswith((b"{", b"[")) else text
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> tuple[int, Any]:
        return self.send("GET", path, headers=headers)

    def post(self, path: str, body: Any) -> tuple[int, Any]:
        return self.send("POST", path, json.dumps(body).encode())

    def memory(self) -> int:
        """Resident kilobytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status).group(1))  # type: ignore[union-attr]

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        code = self.process.wait(timeout=60)
        assert self.process.stderr is not None
        self.process.stderr.close()
        return code


@pytest.fixture(scope="module")
def service(cache: Path) -> Iterator[Running]:
    running = Running(cache)
    yield running
    assert running.stop() == 0


def test_a_job_and_names_are_answered_as_on_the_command_line(service: Running) -> None:
    schema = json.loads((ROOT / "schema" / "report.schema.json").read_text(encoding="utf-8"))
    code, report = service.post("/v1/check", {"job": BAD_JOB, "file": "job.sh"})
    assert code == 200
    jsonschema.validate(report, schema)
    (job,) = report["jobs"]
    assert job["verdict"] == "impossible"
    assert {"code": "ML-PAR12", "file": "job.sh", "line": 5}.items() <= job["findings"][0].items()
    code, report = service.post("/v1/check?lang=zh", {"names": [NAMES, {**NAMES, "model": "Qwen2.5-7B"}]})
    jsonschema.validate(report, schema)
    assert [job["verdict"] for job in report["jobs"]] == ["unsupported", "supported"]
    assert "不支持" in report["jobs"][0]["findings"][0]["message"]
    assert service.post("/v1/check", {"job": "no job"})[1]["jobs"][0]["verdict"] == "unreadable"


@pytest.mark.parametrize("name", ["models", "features", "releases", "cells"])
def test_lists(service: Running, name: str) -> None:
    code, body = service.get(f"/v1/{name}?limit=5")
    assert code == 200
    assert len(body["rows"]) == 5 < body["total"]
    assert service.get(f"/v1/{name}?limit=5&offset=1")[1]["rows"][:4] == body["rows"][1:]
    for wrong in ("limit=0", "limit=x", "offset=-1", "colour=red", "limit=99999999999"):
        assert service.get(f"/v1/{name}?{wrong}")[0] == 400


def test_lists_are_narrowed(service: Running) -> None:
    _, body = service.get("/v1/cells?product=ascendfactory&release=6.5.906&framework=verl&limit=1000")
    assert body["total"] == len(body["rows"]) > 0
    assert {row["framework"] for row in body["rows"]} == {"verl"}
    assert service.get("/v1/cells?model=%27%20OR%201=1--")[1]["total"] == 0


BROKEN: list[tuple[str, str, bytes, int]] = [
    ("POST", "/v1/check", b"", 400),
    ("POST", "/v1/check", b"{", 400),
    ("POST", "/v1/check", b"\xff\xfe\x00", 400),
    ("POST", "/v1/check", b"[]", 400),
    ("POST", "/v1/check", b"[" * 200_000, 400),
    ("POST", "/v1/check", b'{"job": 5}', 400),
    ("POST", "/v1/check", b'{"job": "\\ud800"}', 400),
    ("POST", "/v1/check", b'{"job": "a", "x": 1}', 400),
    ("POST", "/v1/check", b'{"job": "a", "framework": "nobody"}', 400),
    ("POST", "/v1/check", b'{"job": "llamafactory-cli train x.yaml", "framework_version": "9.9"}', 400),
    ("POST", "/v1/check", b'{"names": []}', 400),
    ("POST", "/v1/check", b'{"names": [{"model": "\\u0000", "framework": "verl"}]}', 400),
    ("POST", "/v1/check", b'{"names": [{"model": "nobody", "framework": "verl"}]}', 400),
    ("POST", "/v1/check", b'{"names": [{"model": {}, "framework": "verl"}]}', 400),
    ("POST", "/v1/check?lang=fr", b'{"job": "a"}', 400),
    ("POST", "/v1/check", b'{"job": "' + b"x" * 1_000_000 + b'"}', 413),
    ("POST", "/v1/admission", b"{}", 400),
    ("POST", "/v1/admission", b'{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {}}', 400),
    ("GET", "/v1/check", b"", 405),
    ("GET", "/v1/nothing", b"", 404),
    ("DELETE", "/v1/models", b"", 405),
]


@pytest.mark.parametrize("case", range(len(BROKEN)))
def test_nonsense_is_refused_in_one_sentence(service: Running, case: int) -> None:
    method, path, body, code = BROKEN[case]
    answered, said = service.send(method, path, body)
    assert answered == code
    assert isinstance(said, bytes) or "\n" not in said["error"]


def test_no_file_of_the_server_is_read(service: Running, tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text('{"zero_optimization": {"stage": "SECRET"}}')
    script = tmp_path / "secret.sh"
    script.write_text("torchrun SECRET.py --tensor-model-parallel-size 3\n")
    jobs = [
        f"model_name_or_path: Qwen/Qwen2-1.5B\nstage: sft\nfinetuning_type: lora\ndeepspeed: {secret}\n",
        f"#!/bin/bash\nsource {script}\nbash {script}\nllamafactory-cli train {secret}\n",
        f"llamafactory-cli train {secret}\n",
        "#!/bin/bash\nbash docs/examples/mindspeed-llm-qwen2.5-7b-tp8.sh\n",
    ]
    for job in jobs:
        code, report = service.post("/v1/check", {"job": job})
        assert code == 200
        assert "SECRET" not in json.dumps(report)
        assert "ML-PAR12" not in json.dumps(report)


def review(command: list[str], kind: str = "PyTorchJob") -> dict[str, Any]:
    container = {"name": "main", "command": command, "resources": {"limits": {"huawei.com/Ascend910": 8}}}
    template = {"spec": {"containers": [container]}}
    spec: dict[str, Any] = {"pytorchReplicaSpecs": {"Worker": {"replicas": 1, "template": template}}}
    version = "kubeflow.org/v1"
    if kind == "Job":
        version, spec = (
            "batch.volcano.sh/v1alpha1",
            {"tasks": [{"replicas": 1, "name": "worker", "template": template}]},
        )
    made = {"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, "spec": spec}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u-1", "object": made}}


GOOD = [
    "torchrun", "--nproc_per_node", "8", "pretrain_gpt.py", "--tensor-model-parallel-size", "4", "--num-layers", "28",
    "--hidden-size", "3584", "--num-attention-heads", "28", "--seq-length", "4096", "--micro-batch-size", "1",
    "--global-batch-size", "64", "--max-position-embeddings", "4096",
]  # fmt: skip
WRONG = ["3" if word == "4" else word for word in GOOD]


@pytest.mark.parametrize("kind", ["PyTorchJob", "Job"])
def test_admission(service: Running, kind: str) -> None:
    code, body = service.post("/v1/admission", review(GOOD, kind))
    assert (code, body["response"]["allowed"], body["response"]["uid"]) == (200, True, "u-1")
    assert body["kind"] == "AdmissionReview"
    code, body = service.post("/v1/admission", review(WRONG, kind))
    assert (code, body["response"]["allowed"]) == (200, False)
    assert "ML-PAR12" in body["response"]["status"]["message"]
    code, body = service.post("/v1/admission", review(["bash", "-c", " ".join(WRONG)], kind))
    assert body["response"]["allowed"] is False
    for other in (review(["sleep", "1"], kind), review([], kind)):
        assert service.post("/v1/admission", other)[1]["response"] == {"uid": "u-1", "allowed": True}
    deleted = review(GOOD, kind)
    deleted["request"]["object"] = None
    assert service.post("/v1/admission", deleted)[1]["response"]["allowed"] is True


def test_the_description_is_openapi_and_keeps_its_word(service: Running) -> None:
    code, document = service.get("/openapi.json")
    assert code == 200
    assert document["openapi"].startswith("3.1")
    assert set(document["paths"]) == {
        "/v1/check", "/v1/admission", "/v1/models", "/v1/features", "/v1/releases", "/v1/cells", "/healthz"
    }  # fmt: skip
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
            body = {"/v1/check": {"names": [NAMES]}, "/v1/admission": review(GOOD)}.get(path)
            code, answer = service.send(method.upper(), path, json.dumps(body).encode() if body else None)
            assert code == 200
            jsonschema.Draft202012Validator({**schema, "components": document["components"]}).validate(answer)


def test_a_crowd_half_of_which_talks_nonsense(service: Running) -> None:
    """No 5xx, every answer right, and memory that does not grow with the number of requests."""
    good: list[tuple[str, str, bytes, int]] = [
        ("POST", "/v1/check", json.dumps({"names": [NAMES]}).encode(), 200),
        ("POST", "/v1/check", json.dumps({"job": BAD_JOB}).encode(), 200),
        ("GET", "/v1/cells?model=qwen2.5-7b&limit=20", b"", 200),
        ("GET", "/healthz", b"", 200),
        ("POST", "/v1/admission", json.dumps(review(WRONG)).encode(), 200),
    ]
    nonsense = [case for case in BROKEN if len(case[2]) < 1_000_000]
    wrong: list[Any] = []
    done: list[int] = []

    def client(seed: int, count: int) -> None:
        choice = random.Random(seed)
        for number in range(count):
            method, path, body, code = choice.choice(nonsense if number % 2 else good)
            try:
                answered = service.send(method, path, body)[0]
            except Exception as error:
                wrong.append(repr(error))
                continue
            done.append(answered)
            if answered != code:
                wrong.append((method, path, body[:80], answered))

    def crowd(count: int) -> None:
        threads = [threading.Thread(target=client, args=(seed, count)) for seed in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    crowd(REQUESTS // CLIENTS // 4)
    before = service.memory() if sys.platform == "linux" else 0
    crowd(REQUESTS // CLIENTS)
    assert wrong == []
    assert len(done) >= REQUESTS
    if sys.platform == "linux":
        assert service.memory() - before < 64 * 1024


def test_an_endless_body_is_cut(service: Running) -> None:
    with socket.create_connection(("127.0.0.1", service.port), timeout=30) as client:
        client.sendall(b"POST /v1/check HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        piece = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
        sent = 0
        with contextlib.suppress(OSError):
            while sent < 2000:
                client.sendall(piece)
                sent += 1
    assert 16 < sent < 2000
    assert service.get("/healthz")[0] == 200


@pytest.mark.parametrize("size", [1_000_001, 12_000_000])
def test_whoever_sends_too_much_is_told(service: Running, size: int) -> None:
    for _ in range(5):
        code, said = service.send("POST", "/v1/check", b"x" * size)
        assert (code, said) == (413, {"error": "the body is larger than 1 MB"})


def test_whoever_asks_first_sends_nothing_too_large(service: Running) -> None:
    with socket.create_connection(("127.0.0.1", service.port), timeout=30) as client:
        head = b"POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000\r\nExpect: 100-continue\r\n\r\n"
        client.sendall(head)
        assert client.recv(100).startswith(b"HTTP/1.1 413")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A copy of the data that a test may change."""
    for name in ("matrix", "schema"):
        shutil.copytree(ROOT / name, tmp_path / "data" / name)
    return tmp_path / "data"


def change(data: Path, mark: str) -> None:
    features = data / "matrix" / "frameworks" / "features.yaml"
    features.write_text(features.read_text(encoding="utf-8") + f"# {mark}\n", encoding="utf-8")


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_new_data_comes_in_without_a_dropped_request(cache: Path, data: Path) -> None:
    running = Running(cache, "--reload-every", "3600", ASCEND_COMPAT_DATA=str(data))
    first = running.get("/healthz")[1]["content"]
    codes: list[int] = []
    stop = threading.Event()

    def client() -> None:
        while not stop.is_set():
            codes.append(running.post("/v1/check", {"names": [NAMES]})[0])

    threads = [threading.Thread(target=client) for _ in range(3)]
    for thread in threads:
        thread.start()
    change(data, "one")
    running.process.send_signal(signal.SIGHUP)
    until(lambda: running.get("/healthz")[1]["content"] != first)
    second = running.get("/healthz")[1]["content"]
    broken = data / "matrix" / "frameworks" / "features.yaml"
    text = broken.read_text(encoding="utf-8")
    broken.write_text("kind: [", encoding="utf-8")
    running.process.send_signal(signal.SIGHUP)
    time.sleep(1)
    assert running.get("/healthz")[1]["content"] == second
    broken.write_text(text, encoding="utf-8")
    stop.set()
    for thread in threads:
        thread.join()
    assert set(codes) == {200}
    assert running.stop() == 0


def test_killed_during_reload_it_comes_back_whole(cache: Path, data: Path, tmp_path: Path) -> None:
    own = tmp_path / "cache"
    running = Running(own, ASCEND_COMPAT_DATA=str(data))
    total = running.get("/v1/cells?limit=1")[1]["total"]
    change(data, "two")
    running.process.send_signal(signal.SIGHUP)
    until(lambda: any(file.name.startswith(".") for file in own.iterdir()) or len(list(own.glob("matrix-*"))) > 1)
    running.process.kill()
    running.process.wait(timeout=60)
    assert running.process.stderr is not None
    running.process.stderr.close()
    again = Running(own, ASCEND_COMPAT_DATA=str(data))
    assert again.get("/v1/cells?limit=1")[1]["total"] == total >= 15_000
    assert again.stop() == 0


def test_token(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret\n")
    running = Running(cache, "--token-file", str(tmp_path / "token"))
    assert running.get("/v1/models")[0] == 401
    assert running.get("/v1/models", Authorization="Bearer other")[0] == 401
    assert running.get("/v1/models", Authorization="Bearer s3cret")[0] == 200
    assert running.get("/healthz")[0] == 200
    assert running.stop(signal.SIGINT) == 0


def test_start_that_is_refused(command: Callable[..., Any], service: Running) -> None:
    for options in (
        ["--host", "0.0.0.0"],
        ["--tls-cert", str(ROOT / "LICENSE")],
        ["--token-file", str(ROOT / "gone")],
        ["--port", str(service.port)],
    ):
        done = command("serve", *options)
        assert done.returncode == 2, options
        assert done.stderr.startswith("error: ")
        assert len(done.stderr.splitlines()) == 1
