"""A recipe on a model -> a job: its facts, its files, and what the checker understands of them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ascend_compat.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascend_compat.check.engine import Engine
    from ascend_compat.check.finding import Report
    from ascend_compat.check.rules import Outcome
    from ascend_compat.jobs.model import Job
    from ascend_compat.jobs.render import Rendered
    from ascend_compat.recipes.load import Recipe

NODE = 8
_SFT = frozenset(("full", "lora", "qlora", "freeze", "oft"))
_NOT_SFT = frozenset(("pretrain", "dpo", "kto", "orpo", "simpo", "ppo", "reward-model"))


@dataclass(slots=True)
class Prepared:
    """A recipe made for one model: ``facts`` are what the job states, ``path`` is how the job names the model."""

    recipe: Recipe
    model: Mapping[str, Any]
    version: str
    devices: int
    facts: dict[str, Any]
    settings: dict[str, Any]
    path: str
    overrides: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Recipe and model in one word, for files and progress."""
        return f"{self.recipe.name}@{self.model['id']}"


@dataclass(frozen=True, slots=True)
class Understood:
    """What the checker makes of a rendered recipe: its report, its facts, and the features it really exercises."""

    job: Job
    outcome: Outcome
    features: tuple[str, ...]


def model_of(engine: Engine, name: str) -> dict[str, Any]:
    """A model's row and document; raises :class:`UsageError` for one nobody knows."""
    found = engine.names.model(name)
    if found is None:
        nearest = ", ".join(engine.names.suggest_models(name)) or "none"
        raise UsageError(f"no model is called {name!r}; nearest: {nearest}")
    cursor = engine.con.execute("SELECT * FROM model WHERE id = ?", [found.id])
    columns = [entry[0] for entry in cursor.description or ()]
    return dict(zip(columns, cursor.fetchall()[0]))


def version_of(engine: Engine, framework: str, product: str, release: str | None) -> str:
    """The framework version a release stands for: stated, else assumed, else the framework's newest."""
    row = engine.con.execute(
        "SELECT version, assumed FROM release_framework WHERE product = ? AND release = ? AND framework = ?",
        [product, release, framework],
    ).fetchone()
    if row and row[0] not in (None, "unknown"):
        return str(row[0])
    if row and row[1]:
        return str(row[1])
    spec = engine.spec(framework)
    return spec.newest if spec else "unknown"


def prepare(
    engine: Engine,
    recipe: Recipe,
    model: Mapping[str, Any],
    version: str,
    layout: Mapping[str, Any] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Prepared:
    """A recipe's facts for one model in one of its layouts, ``overrides`` (fact: value) last."""
    body = recipe.body
    layout = dict(layout or recipe.layouts[0])
    devices = int(layout.pop("devices"))
    facts = {**body["facts"]}
    own = (body.get("families") or {}).get(model["family"]) or {}
    facts.update(own.get("facts") or {})
    settings = {**(body.get("settings") or {}), **(own.get("settings") or {})}
    shape = _shape(model, body["model"])
    path = _path(model, recipe.tiny, str(own.get("weights") or ""))
    facts.update(_placed(recipe.framework, devices))
    if recipe.framework == "mindspeed-llm":
        facts.update(_megatron(recipe, shape, facts, layout, path, devices))
    elif recipe.framework == "mindspeed-rl":
        facts.update({**layout, "tokenizer_path": path, "model": _section(model)})
    elif recipe.framework in ("llamafactory", "verl"):
        facts.update({**layout, "model" if _names_model(engine, recipe.framework) else "model_path": path})
    else:
        facts.update(layout)
    given = dict(overrides or {})
    facts.update(given)
    settings = _of_version(engine, recipe.framework, version, settings)
    return Prepared(recipe, shape, version, devices, facts, settings, path, given)


def _of_version(engine: Engine, framework: str, version: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings whose keys the version has; a recipe may state what only newer ones know."""
    spec = engine.spec(framework)
    if spec is None:
        return dict(settings)
    found = {name: spec.find(name) for name in settings}
    return {name: value for name, value in settings.items() if (key := found[name]) is None or spec.holds(key, version)}


def _names_model(engine: Engine, framework: str) -> bool:
    spec = engine.spec(framework)
    return bool(spec and any(key.fact == "model" and ":" not in name for name, key in spec.keys.items()))


def _placed(framework: str, devices: int) -> dict[str, Any]:
    if framework == "mindspeed-rl":
        return {"actor_devices": devices}
    if framework == "torch":
        return {}
    nodes = -(-devices // NODE)
    return {"nnodes": nodes, "devices_per_node": devices // nodes}


def _path(model: Mapping[str, Any], tiny: bool, ending: str = "") -> str:
    """How a job names the model: its Hugging Face id; a folder of that name beside the job for a tiny one.

    ``ending`` is that of the repository whose form of the weights the framework takes.
    """
    listed = model.get("hf_ids")
    ids = json.loads(listed) if isinstance(listed, str) else list(listed or ())
    named = str(ids[0]) + ending if ids else str(model["id"])
    return f"./{named.rpartition('/')[2]}" if tiny else named


def _section(model: Mapping[str, Any]) -> str:
    return str(model["id"]).replace(".", "").replace("-", "_")


def _shape(model: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The model's facts; a tiny one keeps its class, head and expert structure and gives up width, depth and vocabulary."""
    shape = dict(model)
    if wanted["kind"] == "tiny":
        heads, groups = int(model["num_attention_heads"]), int(model["num_key_value_heads"])
        ratio, few = max(1, min(4, heads // groups)), 1 if groups == 1 else 2
        shape.update(num_layers=wanted.get("layers", 2), hidden_size=wanted.get("hidden_size", 64))
        shape.update(vocab_size=wanted.get("vocab_size", 512), num_key_value_heads=few, num_attention_heads=few * ratio)
        shape.update(head_dim=16, ffn_hidden_size=2 * int(shape["hidden_size"]), max_position_embeddings=4096)
        if model.get("num_experts"):
            shape.update(
                num_experts=min(4, int(model["num_experts"])), moe_intermediate_size=int(shape["hidden_size"]) // 2
            )
            shape.update(num_experts_per_tok=min(2, int(model["num_experts_per_tok"] or 2)))
    return shape


def _megatron(
    recipe: Recipe,
    model: Mapping[str, Any],
    facts: Mapping[str, Any],
    layout: Mapping[str, Any],
    path: str,
    devices: int,
) -> dict[str, Any]:
    from ascend_compat.check.plan import megatron_shape

    made: dict[str, Any] = {**megatron_shape(model), **_experts(recipe, model, facts), **layout}
    if not model.get("num_experts"):
        made.pop("expert_parallel", None)
    sizes = {**facts, **made}
    if sizes.get("tensor_parallel") == 1:
        made["sequence_parallel"] = False
    layers, pipeline = int(model["num_layers"]), int(sizes.get("pipeline_parallel") or 1)
    over = -layers % pipeline
    if over:
        made |= {"num_layers": layers + over, "noop_layers": list(range(layers, layers + over))}
    split = int(sizes.get("tensor_parallel") or 1) * pipeline * int(sizes.get("context_parallel") or 1)
    made["global_batch_size"] = max(1, devices // split) * int(sizes["micro_batch_size"]) * max(2, pipeline)
    made["max_position_embeddings"] = max(int(sizes["seq_length"]), int(model.get("max_position_embeddings") or 0))
    made["tokenizer_path"] = path
    return made


def _experts(recipe: Recipe, model: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    if not model.get("num_experts"):
        return {}
    said = recipe.body.get("experts") or {}
    return {**(said.get("facts") or {}), **((said.get("lora") or {}) if facts.get("lora_r") else {})}


def render_job(engine: Engine, prepared: Prepared, bundle: bool = False) -> Rendered:
    """The job as its framework's own files (``bundle``: as an AscendFactory file).

    Raises :class:`UsageError` for a fact that no key of the version sets, and for ``torch``, which has no job file.
    """
    from ascend_compat.jobs.render import Rendered, render

    framework = prepared.recipe.framework
    if framework == "torch":
        if bundle:
            raise UsageError("a recipe without a framework has no AscendFactory form")
        return Rendered("job.sh", {"job.sh": _torch(prepared)})
    spec = engine.spec(framework)
    assert spec is not None
    settings = dict(prepared.settings)
    if framework == "mindspeed-rl":
        name = prepared.facts["model"]
        settings = {"defaults": [{"model": [name]}], **settings, "actor_config.model": name}
    rendered = render(spec, prepared.version, prepared.facts, settings, bundle)
    if framework == "mindspeed-rl":
        return Rendered(rendered.main, {**rendered.files, f"model/{name}.yaml": _rl_model(name, prepared.model)})
    return rendered


def _torch(prepared: Prepared) -> str:
    words = [
        f"--{name.replace('_', '-')} {value}" for name, value in prepared.facts.items() if value not in (None, False)
    ]
    lines = ["#!/bin/bash", "set -e", f"torchrun --nproc_per_node {prepared.devices} torch_train.py \\"]
    lines += [f"    {word.replace(' True', '')} \\" for word in words]
    return "\n".join([*lines, '    "$@"']) + "\n"


def _rl_model(name: str, model: Mapping[str, Any]) -> str:
    import yaml

    shape: dict[str, Any] = {
        "use_mcore_models": True,
        "num_layers": model["num_layers"],
        "hidden_size": model["hidden_size"],
        "ffn_hidden_size": model["ffn_hidden_size"],
        "num_attention_heads": model["num_attention_heads"],
        "max_position_embeddings": model["max_position_embeddings"],
        "make_vocab_size_divisible_by": 1,
        "padded_vocab_size": model["vocab_size"],
        "untie_embeddings_and_output_weights": not model.get("tie_word_embeddings"),
        "disable_bias_linear": True,
        "position_embedding_type": "rope",
        "normalization": "RMSNorm",
        "swiglu": True,
    }
    if model["num_key_value_heads"] != model["num_attention_heads"]:
        shape |= {"group_query_attention": True, "num_query_groups": model["num_key_value_heads"]}
    return yaml.safe_dump({name: shape}, sort_keys=False)


def write_files(rendered: Rendered, folder: Path) -> Path:
    """Write a job's files below a folder, each whole or not at all; gives the path of the main one."""
    for name, text in rendered.files.items():
        path = folder / name
        part = path.with_name(f".{path.name}.part")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            part.write_text(text, encoding="utf-8")
            part.replace(path)
        except OSError as error:
            raise UsageError(f"cannot write {path}: {(error.strerror or str(error)).lower()}") from None
    return folder / rendered.main


def understand(engine: Engine, recipe: Recipe, main: Path, version: str) -> Understood:
    """Read a rendered job back as any user's file is read; raises :class:`UsageError` if that gives no job."""
    from ascend_compat.check.engine import row_of
    from ascend_compat.check.rules import evaluate
    from ascend_compat.jobs.interpret import interpret
    from ascend_compat.jobs.read import read_file

    read = read_file(str(main))
    if len(read.launches) != 1:
        raise UsageError(f"{main} reads as {len(read.launches)} jobs, not one")
    spec = engine.spec(recipe.framework)
    assert spec is not None
    job = interpret(read.launches[0], spec, version, "option", names=engine.names, con=engine.con)
    rules = engine.rules(recipe.framework, version)
    (outcome,) = evaluate(engine.con, [row_of(job, None)], rules, engine.vocabulary(recipe.framework))
    return Understood(job, outcome, with_sft(outcome.features))


def with_sft(features: tuple[str, ...]) -> tuple[str, ...]:
    """The features a job asks for, with supervised fine-tuning where its method implies it."""
    found = set(features)
    if found & _SFT and not found & _NOT_SFT and "sft" not in found:
        return (*features, "sft")
    return features


def check_job(engine: Engine, main: Path, product: str, release: str | None, version: str) -> Report:
    """The report of a rendered job against a release, as ``ascend-compat check`` would give it."""
    from ascend_compat.check.engine import Options
    from ascend_compat.jobs.read import read_file

    read = read_file(str(main))
    return engine.check(read.launches, Options(product, release, version))[0]
