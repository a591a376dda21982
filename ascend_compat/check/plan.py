"""Legal layouts of a model on a number of devices: every candidate goes through the same rules as a user's job."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ascend_compat.check.catalogue import fill
from ascend_compat.check.finding import Source, Text
from ascend_compat.check.memory import DEVICE_GIB, floor_gib
from ascend_compat.check.rules import Row, evaluate
from ascend_compat.errors import UsageError
from ascend_compat.jobs.render import fresh_launch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ascend_compat.check.engine import Engine
    from ascend_compat.check.rules import Outcome
    from ascend_compat.jobs.render import Rendered
    from ascend_compat.jobs.spec import Spec

DEVICES_PER_NODE = {"a2": 8, "a3": 16}
_LONG_SEQUENCE = 32_768
_SHAPE = (
    "num_layers", "hidden_size", "ffn_hidden_size", "num_attention_heads", "vocab_size", "max_position_embeddings",
)  # fmt: skip
_EXPERT_SHAPE = {
    "num_experts": "num_experts",
    "num_experts_per_tok": "moe_router_topk",
    "moe_intermediate_size": "moe_ffn_hidden_size",
}


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be planned. ``method`` is one of the framework's templates (pretrain, full, lora, grpo)."""

    model: str
    framework: str
    devices: int
    method: str
    chip: str = "a2"
    seq_length: int = 4096
    version: str | None = None


@dataclass(frozen=True, slots=True)
class Layout:
    """One legal layout: its facts, the least memory a device needs (GiB), and what official script uses it."""

    facts: Mapping[str, Any]
    sizes: Mapping[str, Any]
    floor: float | None
    warnings: tuple[str, ...]
    shipped: Source | None
    why: Text


@dataclass(slots=True)
class Plan:
    """Legal layouts, best first; without any, the least number of devices that has one and what refuses.

    ``reasons``: rule, its sentence about the first layout it refused, how many it refused.
    """

    request: Request
    version: str
    layouts: list[Layout] = field(default_factory=list)
    tried: int = 0
    reasons: list[tuple[str, Text, int]] = field(default_factory=list)
    smallest: int | None = None


def plan(engine: Engine, request: Request, search: bool = True) -> Plan:
    """All legal layouts of a request. Raises :class:`UsageError` for a method the framework has no template for."""
    spec = engine.spec(request.framework)
    if spec is None:
        raise UsageError(f"no framework is called {request.framework!r}")
    version = request.version or spec.newest
    result = Plan(request, version)
    base = base_facts(engine, spec, request, version)
    shape = _model(engine, request.model)
    candidates = list(_candidates(request, base, shape))
    result.tried = len(candidates)
    rules = engine.rules(request.framework, version)
    outcomes = evaluate(engine.con, [Row(facts) for facts in candidates], rules, engine.vocabulary(request.framework))
    refused: dict[str, tuple[Text, int]] = {}
    shipped = _shipped(engine, request)
    for facts, outcome in zip(candidates, outcomes):
        floor = floor_gib(request.framework, {**facts, **outcome.derived}, shape)
        broken = [rule for rule in outcome.broken if rule.severity == "impossible"]
        if broken:
            values = {**facts, **outcome.derived}
            for rule in broken:
                said = Text(fill(rule.message_en, values), fill(rule.message_zh, values))
                text, count = refused.get(rule.id, (said, 0))
                refused[rule.id] = (text, count + 1)
        elif floor is not None and floor > DEVICE_GIB:
            text, count = refused.get("memory-floor", (_TOO_BIG, 0))
            refused["memory-floor"] = (text, count + 1)
        else:
            result.layouts.append(_layout(request, facts, outcome, floor, shape, shipped))
    result.layouts.sort(key=lambda layout: _rank(request, layout))
    if not result.layouts:
        ordered = sorted(refused.items(), key=lambda item: -item[1][1])
        result.reasons = [(identifier, text, count) for identifier, (text, count) in ordered]
        if search:
            result.smallest = _smallest(engine, request)
    return result


_TOO_BIG = Text(
    f"The weights, gradients and optimizer state of one device alone exceed {DEVICE_GIB:.0f} GiB.",
    f"仅单卡的权重、梯度与优化器状态就超过 {DEVICE_GIB:.0f} GiB。",
)


def base_facts(engine: Engine, spec: Spec, request: Request, version: str) -> dict[str, Any]:
    """A job of the template without its layout: defaults of the version, the template, the model's shape."""
    template = template_of(engine, request.framework, request.method)
    defaults = spec.defaults(version, spec.base(fresh_launch(request.framework)))
    facts: dict[str, Any] = {default.fact: default.value for default in defaults.values()}
    facts.update(template["facts"])
    model = _model(engine, request.model)
    facts.update({name: value for name, value in model.items() if name in spec.types and value is not None})
    facts["num_hidden_layers"] = model["num_layers"]
    facts["model"] = request.model
    if request.framework == "mindspeed-llm":
        facts.update(megatron_shape(model))
        if model.get("num_experts"):
            facts.update(template["experts"])
    if "seq_length" in spec.types and request.framework != "verl":
        facts["seq_length"] = request.seq_length
        if request.framework == "mindspeed-llm":
            facts["max_position_embeddings"] = max(request.seq_length, model.get("max_position_embeddings") or 0)
    return facts


def megatron_shape(model: Mapping[str, Any]) -> dict[str, Any]:
    """A model's architecture in the facts of Megatron's flags."""
    shape = {name: model[name] for name in _SHAPE if model.get(name) is not None}
    if model.get("kv_lora_rank"):
        shape |= {"mla": True, "mla_kv_lora_rank": model["kv_lora_rank"], "mla_q_lora_rank": model.get("q_lora_rank")}
        shape |= {"mla_qk_nope_head_dim": model["qk_nope_head_dim"], "mla_qk_rope_head_dim": model["qk_rope_head_dim"]}
        shape["mla_v_head_dim"] = model["v_head_dim"]
    else:
        shape["head_dim"] = model.get("head_dim")
        if model["num_key_value_heads"] != model["num_attention_heads"]:
            shape |= {"group_query_attention": True, "num_query_groups": model["num_key_value_heads"]}
    for source, fact in _EXPERT_SHAPE.items():
        if model.get(source):
            shape[fact] = model[source]
    return {name: value for name, value in shape.items() if value is not None}


def template_of(engine: Engine, framework: str, method: str) -> dict[str, Any]:
    """Facts and settings of a framework's template: common ones below the method's own."""
    row = engine.con.execute("SELECT body FROM template WHERE framework = ?", [framework]).fetchone()
    body: dict[str, Any] = json.loads(row[0]) if row else {}
    known = [entry["method"] for entry in body.get("templates", ())]
    if method not in known:
        listed = ", ".join(known) or "none"
        raise UsageError(f"{framework} has no template for the method {method!r}; there are: {listed}")
    own = body["templates"][known.index(method)]
    common = body.get("common", {})
    experts = body.get("experts", {})
    return {
        "facts": {**common.get("facts", {}), **own["facts"]},
        "settings": {**common.get("settings", {}), **own.get("settings", {})},
        "experts": {**experts.get("facts", {}), **experts.get(method, {})},
    }


def _model(engine: Engine, identifier: str) -> dict[str, Any]:
    from ascend_compat.jobs.architecture import Architecture

    return {**dict.fromkeys(_SHAPE), **Architecture(engine.con).facts(identifier)}


def _divisors(number: int) -> list[int]:
    return [part for part in range(1, number + 1) if number % part == 0]


def _powers(limit: int) -> list[int]:
    return [1 << power for power in range(limit.bit_length()) if 1 << power <= limit]


def _candidates(request: Request, base: Mapping[str, Any], shape: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    per_node = min(request.devices, DEVICES_PER_NODE[request.chip])
    if request.devices % per_node:
        raise UsageError(f"{request.devices} devices do not fill nodes of {per_node}; give a multiple of {per_node}")
    placed = {**base, "devices_per_node": per_node, "nnodes": request.devices // per_node}
    if request.framework == "mindspeed-llm":
        yield from _megatron(request, placed, shape)
    elif request.framework == "llamafactory":
        for stage in (0, 1, 2, 3):
            yield {**placed, "zero_stage": stage}
    elif request.framework == "verl":
        yield from _verl(request, placed, shape)
    else:
        yield from _mindspeed_rl(request, placed, shape)


def _megatron(request: Request, base: Mapping[str, Any], shape: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    layers, experts = shape["num_layers"], shape.get("num_experts")
    for tensor in _powers(base["devices_per_node"]):
        for pipeline in _powers(min(request.devices // tensor, layers, 64)):
            contexts = _powers(16) if request.seq_length >= _LONG_SEQUENCE else [1]
            for context in contexts:
                if request.devices % (tensor * pipeline * context):
                    continue
                for expert in _powers(min(experts, request.devices)) if experts else [1]:
                    facts = {
                        **base,
                        "tensor_parallel": tensor,
                        "pipeline_parallel": pipeline,
                        "context_parallel": context,
                        "expert_parallel": expert,
                        "sequence_parallel": tensor > 1,
                        "num_layers": layers,
                    }
                    if context > 1:
                        facts["context_parallel_algo"] = "ulysses_cp_algo"
                    if experts:
                        facts["expert_tensor_parallel"] = 1
                    over = -layers % pipeline
                    if over:
                        facts |= {"num_layers": layers + over, "noop_layers": list(range(layers, layers + over))}
                    data = request.devices // (tensor * pipeline * context)
                    batch = base["global_batch_size"]
                    facts["global_batch_size"] = max(1, round(batch / data)) * data * base["micro_batch_size"]
                    yield facts


def _verl(request: Request, base: Mapping[str, Any], shape: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for rollout in _powers(base["devices_per_node"]):
        for sequence in _powers(base["devices_per_node"]):
            yield {**base, "rollout_tensor_parallel": rollout, "ulysses_sp": sequence}


def _mindspeed_rl(request: Request, base: Mapping[str, Any], shape: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for tensor in _powers(base["devices_per_node"]):
        for pipeline in _powers(min(request.devices // tensor, shape["num_layers"])):
            for rollout in _powers(base["devices_per_node"]):
                yield {
                    **base,
                    "actor_devices": request.devices,
                    "tensor_parallel": tensor,
                    "pipeline_parallel": pipeline,
                    "rollout_tensor_parallel": rollout,
                    "sequence_parallel": tensor > 1,
                }


_SIZES = (
    "tensor_parallel", "pipeline_parallel", "context_parallel", "expert_parallel", "expert_tensor_parallel", "data_parallel",
    "zero_stage", "ulysses_sp", "rollout_tensor_parallel", "global_batch_size", "micro_batch_size", "num_layers", "noop_layers",
)  # fmt: skip


def _layout(
    request: Request,
    facts: Mapping[str, Any],
    outcome: Outcome,
    floor: float | None,
    shape: Mapping[str, Any],
    shipped: Sequence[tuple[Mapping[str, Any], Source]],
) -> Layout:
    values = {**outcome.derived, **facts}
    dense = not shape.get("num_experts")
    sizes = {
        name: values[name]
        for name in _SIZES
        if values.get(name) is not None and not (dense and name in ("expert_parallel", "expert_tensor_parallel"))
    }
    source = next(
        (place for wanted, place in shipped if all(values.get(name, 1) == size for name, size in wanted.items())), None
    )
    why = _SHIPPED if source else _RULE_OF_THUMB
    warnings = tuple(rule.id for rule in outcome.broken if rule.severity != "impossible")
    return Layout(dict(facts), sizes, floor, warnings, source, why)


_SHIPPED = Text("an official script uses these sizes", "官方脚本使用同样的并行规模")
_RULE_OF_THUMB = Text(
    "least model splitting whose state fits: tensor groups inside a node, then pipeline, experts before tensor",
    "在放得下的前提下切分最少：张量并行不跨节点，其次流水线并行，专家并行优先于张量并行",
)


def _rank(request: Request, layout: Layout) -> tuple[Any, ...]:
    """Official sizes first; then what fits with room for activations, split as little as possible.

    After docs/user-guide/parallelism-guide.md of NVIDIA/Megatron-LM at d98e8a64ddf3.
    """
    sizes = layout.sizes
    roomy = layout.floor is None or layout.floor <= DEVICE_GIB * 0.6
    tensor = sizes.get("tensor_parallel", 1)
    split = tensor * sizes.get("pipeline_parallel", 1) * sizes.get("context_parallel", 1)
    return (
        layout.shipped is None,
        not roomy,
        len(layout.warnings),
        split,
        tensor,
        sizes.get("zero_stage", 0),
        -sizes.get("expert_parallel", 1),
        -sizes.get("rollout_tensor_parallel", 1),
    )


def _shipped(engine: Engine, request: Request) -> list[tuple[Mapping[str, Any], Source]]:
    """Layouts of official scripts for the same model, method and number of devices."""
    rows = engine.con.execute(
        "SELECT sizes, source FROM layout WHERE framework = ? AND model = ? AND devices = ? AND method = ? AND seq_length = ?",
        [request.framework, request.model, request.devices, request.method, request.seq_length],
    ).fetchall()
    return [(json.loads(sizes), Source(source)) for sizes, source in reversed(rows)]


def _smallest(engine: Engine, request: Request) -> int | None:
    per_node = DEVICES_PER_NODE[request.chip]
    for devices in [*_powers(per_node), *(per_node << power for power in range(1, 10))]:
        if devices > request.devices and plan(engine, replace(request, devices=devices), search=False).layouts:
            return devices
    return None


def job_of(engine: Engine, result: Plan, layout: Layout) -> Rendered:
    """A layout as a job file of its framework, with the template's settings that a user replaces."""
    from ascend_compat.jobs.render import render

    request = result.request
    spec = engine.spec(request.framework)
    assert spec is not None
    template = template_of(engine, request.framework, request.method)
    model = _model(engine, request.model)
    shape = megatron_shape(model) if request.framework == "mindspeed-llm" else {}
    names = {*template["facts"], *template["experts"], *shape, *_STATED[request.framework]}
    settable = {key.fact for key in spec.keys.values() if key.fact} | {
        "entry",
        "zero_stage",
        "devices_per_node",
        "nnodes",
    }
    stated = {name: layout.facts[name] for name in layout.facts if name in names & settable}
    stated[_MODEL_FACT.get(request.framework, "model")] = _named(engine, request)
    return render(spec, result.version, stated, template["settings"])


# Facts of a layout that a job file of the framework states.
_STATED = {
    "mindspeed-llm": (
        *_SIZES,
        "devices_per_node",
        "nnodes",
        "seq_length",
        "sequence_parallel",
        "context_parallel_algo",
        "entry",
    ),
    "llamafactory": ("zero_stage", "devices_per_node", "nnodes", "seq_length"),
    "verl": ("ulysses_sp", "rollout_tensor_parallel", "devices_per_node", "nnodes"),
    "mindspeed-rl": (
        *("tensor_parallel", "pipeline_parallel", "rollout_tensor_parallel", "actor_devices"),
        *("sequence_parallel", "global_batch_size", "micro_batch_size", "seq_length"),
    ),
}
_MODEL_FACT = {"verl": "model_path", "mindspeed-llm": "tokenizer_path"}


def _named(engine: Engine, request: Request) -> str:
    """How a job file of the framework names the model."""
    if request.framework == "mindspeed-llm":
        return f"./model_from_hf/{request.model}"
    if request.framework == "mindspeed-rl":
        return request.model.replace(".", "").replace("-", "_")
    row = engine.con.execute("SELECT hf_ids[1] FROM model WHERE id = ?", [request.model]).fetchone()
    return str(row[0]) if row and row[0] else request.model
