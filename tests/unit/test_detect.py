"""Files of every kind: which job they hold, or one sentence why none."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from ascend_compat.jobs import detect
from ascend_compat.jobs.ascendfactory import backend_of
from ascend_compat.jobs.read import read_paths
from ascend_compat.jobs.yaml_tree import parse

LLAMAFACTORY = "model_name_or_path: Qwen/Qwen2-7B\nstage: sft\nfinetuning_type: lora\n"
JOBS = [
    (LLAMAFACTORY, "llamafactory-yaml"),
    ('{"model_name_or_path": "x", "template": "qwen"}', "llamafactory-yaml"),
    ("model: x\ndist_config: {name: fsdp2}\n", "llamafactory-yaml"),
    ("megatron_training: {stage: ray_grpo}\nrl_config: {}\n", "mindspeed-rl-yaml"),
    ("megatron-training: {}\nrl-config: {}\ngenerate-config: {}\n", "mindspeed-rl-yaml"),
    ("actor_rollout_ref: {model: {path: x}}\n", "verl-yaml"),
    ("data: {}\nmodel: {}\ntrainer: {}\n", "verl-yaml"),
    ("af_output_dir: x\n", "ascendfactory-yaml"),
    ("backend_config: {training: {model_name_or_path: x}}\n", "ascendfactory-yaml"),
    ("apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\n", "manifest"),
    ("compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\n", None),
    ("a: 1\n", None),
    ("- stage: sft\n", None),
]


@pytest.mark.parametrize(("text", "form"), JOBS)
def test_format_by_content(text: str, form: str | None) -> None:
    assert detect.tree_format(parse(text, "x")[0]) == form


@pytest.mark.parametrize(
    ("config", "framework"),
    [
        ("training: {model_name_or_path: x}", "llamafactory"),
        ("training: {cutoff_len: 4096}", "llamafactory"),
        ("training: {tokenizer-name-or-path: x}", "mindspeed-llm"),
        ("training: {tokenizer_name_or_path: x}", "mindspeed-llm"),
        ("preprocess_data: {handler-name: x}", "mindspeed-llm"),
        ("actor_rollout_ref: {model: {path: x}}", "verl"),
        ("megatron_training: {}\n  actor_config: {}", "mindspeed-rl"),
        ("data: {dataset_param: {}}\n  convert_ckpt_hf2mg: {}", "mindspeed-mm"),
        ("foo: 1", None),
    ],
)
def test_backend_inside(config: str, framework: str | None) -> None:
    (document,) = parse(f"af_output_dir: x\nbackend_config:\n  {config}\n", "x")
    assert backend_of(document.root) == framework


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "AC2004"),
        (b" \n\t\n", "AC2004"),
        (b"\x00\x01\x02" * 50, "AC2005"),
        (b"a: 1\n" * 1_700_000, "AC2006"),
        (b"\xff\xff\xfe: 1", "AC2007"),
        (b"stage: [sft\nx: }", "AC2008"),
        (b"hello world", "AC2012"),
        (b"[1, 2]", "AC2012"),
        (b"af_output_dir: x\nbackend_config: {foo: 1}\n", "AC2032"),
    ],
)
def test_unreadable_is_one_problem_and_others_are_still_read(data: bytes, code: str, tmp_path: Path) -> None:
    (tmp_path / "bad").write_bytes(data)
    (tmp_path / "good.txt").write_text(LLAMAFACTORY)
    bad, good = read_paths([str(tmp_path / "bad"), str(tmp_path / "good.txt")])
    assert bad.error is not None and bad.error.code == code
    assert [launch.framework for launch in good.launches] == ["llamafactory"]


def test_missing_directory_fifo_and_loop(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to("loop")
    names = [str(tmp_path / "none"), str(tmp_path), str(tmp_path / "fifo"), str(tmp_path / "loop"), "/dev/null"]
    codes = [read.error.code if read.error else None for read in read_paths(names)]
    assert codes == ["AC2001", "AC2002", "AC2016", "AC2003", "AC2016"]


def test_directory_by_content(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "job").write_text(LLAMAFACTORY)
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "job.yaml").write_text(LLAMAFACTORY)
    (tmp_path / "notes.md").write_text("```\nllamafactory-cli train x.yaml\n```\n")
    (tmp_path / "other.yaml").write_text("a: 1\n")
    (tmp_path / "back").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "fifo")
    reads = list(read_paths([str(tmp_path)], recursive=True))
    assert [Path(read.file).relative_to(tmp_path).as_posix() for read in reads] == ["deep/er/job"]


def test_directory_without_a_job(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a: 1\n")
    (read,) = read_paths([str(tmp_path)], recursive=True)
    assert read.error is not None and read.error.code == "AC2014"


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO(LLAMAFACTORY.encode())

    monkeypatch.setattr("sys.stdin", Stdin)
    (read,) = read_paths(["-"])
    assert (read.file, len(read.launches)) == ("-", 1)


def test_gbk_crlf_and_bom(tmp_path: Path) -> None:
    (tmp_path / "gbk.yaml").write_bytes("# 中文\r\nmodel_name_or_path: 模型/Qwen2-7B\r\nstage: sft\r\n".encode("gbk"))
    (tmp_path / "bom.yaml").write_bytes(b"\xef\xbb\xbf" + LLAMAFACTORY.encode())
    gbk, bom = read_paths([str(tmp_path / "gbk.yaml"), str(tmp_path / "bom.yaml")])
    setting = gbk.launches[0].settings[0]
    assert (setting.value, setting.span.line) == ("模型/Qwen2-7B", 2)
    assert bom.launches[0].settings[0].key == "model_name_or_path"


def test_framework_named_by_the_user(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("trainer: {nnodes: 2}\n")
    (plain,) = read_paths([str(tmp_path / "job.yaml")])
    (named,) = read_paths([str(tmp_path / "job.yaml")], framework="verl")
    assert plain.error is not None and plain.error.code == "AC2012"
    assert [setting.key for setting in named.launches[0].settings] == ["trainer.nnodes"]
