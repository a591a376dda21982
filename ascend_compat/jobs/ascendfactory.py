"""AscendFactory YAML job files -> a launch in the words of the framework inside."""

from __future__ import annotations

from pathlib import Path

from ascend_compat.jobs import llamafactory, mindspeed_rl, verl_yaml
from ascend_compat.jobs.interpolation import resolve
from ascend_compat.jobs.model import Launch, Problem, Setting, Unresolved
from ascend_compat.jobs.yaml_tree import Document, Node, leaves

BACKENDS = ("mindspeed-llm", "llamafactory", "verl", "mindspeed-rl", "mindspeed-mm")
_STARTED = Unresolved("what the wrapper starts for this backend", "套件针对该后端启动的程序")
OWN_SECTIONS = ("preprocess_data", "convert_ckpt_hf2mg", "convert_ckpt_mg2hf")


def is_job(root: Node) -> bool:
    """Whether a mapping reads like an AscendFactory job."""
    return bool(root.names() & {"af_output_dir", "backend_config"})


def backend_of(root: Node) -> str | None:
    """The framework inside: named under ``backend``, else told by the section and key names; None when they tell nothing."""
    named = root.get("backend")
    if named is not None and isinstance(named.scalar, str):
        word = named.scalar.lower().replace("_", "-").replace("llama-factory", "llamafactory")
        if word in BACKENDS:
            return word
    config = root.get("backend_config")
    return backend_by_sections(_paths(config, 3)) if config is not None else None


def backend_by_sections(paths: set[str]) -> str | None:
    """The framework whose sections these dotted paths below ``backend_config`` are (hyphens written as underscores)."""
    if any(path.startswith("actor_rollout_ref") for path in paths):
        return "verl"
    if "data.dataset_param" in paths:
        return "mindspeed-mm"
    if "megatron_training" in paths or {"rl_config", "generate_config"} & paths:
        return "mindspeed-rl"
    if "training.tokenizer_name_or_path" in paths or "training.tensor_model_parallel_size" in paths:
        return "mindspeed-llm"
    if "training.model_name_or_path" in paths or {"training.finetuning_type", "training.cutoff_len"} & paths:
        return "llamafactory"
    if {"preprocess_data", "training.micro_batch_size", "training.seq_length", "training.num_layers"} & paths:
        return "mindspeed-llm"
    if {"convert_ckpt_hf2mg", "model"} <= paths:
        return "mindspeed-mm"
    if {"data", "trainer"} <= paths:
        return "verl"
    return None


def _paths(node: Node, depth: int, path: str = "") -> set[str]:
    found = set()
    for key, value in node.pairs or ():
        name = f"{path}.{key}".lstrip(".").replace("-", "_")
        found.add(name)
        if depth > 1:
            found |= _paths(value, depth - 1, name)
    return found


def read(document: Document, beside: Path | None) -> Launch:
    """The launch an AscendFactory file describes. Without a framework inside, ``framework`` is empty and a problem says so."""
    root = document.root
    framework = backend_of(root) or ""
    launch = Launch(
        document.text.file, root.line + 1, "ascendfactory-yaml", framework, "ascendfactory", "ascendfactory-cli train"
    )
    launch.problems += document.problems
    if not framework:
        launch.problems.append(Problem("AC2032", document.text.span(root), {"backends": ", ".join(BACKENDS)}))
        return launch
    _entry(launch, document)
    for key, node in root.pairs or ():
        if key == "backend_config":
            _backend(launch, document, node, beside)
        elif key == "env":
            for name, leaf in leaves(node):
                launch.settings.append(Setting(f"env:{name}", resolve(leaf, root, name), document.text.span(leaf)))
        else:
            for path, leaf in leaves(node, key):
                launch.settings.append(
                    Setting(f"ascendfactory:{path}", resolve(leaf, root, path), document.text.span(leaf))
                )
    return launch


def _entry(launch: Launch, document: Document) -> None:
    """The program the wrapper starts, which its own command does not show."""
    entry = {"verl": "verl.trainer.main_ppo", "mindspeed-llm": "pretrain_gpt.py"}.get(launch.framework)
    config = document.root.get("backend_config")
    training = config.get("training") if config else None
    if launch.framework == "mindspeed-llm" and training is not None and training.get("stage") is not None:
        entry = "posttrain_gpt.py"
    if entry is not None:
        launch.settings.append(
            Setting("launch:entry", entry, document.text.span(config or document.root), guess=_STARTED)
        )


def _backend(launch: Launch, document: Document, config: Node, beside: Path | None) -> None:
    if launch.framework == "mindspeed-rl":
        own, inner = _split(config)
        mindspeed_rl.add(launch, document, inner, beside)
        config = own
    elif launch.framework == "verl":
        verl_yaml.add(launch, document, config)
        return
    elif launch.framework == "llamafactory":
        training = config.get("training")
        if training is not None:
            llamafactory.add(launch, document, training, beside)
        config = _split(config, frozenset(("training",)))[0]
    for section, node in config.pairs or ():
        for path, leaf in leaves(node, section):
            value = resolve(leaf, document.root, f"backend_config.{path}")
            launch.settings.append(Setting(inner_key(launch.framework, path), value, document.text.span(leaf)))


def _split(config: Node, inside: frozenset[str] = frozenset()) -> tuple[Node, Node]:
    """Sections that are AscendFactory's own, and the framework's."""
    own, inner = Node(config.line, config.column, 1, pairs=[]), Node(config.line, config.column, 1, pairs=[])
    for key, node in config.pairs or ():
        target = own if key in OWN_SECTIONS else inner
        if key not in inside and target.pairs is not None:
            target.pairs.append((key, node))
    if inside and own.pairs is not None and inner.pairs is not None:
        own.pairs += inner.pairs
    return own, inner


def inner_key(framework: str, path: str) -> str:
    """The framework's own spelling of a dotted path below ``backend_config``."""
    section, _, key = path.partition(".")
    if section in OWN_SECTIONS:
        return f"ascendfactory:{path.replace('-', '_')}"
    if framework == "mindspeed-llm" and section == "training" and key:
        return f"--{key.replace('_', '-')}"
    if framework == "llamafactory" and section == "training" and key:
        return key.replace("-", "_")
    if framework == "mindspeed-rl":
        return path.replace("-", "_")
    return path


def override(framework: str, key: str) -> str:
    """The setting key that a command-line override such as ``--backend_config.training.cutoff_len`` names."""
    path = key.lstrip("-")
    head, _, rest = path.partition(".")
    if head == "env":
        return f"env:{rest}"
    if head == "backend_config":
        return inner_key(framework, rest)
    return f"ascendfactory:{path}"
