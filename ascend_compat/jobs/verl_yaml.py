"""A verl configuration file (a composed or partial hydra tree) -> a launch."""

from __future__ import annotations

from ascend_compat.jobs.interpolation import resolve
from ascend_compat.jobs.model import Launch, Setting, Unresolved
from ascend_compat.jobs.yaml_tree import Document, Node, leaves

_MEGATRON = Unresolved("told by the strategy of the actor", "由 actor 的 strategy 判断")
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
    """Adds every value below ``root`` under its dotted key; a Megatron strategy tells the shipped config it completes."""
    strategy = _at(root, "actor_rollout_ref.actor.strategy")
    if strategy is not None and strategy.scalar == "megatron" and root.get("model_engine") is None:
        span = document.text.span(strategy)
        launch.settings.append(Setting("--config-name", "ppo_megatron_trainer", span, guess=_MEGATRON))
    for key, node in root.pairs or ():
        if key in _HYDRA:
            continue
        for path, leaf in leaves(node, key):
            if not path.endswith("._target_"):
                launch.settings.append(Setting(path, resolve(leaf, root, path), document.text.span(leaf)))


def _at(root: Node, path: str) -> Node | None:
    node: Node | None = root
    for part in path.split("."):
        node = node.get(part) if node is not None else None
    return node
