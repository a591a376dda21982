"""The least memory a device needs: weights, gradients and optimizer state that must exist together.

Activations, buffers and fragmentation are left out, so a job above a floor may still fail; one below it cannot run.
Bytes a parameter: ZeRO paper (arXiv 1910.02054); NVIDIA/Megatron-LM docs/user-guide/features/dist_optimizer.md at d98e8a6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_GIB = 2**30
# Memory of one device (a die of an A3 card) in GiB: the most a 64 GB part can have.
DEVICE_GIB = 64.0


def floor_gib(framework: str, facts: Mapping[str, Any], model: Mapping[str, Any]) -> float | None:
    """Floor of one device in GiB; None where a condition is not known."""
    total = model.get("total_params")
    devices = facts.get("world_size")
    if not total or not devices:
        return None
    if framework == "mindspeed-llm":
        return _megatron(facts, model, total)
    if framework == "llamafactory":
        return _llamafactory(facts, total, devices)
    if facts.get("offload") or framework == "verl":
        return None
    return least_gib("full", total, devices)


def least_gib(method: str, total: float, devices: int) -> float:
    """What one device must hold in GiB when all of them share everything: 16 bytes a parameter, or 2 under LoRA."""
    return (2 if method == "lora" else 16) * total / devices / _GIB


def _megatron(facts: Mapping[str, Any], model: Mapping[str, Any], total: float) -> float:
    tensor, pipeline = facts.get("tensor_parallel") or 1, facts.get("pipeline_parallel") or 1
    expert, expert_tensor = facts.get("expert_parallel") or 1, facts.get("expert_tensor_parallel") or tensor
    experts = expert_params(model)
    share = ((total - experts) / tensor + experts / (expert * expert_tensor)) / pipeline
    if facts.get("lora_r"):
        return 2 * share / _GIB
    if facts.get("swap_optimizer") or facts.get("optimizer_cpu_offload"):
        return 6 * share / _GIB
    data = facts.get("data_parallel") or 1
    return share * (6 + 12 / data if facts.get("distributed_optimizer") else 18) / _GIB


def expert_params(model: Mapping[str, Any]) -> float:
    """Parameters of the routed experts: three matrices an expert in every expert layer."""
    count = model.get("num_experts") or 0
    layers = (model.get("num_layers") or 0) - (model.get("first_k_dense_replace") or 0)
    return 3.0 * count * (model.get("moe_intermediate_size") or 0) * (model.get("hidden_size") or 0) * layers


def _llamafactory(facts: Mapping[str, Any], total: float, devices: int) -> float:
    stage = facts.get("zero_stage") or 0
    if facts.get("finetuning_type") == "lora":
        return 2 * total / (devices if stage == 3 else 1) / _GIB
    if stage == 3:
        return 16 * total / devices / _GIB
    each = {0: 16.0, 1: max(2 + 12 / devices, 4.0), 2: max(2 + 14 / devices, 4.0)}[stage]
    return each * total / _GIB
