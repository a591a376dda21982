"""Benchmarks of what training does most, on NPUs or CPUs, with pytest-benchmark; every timing waits for the device.

``python -m pytest torch_bench.py --benchmark-json=FILE``; ``ascend-compat bench run`` starts it so. Variables:
``BENCH_DEVICE`` (``npu`` or ``cpu``), ``BENCH_SHAPE`` (JSON: a model's facts in Hugging Face's words, and ``seq_length``).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.nn import functional

DEVICE = os.environ.get("BENCH_DEVICE", "cpu")
BACKENDS = {"npu": "hccl", "cpu": "gloo"}
SHAPE: dict[str, int] = {
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "intermediate_size": 128,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "seq_length": 128,
    **json.loads(os.environ.get("BENCH_SHAPE", "{}")),
}
HIDDEN, FFN, SEQ = SHAPE["hidden_size"], SHAPE["intermediate_size"], SHAPE["seq_length"]
HEADS, GROUPS, DIM = SHAPE["num_attention_heads"], SHAPE["num_key_value_heads"], SHAPE["head_dim"]
DTYPE = torch.float32 if DEVICE == "cpu" else torch.bfloat16

if DEVICE == "npu":
    import torch_npu  # noqa: F401


def synchronise() -> None:
    """Waits until the device has done what it was given."""
    if DEVICE == "npu":
        torch.npu.synchronize()


def tensor(*size: int, grad: bool = False) -> torch.Tensor:
    """Random numbers on the device."""
    return torch.randn(*size, device=DEVICE, dtype=DTYPE).requires_grad_(grad)


@pytest.fixture
def timed(benchmark: Any) -> Any:
    """Times a call with the wait for the device; the first calls, which compile, are not counted."""

    def run(call: Any) -> None:
        def whole() -> None:
            call()
            synchronise()

        benchmark.extra_info |= {"device": DEVICE, "unit": "s"}
        benchmark.pedantic(whole, rounds=20, iterations=3, warmup_rounds=3)

    return run


def test_matmul(timed: Any) -> None:
    left, right = tensor(SEQ, HIDDEN), tensor(HIDDEN, FFN)
    timed(lambda: left @ right)


@pytest.mark.parametrize("kind", ["eager", "sdpa", "fused"])
def test_attention(timed: Any, kind: str) -> None:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    query = tensor(1, HEADS, SEQ, DIM)
    key, value = (tensor(1, GROUPS, SEQ, DIM).repeat_interleave(HEADS // GROUPS, dim=1) for _ in range(2))
    mask = torch.full((SEQ, SEQ), float("-inf"), device=DEVICE, dtype=DTYPE).triu(1)

    def eager() -> torch.Tensor:
        scores = query @ key.transpose(-1, -2) * DIM**-0.5 + mask
        return scores.softmax(-1) @ value

    def sdpa() -> torch.Tensor:
        return functional.scaled_dot_product_attention(query, key, value, is_causal=True)

    if kind == "fused":
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            timed(sdpa)
    else:
        timed(eager if kind == "eager" else sdpa)


def test_rms_norm(timed: Any) -> None:
    states, weight = tensor(SEQ, HIDDEN), tensor(HIDDEN)
    timed(lambda: functional.rms_norm(states, (HIDDEN,), weight, 1e-6))


def test_swiglu(timed: Any) -> None:
    gate, up = tensor(SEQ, FFN), tensor(SEQ, FFN)
    timed(lambda: functional.silu(gate) * up)


def test_rotary(timed: Any) -> None:
    query = tensor(1, HEADS, SEQ, DIM)
    angles = torch.outer(torch.arange(SEQ), 10000 ** (-torch.arange(0, DIM, 2) / DIM)).repeat(1, 2)
    cosine, sine = (made.to(DEVICE, DTYPE) for made in (angles.cos(), angles.sin()))

    def rotate() -> torch.Tensor:
        first, second = query.chunk(2, dim=-1)
        return query * cosine + torch.cat((-second, first), dim=-1) * sine

    timed(rotate)


class Dense(torch.nn.Module):
    """One SwiGLU feed-forward layer of the shape."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.up = (torch.nn.Linear(HIDDEN, FFN, bias=False) for _ in range(2))
        self.down = torch.nn.Linear(FFN, HIDDEN, bias=False)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Feed-forward."""
        out: torch.Tensor = self.down(functional.silu(self.gate(states)) * self.up(states))
        return out


class Moe(torch.nn.Module):
    """A mixture of such layers; each token takes the best few."""

    def __init__(self) -> None:
        super().__init__()
        self.router = torch.nn.Linear(HIDDEN, SHAPE["num_experts"], bias=False)
        self.experts = torch.nn.ModuleList(Dense() for _ in range(SHAPE["num_experts"]))

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Routed feed-forward."""
        weights, chosen = self.router(states).softmax(-1).topk(SHAPE["num_experts_per_tok"])
        out = torch.zeros_like(states)
        for number, expert in enumerate(self.experts):
            rows, places = (chosen == number).nonzero(as_tuple=True)
            out = out.index_add(0, rows, expert(states[rows]) * weights[rows, places, None])
        return out


@pytest.mark.parametrize("layer", [Dense, Moe])
def test_train_step(timed: Any, layer: Any) -> None:
    model = layer().to(DEVICE, DTYPE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    states, wanted = tensor(SEQ, HIDDEN), tensor(SEQ, HIDDEN)

    def step() -> None:
        functional.mse_loss(model(states), wanted).backward()
        optimizer.step()
        optimizer.zero_grad()

    timed(step)


def test_optimizer_step(timed: Any) -> None:
    model = Dense().to(DEVICE, DTYPE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    timed(optimizer.step)


def collective(kind: str) -> Any:
    """The call that a process makes for one collective."""
    states, out = tensor(SEQ, HIDDEN), tensor(SEQ, HIDDEN)
    if kind == "all_reduce":
        return lambda: dist.all_reduce(states)
    return lambda: dist.all_to_all_single(out, states)


def join(rank: int, place: str) -> None:
    """Joins the group of two."""
    if DEVICE == "npu":
        torch.npu.set_device(rank)
    dist.init_process_group(BACKENDS[DEVICE], init_method=f"file://{place}", rank=rank, world_size=2)


@pytest.mark.parametrize("kind", ["all_reduce", "all_to_all"])
def test_collective(timed: Any, kind: str, tmp_path: Any) -> None:
    if DEVICE == "npu" and torch.npu.device_count() < 2:
        pytest.skip("one NPU is visible, a collective needs two")
    place = str(tmp_path / "store")
    # the peer makes the same call for ever, and is ended with the measurement
    peer = subprocess.Popen([sys.executable, __file__, kind, place])
    try:
        join(0, place)
        timed(collective(kind))
    finally:
        peer.kill()
        peer.wait()
        if dist.is_initialized():
            dist.destroy_process_group()


if __name__ == "__main__":
    join(1, sys.argv[2])
    call = collective(sys.argv[1])
    while True:
        call()
