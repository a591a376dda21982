"""LLaMA-Factory YAML and JSON job files (both engines) -> a launch."""

from __future__ import annotations

import re
from pathlib import Path

from ascend_compat.jobs import side_files
from ascend_compat.jobs.interpolation import resolve
from ascend_compat.jobs.model import Launch, Setting
from ascend_compat.jobs.yaml_tree import Document, Node, leaves

_V1 = frozenset(("dist_config", "peft_config", "kernel_config", "train_dataset", "quant_config"))
_SIGNS = frozenset(
    (
        "stage",
        "finetuning_type",
        "template",
        "do_train",
        "do_predict",
        "dataset",
        "infer_backend",
        "cutoff_len",
        "export_dir",
    )
)
_STAGES = frozenset(("pt", "sft", "rm", "ppo", "dpo", "kto"))
_LAUNCHED_BY = re.compile(r"--config_file[ =]+(\S+\.ya?ml)")


def is_job(root: Node) -> bool:
    """Whether a mapping reads like a LLaMA-Factory job."""
    keys = root.names()
    if "model_name_or_path" in keys and keys & _SIGNS:
        return True
    stage = root.get("stage")
    if stage is not None and stage.scalar in _STAGES and keys & _SIGNS - {"stage"}:
        return True
    return is_v1(root)


def is_v1(root: Node) -> bool:
    """Whether a mapping is a job of the v1 engine, which names its keys differently."""
    keys = root.names()
    return "model" in keys and "model_name_or_path" not in keys and len(keys & _V1) > 0


def read(document: Document, beside: Path | None) -> Launch:
    """The launch a LLaMA-Factory file describes, with the settings of the DeepSpeed or accelerate file it names."""
    text = document.text
    launch = Launch(
        text.file, document.root.line + 1, "llamafactory-yaml", "llamafactory", "llamafactory", "llamafactory-cli train"
    )
    launch.problems += document.problems
    add(launch, document, document.root, beside)
    _from_comments(launch, document, beside)
    return launch


def add(launch: Launch, document: Document, root: Node, beside: Path | None) -> None:
    """Adds the arguments below ``root``: side files first, so that the job's own word is the later one."""
    if is_v1(root):
        for path, node in leaves(root):
            setting = Setting(f"v1:{path}", resolve(node, document.root, path), document.text.span(node))
            launch.settings.append(setting)
            if path == "dist_config.config_file" and _is_deepspeed(root):
                name_side_file(launch, setting, beside)
        return
    own: list[Setting] = []
    for key, node in root.pairs or ():
        setting = Setting(key, resolve(node, document.root, key), document.text.span(node))
        own.append(setting)
        if key != "deepspeed":
            continue
        if node.pairs is not None:
            launch.settings += side_files.prefixed(document, node, "deepspeed-json")
        else:
            name_side_file(launch, setting, beside)
    launch.settings += own


def _is_deepspeed(root: Node) -> bool:
    distribution = root.get("dist_config")
    name = distribution.get("name") if distribution else None
    return name is not None and name.scalar == "deepspeed"


def name_side_file(launch: Launch, setting: Setting, beside: Path | None) -> None:
    """Reads the DeepSpeed JSON that a ``deepspeed`` setting names."""
    if isinstance(setting.value, str) and setting.value:
        settings, problems = side_files.deepspeed(setting.value, setting.span, beside)
        launch.settings += settings
        launch.problems += problems


def _from_comments(launch: Launch, document: Document, beside: Path | None) -> None:
    """The accelerate file that a comment of the job tells its user to start it with."""
    if "--config_file" not in document.text.text:
        return
    for number, line in enumerate(document.text.text.splitlines()):
        match = _LAUNCHED_BY.search(line) if line.lstrip().startswith("#") else None
        if match is None:
            continue
        span = document.text.at(number, match.start(1), len(match.group(1)))
        settings, _ = side_files.accelerate(match.group(1), span, beside)
        launch.settings[:0] = settings
        return
