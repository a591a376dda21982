"""A verl configuration file (a composed or partial hydra tree) -> a launch."""

from __future__ import annotations

from ascend_compat.jobs.interpolation import resolve
from ascend_compat.jobs.model import Launch, Setting
from ascend_compat.jobs.yaml_tree import Document, Node, leaves

_HYDRA = frozenset(("defaults", "hydra"))


def is_job(root: Node) -> bool:
    """Whether a mapping reads like a verl trainer's configuration."""
    keys = root.names()
    if "actor_rollout_ref" in keys:
        return True
    return {"trainer", "data"} <= keys and bool(keys & {"model", "optim", "engine", "algorithm"})


def read(document: Document) -> Launch:
    """The launch a verl configuration file describes."""
    entry = "verl.trainer.main_ppo" if document.root.get("actor_rollout_ref") else "verl.trainer.sft_trainer"
    launch = Launch(document.text.file, document.root.line + 1, "verl-yaml", "verl", "verl", entry)
    launch.problems += document.problems
    add(launch, document, document.root)
    return launch


def add(launch: Launch, document: Document, root: Node) -> None:
    """Adds every value below ``root`` under its dotted key."""
    for key, node in root.pairs or ():
        if key in _HYDRA:
            continue
        for path, leaf in leaves(node, key):
            launch.settings.append(Setting(path, resolve(leaf, root, path), document.text.span(leaf)))
