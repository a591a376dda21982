"""MindSpeed-RL YAML job files -> a launch: sections in the order in which they win, and the model file they include."""

from __future__ import annotations

from pathlib import Path

from ascend_compat.jobs import side_files
from ascend_compat.jobs.interpolation import resolve
from ascend_compat.jobs.model import Launch, Problem, Setting
from ascend_compat.jobs.yaml_tree import Document, Node, TreeError, leaves

SECTIONS = (
    "model",
    "megatron_training",
    "actor_config",
    "ref_config",
    "reward_config",
    "critic_config",
    "vit_config",
    "rl_config",
    "generate_config",
    "profiler_config",
    "msprobe_config",
)
_SIGNS = frozenset(("actor_config", "rl_config", "generate_config", "critic_config"))


def is_job(root: Node) -> bool:
    """Whether a mapping reads like a MindSpeed-RL job."""
    keys = {key.replace("-", "_") for key in root.names()}
    training = root.get("megatron_training")
    if training is None:
        return {"rl_config", "generate_config"} <= keys
    return bool(keys & _SIGNS) or "stage" in training.names()


def read(document: Document, beside: Path | None) -> Launch:
    """The launch a MindSpeed-RL file describes."""
    launch = Launch(
        document.text.file,
        document.root.line + 1,
        "mindspeed-rl-yaml",
        "mindspeed-rl",
        "mindspeed-rl",
        _entry(document.root),
    )
    launch.problems += document.problems
    add(launch, document, document.root, beside)
    return launch


def _entry(root: Node) -> str:
    training = root.get("megatron_training")
    stage = training.get("stage") if training else None
    word = str(stage.scalar).removeprefix("ray_") if stage else "grpo"
    return f"cli/train_{word}.py"


def add(launch: Launch, document: Document, root: Node, beside: Path | None) -> None:
    """Adds the settings below ``root``, the included model first, then section by section, later ones winning."""
    _include(launch, document, root, beside)
    named = [(key.replace("-", "_"), node) for key, node in root.pairs or () if key != "defaults"]
    rank = {section: number for number, section in enumerate(SECTIONS)}
    for section, node in sorted(named, key=lambda pair: rank.get(pair[0], len(rank))):
        for path, leaf in leaves(node, section):
            launch.settings.append(Setting(path.replace("-", "_"), resolve(leaf, root, path), document.text.span(leaf)))


def _include(launch: Launch, document: Document, root: Node, beside: Path | None) -> None:
    defaults = root.get("defaults")
    for entry in (defaults.items or ()) if defaults else ():
        group = entry.get("model")
        for node in (group.items or [group]) if group else ():
            if not isinstance(node.scalar, str):
                continue
            span = document.text.span(node)
            launch.settings.append(Setting("defaults.model", node.scalar, span))
            path = side_files.find(f"model/{node.scalar}.yaml", beside, ("configs/model",))
            if path is None:
                launch.problems.append(
                    Problem("AC2028", span, {"file": f"model/{node.scalar}.yaml", "model": node.scalar})
                )
                continue
            try:
                included = side_files.document(path)
            except TreeError as error:
                launch.problems.append(error.problem)
                continue
            for dotted, leaf in leaves(included.root, "model"):
                value = resolve(leaf, included.root, dotted.removeprefix("model."))
                launch.settings.append(Setting(dotted.replace("-", "_"), value, included.text.span(leaf), (span,)))
