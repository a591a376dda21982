"""Inputs for the readers: real files taken apart and put together wrongly, and hostile words."""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

HOSTILE = (
    "$(touch pwned)", "`touch pwned`", "eval \"touch pwned\"", "<(touch pwned)", "> pwned", ">> pwned", "<<EOF\n$(touch pwned)\nEOF\n",
    "source ../../../../etc/passwd", "source /etc/passwd", ". ./job.sh", "/dev/zero", "/dev/stdin", "/proc/self/environ", "../../etc/passwd",
    "/etc/passwd", "${oc.env:HOME}", "${oc.env:PATH,/etc}", "${a.${b}}", "${", "${x:-${x:-${x}}}", "$((1<<64))", "$((9**9**9))",
    "!!python/object/apply:os.system ['touch pwned']", "!!python/object/new:os.system [touch pwned]", "!!python/name:os.system", "!x ",
    "&a [*a]", "*a", "&a ", "<<: *a", "? ", "- ", ": ", "{", "}", "[", "]", "'", '"', "\\", "\\\n", "|", ">-", "#", "---\n", "...\n", "\t",
    "\n", "\r", "\r\n", "\0", "\x1b[2J\x1b]0;x\x07", "\x9b31m", "\u202e", "\u2028", "\ufeff", "\ud7ff", "\U0001f4a9", "模型", "é",
    "'; DROP TABLE claim; --", "\" OR 1=1 --", "{0.__class__}", "{model.__init__.__globals__}", "%s%n", "%0A::error::x", "::error::x\n",
    "<script>alert(1)</script>", "]]>", "&amp;", "<!--", "](javascript:x)", "| a |", "|---|", "```", "\x00\x01", "0", "-1", "1e309", "-0.0",
    "nan", ".inf", "0x", "0b", "0777", "1_000", "9" * 30, "9" * 400, "18446744073709551616", "-9223372036854775809", "true", "null", "~", "",
    "auto", "Infinity", "NaN", "\"a\": ", "=", "==", "--", "-", "+", "++", "~key", "@", "key@pkg=x", "a.b.c=1", "a=[1,2", "a={b:", "A" * 3000,
    "(" * 200, "[" * 200, "{" * 60, "((", "))", "for i in {1..9}; do", "done", "if true; then", "fi", "while true; do", "f() {", "esac",
    "case x in", "&&", "||", ";", ";;", "&", "torchrun", "--nproc_per_node 8", "pretrain_gpt.py", "python3 -m verl.trainer.main_ppo",
    "llamafactory-cli train", "deepspeed: ds.json", "model_name_or_path: x", "stage: sft", "num-layers: 2", "actor_rollout_ref:",
)  # fmt: skip
OTHER = (
    "910B3", "Ascend310P3", "| npu-smi 23.0.6", "+---+", "| 0     910B3               | OK", "Package Version", "torch==2.5.1", "torch_npu @ file:///x",
    "-e git+https://example.invalid/x#egg=verl", "cann: 8.1.RC1", "CANN_VERSION=8.0", "image: a/b:8.1.rc1-910b-x", "npu_count: 99999999999",
    "<table>", "</table>", "<tr><td rowspan=999999999 colspan=-1>", "<td>", "</td>", "<th>", "模型", "Model", "√", "×", "支持", "MindSpeed-LLM", "LoRA",
    '"kind": ', "kind: table\n", "rows: ", "columns: ", '"digest": "sha256:0"', '"jobs": []', "model", "framework", '{"names": [', '{"job": ', "uid",
)  # fmt: skip

# an edit of a text: what, where (per ten thousand of its length), with which word
KINDS = ("insert", "delete", "double", "swap", "cut")
Edit = tuple[str, int, str]


def edited(text: str, edits: list[Edit]) -> str:
    """A text after all edits, in order."""
    for kind, place, word in edits:
        at = len(text) * place // 10_000
        end = text.find("\n", at) + 1 or len(text)
        line = text[at:end]
        if kind == "insert":
            text = text[:at] + word + text[at:]
        elif kind == "delete":
            text = text[:at] + text[end:]
        elif kind == "double":
            text = text[:end] + line + text[end:]
        elif kind == "swap":
            text = text[:at] + word + text[at + len(word) :]
        else:
            text = text[:at]
    return text


def _read(*patterns: str) -> list[str]:
    files = sorted({path for pattern in patterns for path in ROOT.glob(pattern) if path.is_file()})
    return [path.read_text(encoding="utf-8") for path in files if path.stat().st_size < 20_000]


def seeds(target: str) -> list[str]:
    """Real inputs of a target."""
    found = _SEEDS[target]()
    assert found, f"no seeds of {target}"
    return found


_DEEPSPEED = """{
  "train_batch_size": "auto",
  "bf16": {"enabled": true},
  "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}, "sub_group_size": 1e9}
}
"""
_ADMISSION = '{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "1", "object": {"kind": "Job", "spec": {"template": {"spec": {"containers": [{"name": "a", "command": ["bash", "-c", "torchrun pretrain_gpt.py --num-layers 2"]}]}}}}}}'
_PIP = "Package Version\n------- -------\ntorch 2.5.1\ntorch-npu 2.5.1.post1\nvllm 0.8.5\nvllm-ascend 0.8.5rc1\ntransformers 4.51.3\nnumpy 1.26.4\n"
_ENV = "chip: 910B3\nnpu_count: 8\ncann: 8.1.RC1\ndriver: 24.1.0\nPATH=/usr/bin\nASCEND_RT_VISIBLE_DEVICES=0,1\nimage: quay.io/ascend/verl:verl-8.3.rc1-910b-ubuntu22.04-py3.11-latest\n"
_TABLE = "模型系列\t模型\tMindSpeed-LLM\tLLaMA-Factory\nQwen2\tQwen2-1.5B\t√\t×\n\tQwen2-7B\t√\t√\n"
_MARKDOWN = "| Model | LLaMA-Factory / LoRA |\n|---|---|\n| Qwen2-7B | √ |\n"
_HTML = "<p>Title</p><table><tr><th rowspan=2>模型</th><th colspan=2>MindSpeed-LLM</th></tr><tr><th>LoRA</th><th>SFT</th></tr><tr><td>Qwen2-7B</td><td>√</td><td>×</td></tr></table>"
# fmt: off
_CLAIM = {"features": ["lora"], "claims": {"lora": "supported"}, "set": {}, "devices": 8, "verdict": "supported"}
_TIMES = {"start": "2026-01-05T10:00:00Z", "end": "2026-01-05T10:10:00Z"}
_STACK = {"python": "3.11.4", "torch": "2.5.1+cpu", "torch_npu": "2.5.1", "framework": "0.9.3", "cann": "8.2.RC1", "packages": {}}
_RUN = {
    "recipe": "llamafactory-lora", "recipe_digest": "sha256:" + "0" * 64, "model": "qwen2.5-7b", "model_kind": "real", **_CLAIM, **_TIMES,
    "command": ["llamafactory-cli", "train", "job.yaml"], "result": "pass", "error": None, "log_digest": "sha256:" + "0" * 64,
    "metrics": [{"name": "loss", "unit": "nat/token", "values": [2.0, 1.5]}],
}
_EVIDENCE = {
    "kind": "evidence", "schema_version": 1, "id": "20260105T100000Z-llamafactory-lora-0a1b2c3d", "product": "ascendfactory", "release": "6.5.908",
    "framework": "llamafactory", "framework_version": "0.9.3", "matrix": "0" * 32, "device": {"kind": "npu", "count": 8}, "cpu": False,
    "simulated": False, "probe": False, "stack": _STACK, "command": ["ascend-compat", "run"], **_TIMES, "result": "pass", "jobs": [_RUN],
    "digest": "sha256:" + "0" * 64,
}

# fmt: on

_SEEDS = {
    "shell": lambda: _read("tests/corpus/ml-*/*.sh", "docs/examples/*.sh", "tests/corpus/lf-command/*"),
    "verl": lambda: _read("tests/corpus/vr-*/*.sh", "tests/corpus/vr-*/*.yaml"),
    "yaml": lambda: _read("tests/corpus/lf-*/*.yaml", "tests/corpus/rl-*/*.yaml", "tests/corpus/af-*/*.yaml", "docs/examples/*.yaml", "tests/corpus/k8s*/*.yaml"),
    "deepspeed": lambda: [_DEEPSPEED, *_read("tests/corpus/**/*.json")],
    "stack": lambda: [_PIP, _ENV, _PIP + _ENV],
    "npu-smi": lambda: _read("tests/samples/npu-smi/*.txt"),
    "table": lambda: [_TABLE, _MARKDOWN, _HTML],
    "matrix": lambda: _read("matrix/products/*/6.5.901*.yaml", "matrix/products/*/product.yaml", "matrix/rules/verl/*.yaml", "matrix/stacks/*.yaml", "matrix/frameworks/*.yaml", "matrix/models/*.yaml", "matrix/codes/*.yaml"),
    "evidence": lambda: [json.dumps(_EVIDENCE, indent=1)],
    "questions": lambda: ['{"model": "qwen2-1.5b", "framework": "llamafactory", "features": ["lora"]}\n{"model": "qwen3-14b", "framework": "verl", "feature": "grpo", "release": "6.5.906"}\n'],
    "service": lambda: ['{"job": "stage: sft\\nmodel_name_or_path: Qwen/Qwen2-1.5B\\nfinetuning_type: lora\\n", "file": "a.yaml"}', '{"names": [{"model": "qwen2-1.5b", "framework": "llamafactory", "features": ["lora"]}]}', _ADMISSION],
    "lock": lambda: ['{"lock_version": 1, "jobs": [{"file": "job.yaml", "digest": "sha256:0", "verdict": "supported", "codes": ["AC1001"]}]}'],
    "settings": lambda: ['product = "ascendfactory"\nrelease = "6.5.906"\n'],
}  # fmt: skip
TARGETS = tuple(_SEEDS)
