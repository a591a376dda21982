"""Trains without a framework: under DDP, FSDP2, tensor parallelism or context parallelism, on NPUs or CPUs.

As a runner: ``torch_train.py --job plan.json --device npu|cpu --out FOLDER``. Without ``--job`` it is what that runner
starts: ``torchrun --nproc_per_node N torch_train.py --model-path FOLDER --data FILE --device … --tensor-parallel 2 …``.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

BACKENDS = {"npu": "hccl", "cpu": "gloo"}
ATTENTION = ("eager", "sdpa", "fused")


def runner(argv: list[str]) -> int:
    """Follows one run, as every runner does."""
    from common.launch import Framework, main

    class TorchTrain(Framework):
        """Prints one JSON object a step."""

        package = "torch"

        def prepare(self) -> None:
            """The job's script starts this file from the run's folder."""
            link = self.cwd / "torch_train.py"
            if not link.exists():
                link.symlink_to(Path(__file__).resolve())

        def command(self) -> list[str]:
            """The job's script, told where the model and the data lie and what it runs on."""
            model, data = self.plan["model"], self.plan["data"]
            name = f"{data.get('name') or 'recipe_data'}.jsonl"
            words = ["--model-path", model.get("path") or "model", "--data", f"{data['path']}/{name}"]
            return [*super().command(), *words, "--device", self.device]

        def environment(self) -> dict[str, str]:
            """One thread a process on a CPU; no look at the network."""
            return {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}

        def line(self, text: str) -> None:
            """A step is a line that is a JSON object with ``step``."""
            if text.startswith('{"step"'):
                said = json.loads(text)
                self.step(said.pop("step"), said.pop("loss"), seconds=said.pop("seconds"), **said)

    return main(TorchTrain, argv)


def options(argv: list[str]) -> argparse.Namespace:
    """The worker's own command line; sizes are Megatron's, their product with the rest is the number of processes."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model-path", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True, help="JSON Lines with a text a line")
    parser.add_argument("--device", choices=sorted(BACKENDS), required=True)
    for name in ("data", "tensor", "context"):
        parser.add_argument(f"--{name}-parallel", type=int, default=1)
    parser.add_argument("--fsdp2", action="store_true", help="shard parameters over the data parallel processes")
    parser.add_argument("--attention-implementation", choices=ATTENTION, default="sdpa")
    parser.add_argument("--seq-length", type=int, default=64)
    parser.add_argument("--micro-batch-size", type=int, default=2)
    parser.add_argument("--max-steps", type=int, default=5)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    return parser.parse_args(argv)


def worker(asked: argparse.Namespace) -> None:
    """Trains ``max_steps`` steps and prints each from the first process."""
    import torch
    import torch.distributed as dist
    from transformers import AutoModelForCausalLM, AutoTokenizer

    world = int(os.environ.get("WORLD_SIZE", "1"))
    sizes = asked.data_parallel, asked.context_parallel, asked.tensor_parallel
    if sizes[0] * sizes[1] * sizes[2] != world:
        raise SystemExit(f"data {sizes[0]} x context {sizes[1]} x tensor {sizes[2]} parallel is not {world} processes")
    device = _device(asked.device)
    dist.init_process_group(BACKENDS[asked.device])
    mesh = dist.init_device_mesh(asked.device, sizes, mesh_dim_names=("dp", "cp", "tp"))
    attention = "sdpa" if asked.attention_implementation == "fused" else asked.attention_implementation
    if sizes[1] > 1:
        attention = _ulysses(mesh.get_group("cp"))
    model = AutoModelForCausalLM.from_pretrained(
        asked.model_path, dtype=torch.float32, attn_implementation=attention, local_files_only=True
    ).to(device)
    model = _parallel(model, mesh, asked, device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=asked.learning_rate, foreach=False)
    tokens = _tokens(AutoTokenizer.from_pretrained(asked.model_path, local_files_only=True), asked.data)
    model.train()
    for step in range(1, asked.max_steps + 1):
        began = time.perf_counter()
        with _kernel(asked.attention_implementation):
            loss = _loss(model, _batch(tokens, asked, mesh, step, device))
            loss.backward()
        if sizes[1] > 1:
            for parameter in model.parameters():
                if parameter.grad is not None:
                    dist.all_reduce(parameter.grad, group=mesh.get_group("cp"))
                    parameter.grad /= sizes[1]
        optimizer.step()
        optimizer.zero_grad()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        _synchronise(asked.device)
        if dist.get_rank() == 0:
            seconds = time.perf_counter() - began
            count = asked.micro_batch_size * asked.seq_length * sizes[0]
            said = {"step": step, "loss": mean.item() / world, "seconds": round(seconds, 6)}
            said["tokens_per_second"] = round(count / seconds, 3)
            if asked.device == "npu":
                said["memory_bytes"] = torch.npu.max_memory_allocated()
            print(json.dumps(said), flush=True)
    dist.destroy_process_group()


def _device(kind: str) -> Any:
    import torch

    if kind == "cpu":
        return torch.device("cpu")
    import torch_npu  # noqa: F401

    torch.npu.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    return torch.device("npu")


def _synchronise(kind: str) -> None:
    import torch

    if kind == "npu":
        torch.npu.synchronize()


def _parallel(model: Any, mesh: Any, asked: argparse.Namespace, device: Any) -> Any:
    """The model, its layers split or sharded, as the sizes ask."""
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    from torch.nn.parallel import DistributedDataParallel

    if asked.tensor_parallel > 1:
        split = {f"self_attn.{name}_proj": ColwiseParallel() for name in "qkv"}
        split |= {f"mlp.{name}_proj": ColwiseParallel() for name in ("gate", "up")}
        split |= {"self_attn.o_proj": RowwiseParallel(), "mlp.down_proj": RowwiseParallel()}
        for layer in model.model.layers:
            parallelize_module(layer, mesh["tp"], split)
    if asked.fsdp2:
        for layer in model.model.layers:
            fully_shard(layer, mesh=mesh["dp"])
        fully_shard(model, mesh=mesh["dp"])
    elif asked.data_parallel > 1:
        # experts that no token of a step reaches have no gradient
        model = DistributedDataParallel(
            model, process_group=mesh.get_group("dp"), find_unused_parameters=hasattr(model.config, "num_experts")
        )
    return model


def _ulysses(group: Any) -> str:
    """Registers attention over whole sequences and a part of the heads; returns its name.

    Each process holds a part of the sequence. All-to-all gives it all positions of some heads, and its own back after.
    """
    import torch
    import torch.distributed as dist
    from torch.distributed.nn.functional import all_to_all_single
    from transformers import AttentionInterface
    from transformers.integrations.sdpa_attention import repeat_kv

    size = dist.get_world_size(group)

    def exchange(states: Any, gather: int, scatter: int) -> Any:
        parts = torch.stack(states.chunk(size, dim=scatter)).contiguous()
        got = all_to_all_single(torch.empty_like(parts), parts, group=group)
        return torch.cat(list(got), dim=gather)

    def attend(module: Any, query: Any, key: Any, value: Any, _mask: Any, scaling: Any = None, **_rest: Any) -> Any:
        groups = module.num_key_value_groups
        key, value = repeat_kv(key, groups), repeat_kv(value, groups)
        query, key, value = (exchange(states, 2, 1) for states in (query, key, value))
        out = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True, scale=scaling)
        return exchange(out, 1, 2).transpose(1, 2).contiguous(), None

    AttentionInterface.register("ulysses", attend)
    return "ulysses"


def _kernel(attention: str) -> Any:
    """Holds PyTorch to its fused kernel, to its plain one, or leaves the choice to it."""
    import contextlib

    from torch.nn.attention import SDPBackend, sdpa_kernel

    return sdpa_kernel(SDPBackend.FLASH_ATTENTION) if attention == "fused" else contextlib.nullcontext()


def _tokens(tokenizer: Any, path: Path) -> list[int]:
    texts = [json.loads(line)["text"] for line in path.read_text(encoding="utf-8").splitlines()]
    return [token for text in texts for token in [*tokenizer(text)["input_ids"], tokenizer.eos_token_id]]


def _batch(tokens: list[int], asked: argparse.Namespace, mesh: Any, step: int, device: Any) -> dict[str, Any]:
    """This process's rows and positions of one step; labels are the next tokens."""
    import torch

    rank, part = mesh.get_local_rank("dp"), mesh.get_local_rank("cp")
    rows = []
    for row in range(asked.micro_batch_size):
        at = ((step - 1) * asked.data_parallel + rank) * asked.micro_batch_size + row
        first = at * asked.seq_length
        rows.append([tokens[(first + offset) % len(tokens)] for offset in range(asked.seq_length + 1)])
    whole = torch.tensor(rows, device=device)
    own = asked.seq_length // asked.context_parallel
    here = slice(part * own, (part + 1) * own)
    positions = torch.arange(asked.seq_length, device=device)[here].unsqueeze(0)
    return {"input_ids": whole[:, :-1][:, here], "labels": whole[:, 1:][:, here], "position_ids": positions}


def _loss(model: Any, batch: dict[str, Any]) -> Any:
    import torch

    labels = batch.pop("labels")
    logits = model(**batch, use_cache=False).logits
    return torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), labels.flatten())


if __name__ == "__main__":
    words = sys.argv[1:]
    if "--job" in words:
        sys.exit(runner(words))
    worker(options(words))
