"""Stacks, alone and under a job, against what public reports say of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import jsonschema
import pytest

from ascend_compat.check.stack import StackChecker, check_stack
from ascend_compat.stack.read import read_text

A2 = "npu_type: Ascend910B3\n"


@pytest.fixture(scope="module")
def checker(con: duckdb.DuckDBPyConnection) -> StackChecker:
    return StackChecker(con, today="2026-05")


# name: stack, verdict, (topic, severity) that has to be among the findings
CASES: dict[str, tuple[str, str, tuple[str, str] | None]] = {
    "documented verl 0.7 set": (
        A2 + "npu_count: 8\ncann: 8.3.RC1\nnnal: 8.3.RC1\npython: 3.11.9\nverl==0.7.0\ntorch==2.7.1\ntorch-npu==2.7.1\ntorchvision==0.22.1\ntriton-ascend==3.2.0rc4\nvllm==0.11.0\nvllm-ascend==0.11.0rc1\ntransformers==4.57.1\n",
        "supported", None,
    ),
    "vllm moved torch": (
        A2 + "cann: 8.3.RC1\npython: 3.11.9\ntorch==2.8.0\ntorch-npu==2.7.1\nvllm==0.11.0\n",
        "impossible", ("vllm-vllm_ascend-torch", "error"),
    ),
    "torch_npu of another CANN": (
        A2 + "cann: 9.0.0\ntorch==2.7.1\ntorch-npu==2.7.1\n", "impossible", ("version-torch_npu-CANN", "error"),
    ),
    "numpy 2 under torch 2.1": (
        A2 + "cann: 8.0.RC2\ntorch==2.1.0\ntorch-npu==2.1.0.post6\nnumpy==2.0.0\n", "impossible", ("version-numpy", "error"),
    ),
    "no torch_npu for this torch patch": (
        A2 + "cann: 8.5.0\ntorch==2.9.1\ntorch-npu==2.9.0\nvllm==0.14.0\n", "impossible", ("version-torch-torch_npu-pip", "error"),
    ),
    "toolkit not sourced": (
        "PATH=/usr/bin\nLD_LIBRARY_PATH=\nASCEND_RT_VISIBLE_DEVICES=0,1\nnpu_type=Ascend910B3\npip: torch==2.5.1\npip: torch-npu==2.5.1\n",
        "impossible", ("env-not-sourced", "error"),
    ),
    "NNAL not sourced": (
        "PATH=/usr/bin\nASCEND_HOME_PATH=/usr/local/Ascend/ascend-toolkit/latest\npip: torch==2.5.1\npip: torch-npu==2.5.1\npip: vllm-ascend==0.7.3\n",
        "impossible", ("env-not-sourced", "error"),
    ),
    "alpha CANN": (
        A2 + "cann: 8.0.0.alpha002\npython: 3.11.11\nllamafactory==0.9.3.dev0\ntorch==2.4.0\ntorch-npu==2.4.0\ntransformers==4.51.0\n",
        "unverified", ("version-transformers-torch_npu", "warning"),
    ),
    "transformers too new for torch 2.2": (
        A2 + "cann: 8.0.RC1\nllamafactory==0.9.3.dev0\ntorch==2.2.0\ntorch-npu==2.2.0\ntransformers==4.51.0\n",
        "impossible", ("version-transformers-torch_npu", "error"),
    ),
    "image of another chip": (
        "npu_type: Ascend310P3\ncontainer_image: quay.io/ascend/llamafactory:latest-npu-a2\ntorch==2.7.1\n", "impossible", ("wrong-device", "error"),
    ),
    "A2 image on an A3 host": (
        "npu_type: Ascend910\nnpu_memory_gib: 64\nvllm-ascend==0.7.3\ncontainer_image: quay.io/ascend/vllm-ascend:v0.7.3\n", "impossible", ("wrong-device", "error"),
    ),
    "kernels of another chip": (A2 + "kernels: 310p\ncann: 8.3.RC1\n", "impossible", ("wrong-device", "error")),
    "NNAL of another release": (
        A2 + "cann: 8.3.RC1\nnnal: 8.2.RC1\ntorch==2.7.1\ntorch-npu==2.7.1\n", "impossible", ("version-nnal-CANN", "error"),
    ),
    "Python without a wheel": (
        A2 + "cann: 8.1.RC1\npython: 3.12.4\ntorch==2.5.1\ntorch-npu==2.5.1\n", "impossible", ("version-python-wheel", "error"),
    ),
    "plain torch on x86_64": (
        A2 + "os_arch: x86_64\ncann: 8.1.RC1\npython: 3.11\ntorch==2.5.1\ntorch-npu==2.5.1\n", "impossible", ("version-torch-torch_npu-pip", "error"),
    ),
    "+cpu torch on x86_64": (A2 + "os_arch: x86_64\ncann: 8.1.RC1\npython: 3.11\ntorch==2.5.1+cpu\ntorch-npu==2.5.1\n", "supported", None),
    "vllm of another release": (
        A2 + "cann: 8.3.RC1\ntorch==2.7.1\ntorch-npu==2.7.1\nvllm==0.10.2\nvllm-ascend==0.11.0rc1\n", "impossible", ("vllm-vllm_ascend-torch", "error"),
    ),
    "public build where a development build belongs": (
        A2 + "cann: 8.1.RC1\ntorch==2.5.1\ntorch-npu==2.5.1\nvllm==0.9.2\nvllm-ascend==0.9.2rc1\n", "impossible", ("vllm_ascend-torch_npu-build", "error"),
    ),
    "framework bound checked at start": (
        A2 + "cann: 8.0.0\ntorch==2.4.0\ntorch-npu==2.4.0.post2\nllamafactory==0.9.2\ntransformers==4.52.0\n", "impossible", ("version-framework-deps", "error"),
    ),
    "framework bound of the metadata": (
        A2 + "cann: 8.3.RC1\ntorch==2.7.1\ntorch-npu==2.7.1\nverl==0.7.0\nnumpy==2.1.0\n", "unverified", ("version-framework-deps", "warning"),
    ),
    "deepspeed above the bound": (
        A2 + "cann: 8.0.0\ntorch==2.4.0\ntorch-npu==2.4.0.post2\nllamafactory==0.9.3\ndeepspeed==0.17.1\n", "impossible", ("version-framework-deps", "error"),
    ),
    "MindSpeed of another core": (
        A2 + "cann: 8.5.0\ntorch==2.7.1\ntorch-npu==2.7.1.post2\nmindspeed==0.8.0\nmegatron-core==0.12.1\n", "impossible", ("mindspeed-pair", "error"),
    ),
    "Megatron of another core than the framework's": (
        A2 + "cann: 8.5.0\ntorch==2.7.1\ntorch-npu==2.7.1.post2\nmindspeed-llm==2.3.0\nmegatron-core==0.8.0\n", "impossible", ("mindspeed-pair", "error"),
    ),
    "CANN in the framework's compatible range": (A2 + "cann: 8.3.RC1\ntorch==2.7.1\ntorch-npu==2.7.1\nmindspeed-llm==2.3.0\n", "supported", None),
    "CANN outside the framework's range": (
        A2 + "cann: 9.1.0\ntorch==2.7.1\ntorch-npu==2.7.1.post8\nmindspeed-llm==2.3.0\n", "unverified", ("framework-stack", "warning"),
    ),
    "visible devices with blanks": ("ASCEND_RT_VISIBLE_DEVICES=0, 1\n", "impossible", ("env-visible-devices", "error")),
    "visible devices out of order": ("ASCEND_RT_VISIBLE_DEVICES=1,0\n", "impossible", ("env-visible-devices", "error")),
    "driver past its service": (A2 + "driver: 23.0.5\n", "unverified", ("driver-version", "warning")),
    "driver in service": (A2 + "driver: 24.1.0.6\n", "unverified", None),
    "AscendFactory release on another CANN": (
        A2 + "ascendfactory: 6.5.908\ncann: 8.0.0\ntorch==2.5.1\n", "unverified", ("framework-stack", "warning"),
    ),
    "vllm-ascend decides over vllm's own torch": (
        "cann: 8.1.RC1\nnnal: 8.1.RC1\ntorch==2.5.1\ntorch-npu==2.5.1\nvllm==0.9.0\nvllm-ascend==0.9.0rc1\n", "supported", None,
    ),
    "release candidate with the wrong torch": (
        "torch==2.8.0\ntorch-npu==2.8.0rc1\nvllm==0.11.0\nvllm-ascend==0.11.0rc0\n", "impossible", ("vllm-vllm_ascend-torch", "error"),
    ),
    "torch and torch_npu mixed over two lines": ("torch==2.2.0\ntorch-npu==2.1.0\n", "impossible", ("version-torch-torch_npu-pip", "error")),
    "a community set with a CANN patch release": (
        A2 + "cann: 8.0.RC2.2\ntorch==2.2.0\ntorch-npu==2.2.0.post2\n", "unverified", ("version-torch_npu-CANN", "warning"),
    ),
    "the consistent set of a slowness report": (A2 + "cann: 8.0.RC1\ntorch==2.1.0\ntorch-npu==2.1.0.post3\nllamafactory==0.7.1\n", "supported", None),
    "old torch_npu on a 950": ("npu_type: Ascend950PR\ntorch==2.6.0\ntorch-npu==2.6.0\n", "impossible", ("wrong-device", "error")),
    "vllm without its plugin": (
        "# packages in environment at /x:\ntorch-npu 2.7.1\ntorch 2.7.1\nvllm 0.11.0\n", "unverified", ("wrong-package-on-npu", "warning"),
    ),
    "operator compiler without its packages": (
        "cann: 8.3.RC1\nPackage Version\n------- -------\ntorch 2.7.1\ntorch-npu 2.7.1\n", "unverified", ("env-missing-python-deps", "warning"),
    ),
    "branches as people write them": ("mindspeed: 2.3.0_core_r0.12.1\nmegatron: core_v0.12.1\nmindspeed_llm: 2.3.0\n", "unverified", None),
    "branches of two cores": ("mindspeed: 2.1.0_core_r0.8.0\nmegatron: core_v0.12.1\n", "impossible", ("mindspeed-pair", "error")),
    "torch without torch_npu": (
        "npu_type: Ascend910B3\nPackage Version\n------- -------\ntorch 2.5.1\n", "impossible", ("npu-not-detected", "error"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_stack_gets_its_verdict(name: str, checker: StackChecker) -> None:
    text, verdict, expected = CASES[name]
    report = checker.report(read_text(text, "s.txt"))
    found = [(finding.topic, finding.severity) for finding in report.findings if finding.severity != "note"]
    assert report.verdict == verdict, [finding.message.en for finding in report.findings]
    if expected is None:
        assert found == []
    else:
        assert expected in found


def test_every_finding_has_a_way_out_a_source_and_both_languages(checker: StackChecker) -> None:
    seen = 0
    for text, _, _ in CASES.values():
        for finding in checker.report(read_text(text, "s.txt")).findings:
            assert finding.message.en != finding.message.zh
            for sentence in (finding.message, *(way.text for way in finding.ways_out)):
                assert "?" not in sentence.en and "？" not in sentence.zh, sentence
                assert "{" not in sentence.en + sentence.zh
            if finding.severity != "note":
                assert finding.ways_out and finding.sources and finding.topic, finding
                seen += 1
    assert seen == 41


def test_the_smallest_change_is_named_and_was_tried(checker: StackChecker) -> None:
    text = A2 + "cann: 9.0.0\nnnal: 9.0.0\npython: 3.11.9\ntorch==2.7.1\ntorch-npu==2.7.1\n"
    finding = next(item for item in checker.report(read_text(text, "s")).findings if item.code == "ST-CANN")
    assert finding.ways_out[0].text.en == "pip install torch-npu==2.7.1.post4"
    assert finding.ways_out[0].edits == {"torch_npu_version": "2.7.1.post4"}
    assert finding.ways_out[1].edits == {"cann_version": "8.3.RC1"}
    assert (
        checker.report(read_text(text.replace("torch-npu==2.7.1", "torch-npu==2.7.1.post4"), "s")).verdict
        == "supported"
    )
    moved = next(
        item
        for item in checker.report(read_text(CASES["vllm moved torch"][0], "s")).findings
        if item.code == "ST-TORCH"
    )
    assert moved.ways_out[0].edits == {"torch_version": "2.7.1"}


def test_a_bound_points_at_the_package_and_cites_the_tag(checker: StackChecker) -> None:
    text = "cann: 8.0.0\ntorch==2.4.0\ntorch-npu==2.4.0.post2\nllamafactory==0.9.2\ntransformers==4.52.0\n"
    finding = next(item for item in checker.report(read_text(text, "s")).findings if item.code == "ST-BOUND")
    assert finding.span is not None and finding.span.line == 5
    assert [source.address for source in finding.sources] == [
        "hiyouga/LLaMA-Factory:src/llamafactory/extras/misc.py:97@e2299e261be8"
    ]
    text = "cann: 8.5.0\ntorch==2.7.1\ntorch-npu==2.7.1.post2\nverl==0.7.0\n"
    finding = next(item for item in checker.report(read_text(text, "s")).findings if item.code == "ST-SET-CANN")
    assert "verl tag v0.7.0" in finding.sources[0].address


JOBS: list[tuple[str, dict[str, Any], str | None]] = [
    ("npu_type: Ascend910A\n", {"framework": "llamafactory", "bf16": True}, "wrong-device-bf16"),
    ("npu_type: Ascend910A\n", {"framework": "mindspeed-rl"}, "wrong-device-bf16"),
    ("npu_type: Ascend910A\n", {"framework": "llamafactory", "bf16": False}, None),
    (A2, {"framework": "llamafactory", "bf16": True}, None),
    ("npu_type: Ascend310P3\n", {"framework": "verl", "bf16": False}, "wrong-device"),
    (A2 + "npu_count: 2\n", {"framework": "mindspeed-llm", "devices_per_node": 8, "nnodes": 1}, "world-size"),
    (A2 + "npu_count: 8\nnodes: 1\n", {"framework": "mindspeed-llm", "devices_per_node": 8, "nnodes": 2}, "world-size"),
    (A2 + "npu_count: 8\nnodes: 2\n", {"framework": "mindspeed-llm", "devices_per_node": 8, "nnodes": 2}, None),
    ("ASCEND_RT_VISIBLE_DEVICES=0,1\n", {"framework": "llamafactory", "devices_per_node": 4}, "world-size"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "job", "topic"), JOBS)
def test_a_job_asks_more_of_a_stack(
    text: str, job: dict[str, Any], topic: str | None, con: duckdb.DuckDBPyConnection
) -> None:
    findings = check_stack(con, read_text(text, "s"), job, today="2026-05")
    errors = [finding.topic for finding in findings if finding.severity == "error"]
    assert (topic in errors) if topic else errors == []


def test_an_odd_number_of_die_is_a_warning(con: duckdb.DuckDBPyConnection) -> None:
    findings = check_stack(
        con, read_text("npu_type: Snt9b23\n", "s"), {"framework": "verl", "devices_per_node": 3}, today="2026-05"
    )
    assert [(finding.code, finding.severity) for finding in findings if finding.severity != "note"] == [
        ("ST-DIE", "warning")
    ]


def test_check_and_stack_check_agree_with_the_report_schema(command: Any, tmp_path: Path) -> None:
    schema = json.loads((Path(__file__).parents[2] / "schema" / "report.schema.json").read_text())
    stack = tmp_path / "s.txt"
    stack.write_text("npu_type: Ascend910A\nnpu_count: 2\ncann: 8.0.RC1\ntorch==2.1.0\ntorch-npu==2.1.0.post3\n")
    job = tmp_path / "job.yaml"
    job.write_text(
        "model_name_or_path: Qwen/Qwen2.5-7B-Instruct\nstage: sft\ndo_train: true\nfinetuning_type: lora\nlora_target: all\n"
        "dataset: d\ntemplate: qwen\noutput_dir: o\nbf16: true\n"
    )
    alone = command("stack", "check", str(stack), "--format", "json")
    jsonschema.validate(json.loads(alone.stdout), schema)
    assert alone.returncode == 0 and json.loads(alone.stdout)["jobs"][0]["verdict"] == "supported"
    together = command("check", str(job), "--stack", str(stack), "--format", "json")
    jsonschema.validate(json.loads(together.stdout), schema)
    report = json.loads(together.stdout)["jobs"][0]
    assert together.returncode == 1 and report["verdict"] == "impossible"
    topics = [finding["topic"] for finding in report["findings"] if finding["severity"] == "error"]
    assert topics == ["wrong-device-bf16"]  # said once, by the framework's rule


def test_exit_codes_of_stack_check(command: Any, tmp_path: Path) -> None:
    bad = tmp_path / "bad.txt"
    bad.write_text("cann: 9.0.0\ntorch==2.7.1\ntorch-npu==2.7.1\n")
    rejected = command("stack", "check", str(bad), "--lang", "zh")
    assert rejected.returncode == 1 and "torch-npu 2.7.1" in rejected.stdout and "对应 CANN" in rejected.stdout
    missing = command("stack", "check", str(tmp_path / "none.txt"))
    assert missing.returncode == 2 and missing.stderr.count("\n") == 1 and "Traceback" not in missing.stderr
    image = command("stack", "check", "quay.io/ascend/vllm-ascend:v0.11.0rc1-a3")
    assert image.returncode == 0


def test_an_ascendfactory_job_is_held_against_the_stack_of_its_release(command: Any, tmp_path: Path) -> None:
    job = Path(__file__).parents[2] / "docs" / "examples" / "af-llamafactory-lora-qwen2.5-7b.yaml"
    stack = tmp_path / "s.txt"
    stack.write_text("npu_type: Ascend910B3\ncann: 8.0.0\ntorch==2.4.0\ntorch-npu==2.4.0.post2\n")
    seen = command("check", str(job), "--release", "6.5.908", "--stack", str(stack), "--format", "json")
    findings = {finding["code"]: finding for finding in json.loads(seen.stdout)["jobs"][0]["findings"]}
    assert findings["ST-AF-CANN"]["line"] == 2 and findings["ST-AF-TORCH"]["line"] == 3
    assert findings["ST-AF-CANN"]["file"] == str(stack)


def test_a_framework_rule_about_the_stack_points_into_the_stack_file(command: Any, tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(
        "model_name_or_path: Qwen/Qwen3-8B\nstage: sft\ndo_train: true\nfinetuning_type: lora\nlora_target: all\ndataset: d\n"
        "template: qwen3\noutput_dir: o\nbf16: true\n"
    )
    stack = tmp_path / "s.txt"
    stack.write_text(
        "npu_type: Ascend910B1\ncann: 8.0.RC1\nllamafactory==0.9.3\ntorch==2.2.0\ntorch-npu==2.2.0\ntransformers==4.51.0\n"
    )
    seen = command("check", str(job), "--stack", str(stack), "--format", "json")
    errors = [item for item in json.loads(seen.stdout)["jobs"][0]["findings"] if item["severity"] == "error"]
    assert [item["topic"] for item in errors] == ["version-transformers-torch_npu"]
    assert (errors[0]["file"], errors[0]["line"]) == (str(stack), 4)
