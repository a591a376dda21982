"""MindSpeed-LLM's own parser and its whole chain of checks, on CPU, with stubs for what touches devices.

Arguments: checkouts of MindSpeed-LLM, MindSpeed and Megatron-LM (core_v0.12.1), in this order.
A setting is ``{argv, world, env, entry}``.
"""

from __future__ import annotations

import os
import sys
import tempfile
import typing
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import torch
from prove_worker import Stub, serve, stub

_STUBS = (
    "torch_npu", "torchair", "apex", "transformer_engine", "acl", "transformers", "datasets", "peft", "triton",
    "sentencepiece", "tqdm", "pandas", "tensorboard", "mindspeed.ops", "mindspeed.op_builder", "einops", "nltk",
    "tiktoken", "wandb", "jsonlines", "accelerate", "safetensors", "tokenizers", "torchvision", "scipy",
    "mindspeed_ops", "modelscope", "mindio_ttp", "absl", "bs4", "ray", "multi_storage_client", "zarr", "tensorstore", "pulp",
)  # fmt: skip


def load(roots: list[str]) -> None:
    """Import the framework as a job does, from checkouts."""
    sys.path[:0] = roots
    stub(*_STUBS)
    if not hasattr(typing, "override"):  # before Python 3.12
        typing.override = lambda function: function  # type: ignore[attr-defined]
    torch.compile = lambda *given, **_: given[0] if given and callable(given[0]) else (lambda function: function)
    torch.cuda.get_device_capability = lambda *_: (8, 0)
    torch.npu = Stub()
    sys.argv = ["pretrain_gpt.py"]
    os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "1")
    import megatron.training.arguments
    import mindspeed_llm


def check(setting: dict[str, Any]) -> None:
    """Parse and validate one command line as the first lines of a job do."""
    os.environ.update({"RANK": "0", "WORLD_SIZE": str(setting["world"]), "LOCAL_RANK": "0", **setting.get("env", {})})
    from megatron.core.num_microbatches_calculator import init_num_microbatches_calculator
    from megatron.core.tensor_parallel.utils import VocabUtility
    from megatron.training import arguments
    from megatron.training.global_vars import set_args
    from mindspeed.features_manager.features_manager import MindSpeedFeaturesManager as Manager
    from mindspeed_llm.training.arguments import core_transformer_config_from_args_wrapper, process_args_v2

    _weights(setting["argv"])
    sys.argv = [setting.get("entry", "pretrain_gpt.py"), *setting["argv"]]
    parse, validate = _own(arguments.parse_args), _own(arguments.validate_args)
    args = parse(process_args_v2, False)
    Manager.pre_validate_features_args(args)
    args = validate(args, {"tokenizer_type": "GPT2BPETokenizer"})
    Manager.post_validate_features_args(args=args)
    from mindspeed_llm.training.arguments import _add_dummy_args_v2

    _add_dummy_args_v2(args)
    Manager.validate_features_args(args=args)
    set_args(args)
    init_num_microbatches_calculator(
        args.rank,
        args.rampup_batch_size,
        args.global_batch_size,
        args.micro_batch_size,
        args.data_parallel_size,
        args.decrease_batch_size_if_needed,
    )
    core_transformer_config_from_args_wrapper(arguments.core_transformer_config_from_args)(args)
    if args.padded_vocab_size:
        VocabUtility.vocab_range_from_global_vocab_size(args.padded_vocab_size, 0, args.tensor_model_parallel_size)
    _groups(args)


def _weights(argv: list[str]) -> None:
    """A folder of weights where the job says it has one."""
    os.chdir(tempfile.mkdtemp())
    if "--load" in argv:
        folder = argv[argv.index("--load") + 1]
        if not os.path.isabs(folder):
            os.makedirs(folder)
            for name in ("model.safetensors", "config.json"):
                with open(os.path.join(folder, name), "w") as file:
                    file.write("{}")


def _groups(args: Any) -> None:
    """The process groups of rank 0, with a store and groups that connect nothing."""
    import torch.distributed as dist
    from megatron.core import parallel_state
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", rank=0, world_size=args.world_size, store=FakeStore())
    dist.new_group = lambda *_, **__: dist.group.WORLD
    parallel_state.create_group = lambda *_, **__: dist.group.WORLD
    parallel_state.initialize_model_parallel(
        args.tensor_model_parallel_size,
        args.pipeline_model_parallel_size,
        args.virtual_pipeline_model_parallel_size,
        args.pipeline_model_parallel_split_rank,
        context_parallel_size=args.context_parallel_size,
        expert_model_parallel_size=args.expert_model_parallel_size,
        expert_tensor_parallel_size=args.expert_tensor_parallel_size,
        create_gloo_process_groups=False,
    )


def _own(function: Any) -> Any:
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


if __name__ == "__main__":
    checkouts = [os.path.abspath(path) for path in sys.argv[1:]]
    load(checkouts)
    serve(check, checkouts)
