"""Facts -> a framework's own job file: the way back from what a reader understands.

What is written reads back to the same facts.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ascend_compat.errors import UsageError
from ascend_compat.jobs.model import Launch

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ascend_compat.jobs.spec import Key, Spec

_INNER = {"mindspeed-llm", "llamafactory", "verl", "mindspeed-rl"}
_LAUNCHER = (
    "torchrun:",
    "env:",
    "slurm:",
    "kubernetes:",
    "launch:",
    "accelerate-yaml:",
    "deepspeed-json:",
    "deepspeed:",
)
_LAUNCHED_FACTS = {"nnodes", "devices_per_node", "node_rank"}


@dataclass(frozen=True, slots=True)
class Rendered:
    """A job as files: ``main`` is the one to start or to check; names are relative."""

    main: str
    files: Mapping[str, str]


def render(
    spec: Spec, version: str, facts: Mapping[str, Any], extra: Mapping[str, Any] | None = None, bundle: bool = False
) -> Rendered:
    """Write ``facts`` as a job file of the framework at ``version``.

    ``extra`` are settings in the framework's own keys that carry no fact (data, paths). ``bundle`` wraps the job as an
    AscendFactory file. Raises :class:`UsageError` for a fact no key of that version sets.
    """
    settings = {**settings_of(spec, version, facts), **(extra or {})}
    launch = {name: facts.get(name) for name in _LAUNCHED_FACTS}
    if bundle:
        return _bundle(spec.framework, settings)
    if spec.framework == "mindspeed-llm":
        return _megatron(settings, launch, str(facts.get("entry", "pretrain_gpt.py")))
    if spec.framework == "verl":
        return _verl(settings)
    if spec.framework == "mindspeed-rl":
        return Rendered("job.yaml", {"job.yaml": _nested(settings)})
    if spec.framework == "llamafactory":
        return _llamafactory(settings, facts)
    raise UsageError(f"no job file form is known for {spec.framework}")


def fresh_launch(framework: str) -> Launch:
    """A launch of the framework's usual entry without settings."""
    entry = "verl.trainer.main_ppo" if framework == "verl" else ""
    return Launch("", 1, "", framework, framework, entry)


def settings_of(spec: Spec, version: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """The framework's own keys and values that state ``facts``."""
    settings: dict[str, Any] = {}
    missing = []
    keys = _keys(spec, version, facts.keys())
    for name, value in facts.items():
        if value is None or name in ("entry", "zero_stage") or (name in _LAUNCHED_FACTS and spec.framework != "verl"):
            continue
        key = keys.get(name)
        if key is None:
            missing.append(name)
            continue
        written = _written(key, value)
        if written is not _ABSENT:
            settings[key.name] = written
    if missing:
        raise UsageError(f"{spec.framework} {version} has no key for: {', '.join(sorted(missing))}")
    return settings


_ABSENT = object()


def _keys(spec: Spec, version: str, facts: Collection[str]) -> dict[str, Key]:
    """The key that states each fact at a version; an alias or a key deprecated since where no other one does."""
    base = spec.base(fresh_launch(spec.framework))
    found: dict[str, tuple[bool, bool, Key]] = {}
    for key in spec.keys.values():
        if key.fact is not None and key.fact in facts and spec.holds(key, version, base):
            old = bool(key.raw.get("alias_of") or key.deprecated)
            rank = (old, key.name.startswith(_LAUNCHER), key)
            if key.fact not in found or rank[:2] < found[key.fact][:2]:
                found[key.fact] = rank
    return {fact: key for fact, (_, _, key) in found.items()}


def _written(key: Key, value: Any) -> Any:
    values = key.raw.get("values") or {}
    for text, meant in values.items():
        if meant == value and type(meant) is type(value):
            return text
    if key.type == "flag":
        wanted = not value if key.raw.get("no") else value
        return True if wanted else _ABSENT
    return value


def _megatron(settings: Mapping[str, Any], launch: Mapping[str, Any], entry: str) -> Rendered:
    lines = [
        "#!/bin/bash",
        "export CUDA_DEVICE_MAX_CONNECTIONS=1",
        f"NPUS_PER_NODE={launch['devices_per_node'] or 8}",
        f"NNODES={launch['nnodes'] or 1}",
        "NODE_RANK=${NODE_RANK:-0}",
        "MASTER_ADDR=${MASTER_ADDR:-localhost}",
        "MASTER_PORT=${MASTER_PORT:-6000}",
        "",
        'JOB_ARGS="',
    ]
    lines += [f"    {' '.join([key, *_words(value)])} \\" for key, value in settings.items()]
    lines += [
        '"',
        "",
        "torchrun --nproc_per_node $NPUS_PER_NODE --nnodes $NNODES --node_rank $NODE_RANK \\",
        f"    --master_addr $MASTER_ADDR --master_port $MASTER_PORT {entry} \\",
        "    $JOB_ARGS",
    ]
    return Rendered("job.sh", {"job.sh": "\n".join(lines) + "\n"})


def _words(value: Any) -> list[str]:
    if value is True:
        return []
    if isinstance(value, list):
        numbers = all(isinstance(item, int) for item in value)
        return [",".join(map(str, value))] if numbers else [str(item) for item in value]
    return [_scalar(value)]


def _scalar(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _verl(settings: Mapping[str, Any]) -> Rendered:
    lines = ["#!/bin/bash", "set -x", "", "python3 -m verl.trainer.main_ppo \\"]
    named = settings.get("--config-name")
    if named:
        lines.append(f"    --config-name={named} \\")
    for key, value in settings.items():
        if key != "--config-name":
            lines.append(f"    {shlex.quote(f'{key}={_hydra(value)}')} \\")
    lines.append('    "$@"')
    return Rendered("job.sh", {"job.sh": "\n".join(lines) + "\n"})


def _hydra(value: Any) -> str:
    if isinstance(value, list):
        return f"[{','.join(_hydra(item) for item in value)}]"
    return _scalar(value)


def _llamafactory(settings: Mapping[str, Any], facts: Mapping[str, Any]) -> Rendered:
    files: dict[str, str] = {}
    job = dict(settings)
    stage = facts.get("zero_stage")
    if stage:
        job["deepspeed"] = f"ds_z{stage}_config.json"
        files[job["deepspeed"]] = json.dumps(deepspeed(stage), indent=2) + "\n"
    files["job.yaml"] = _flat(job)
    nodes, devices = facts.get("nnodes") or 1, facts.get("devices_per_node") or 1
    visible = ",".join(str(device) for device in range(devices))
    files["job.sh"] = (
        "#!/bin/bash\n"
        f"export ASCEND_RT_VISIBLE_DEVICES={visible}\n"
        f"FORCE_TORCHRUN=1 NNODES={nodes} NPROC_PER_NODE={devices} NODE_RANK=${{NODE_RANK:-0}} \\\n"
        "    MASTER_ADDR=${MASTER_ADDR:-127.0.0.1} MASTER_PORT=${MASTER_PORT:-29500} llamafactory-cli train job.yaml\n"
    )
    return Rendered("job.sh", files)


def deepspeed(stage: int) -> dict[str, Any]:
    """A DeepSpeed configuration of a ZeRO stage in which the job file decides every size."""
    zero: dict[str, Any] = {"stage": stage, "overlap_comm": False, "contiguous_gradients": True}
    if stage == 3:
        zero |= {"stage3_gather_16bit_weights_on_model_save": True}
    return {
        "train_batch_size": "auto",
        "train_micro_batch_size_per_gpu": "auto",
        "gradient_accumulation_steps": "auto",
        "gradient_clipping": "auto",
        "bf16": {"enabled": "auto"},
        "fp16": {"enabled": "auto"},
        "zero_optimization": zero,
    }


def _flat(settings: Mapping[str, Any]) -> str:
    return "".join(f"{key}: {_yaml(value)}\n" for key, value in settings.items())


def _yaml(value: Any) -> str:
    if isinstance(value, str):
        return (
            value
            if value.replace("-", "").replace("_", "").replace("/", "").isalnum() and not value.isdigit()
            else json.dumps(value)
        )
    return json.dumps(value)


def _nested(settings: Mapping[str, Any]) -> str:
    import yaml

    return yaml.safe_dump(tree(settings), sort_keys=False, allow_unicode=True)


def tree(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted keys as nested mappings."""
    root: dict[str, Any] = {}
    for key, value in settings.items():
        place = root
        *parents, last = key.split(".")
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = value
    return root


def _bundle(framework: str, settings: Mapping[str, Any]) -> Rendered:
    import yaml

    if framework in ("mindspeed-llm", "llamafactory"):
        inner: dict[str, Any] = {"training": {key.removeprefix("--"): value for key, value in settings.items()}}
    elif framework in _INNER:
        inner = tree(settings)
    else:
        raise UsageError(f"AscendFactory has no file form for {framework}")
    job = {"af_output_dir": "./output", "backend_config": inner}
    return Rendered("job.yaml", {"job.yaml": yaml.safe_dump(job, sort_keys=False, allow_unicode=True)})
