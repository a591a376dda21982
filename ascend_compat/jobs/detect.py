"""Which kind of job a text is, by what it holds and never by its name."""

from __future__ import annotations

import re

from ascend_compat.jobs import ascendfactory, llamafactory, mindspeed_rl, verl_yaml
from ascend_compat.jobs.yaml_tree import Document

LOOKED_FOR = (
    "af_output_dir or backend_config (AscendFactory); model_name_or_path, stage or finetuning_type (LLaMA-Factory); "
    "megatron_training, rl_config or actor_config (MindSpeed-RL); actor_rollout_ref (verl); torchrun, pretrain_gpt.py, "
    "posttrain_gpt.py, verl.trainer.main_ppo, llamafactory-cli or ascendfactory-cli (shell)"
)
_STARTS = re.compile(
    r"\b(torchrun|torch\.distributed\.(?:launch|run)|python[0-9.]*\s+-m\s+\w+\.[\w.]+|(?:pre|post)train_\w+\.py|verl\.\w+|llamafactory-cli|lmf"
    r"|ascendfactory-cli|accelerate\s+launch|vllm\s+serve|deepspeed|cli/train_\w+\.py|train_\w+\.py|main_ppo\w*|src/train\.py|main_\w+\.py)\b"
)
_RUNS_PYTHON = re.compile(r"^[^#\n]*\bpython[0-9.]*\s+(?:-\w+\s+)*[^\s|;&]*\.py\b", re.MULTILINE)
_ASSIGNMENT = re.compile(r"^\s*(?:export\s+)?[A-Za-z_]\w*=", re.MULTILINE)
FORMATS = {
    "ascendfactory-yaml": None,
    "llamafactory-yaml": "llamafactory",
    "mindspeed-rl-yaml": "mindspeed-rl",
    "verl-yaml": "verl",
}


def tree_format(document: Document) -> str | None:
    """The format of a YAML or JSON document that is a job or a cluster manifest; None for any other."""
    root = document.root
    keys = root.names()
    if not keys:
        return None
    if {"apiVersion", "kind"} <= keys:
        return "manifest"
    if ascendfactory.is_job(root):
        return "ascendfactory-yaml"
    if mindspeed_rl.is_job(root):
        return "mindspeed-rl-yaml"
    if verl_yaml.is_job(root):
        return "verl-yaml"
    return "llamafactory-yaml" if llamafactory.is_job(root) else None


def is_shell(text: str) -> bool:
    """Whether a text reads like a shell script (or command) that starts a training program."""
    if text.startswith("#!") and not text.startswith(("#!/usr/bin/env python", "#!/usr/bin/python")):
        return True
    return _STARTS.search(text) is not None or _RUNS_PYTHON.search(text) is not None


def starts_like_shell(text: str) -> bool:
    """Whether the first lines already say shell, so that no YAML reading is tried."""
    if text.startswith("#!"):
        return is_shell(text)
    head = text[:4000]
    return bool(_ASSIGNMENT.search(head)) and _STARTS.search(text) is not None
