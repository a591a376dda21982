"""LLaMA-Factory's own argument parser, and the checks its trainer makes before weights are loaded, on CPU.

Argument: a checkout. A setting is ``{args, env, launcher, world, model}``: the job's mapping, its environment, how it is
started, the number of processes, and what of the model's configuration the job depends on. Optional packages count as
installed, the device as one that computes in bf16 unless the setting says otherwise.
"""

from __future__ import annotations

import ast
import contextlib
import os
import sys
import tempfile
import traceback
import types
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

os.environ.update({"DISABLE_VERSION_CHECK": "1", "DS_ACCELERATOR": "cpu", "HF_HUB_OFFLINE": "1", "USE_TF": "0"})
import torch
from prove_statements import run
from prove_worker import serve, stub

stub(
    "torchaudio",
    "av",
    "torchvision",
    "galore_torch",
    "apollo_torch",
    "badam",
    "adam_mini",
    "swanlab",
    "unsloth",
    "librosa",
    "kt_kernel",
)
ROOT = ""


def load(root: str) -> None:
    """Import the parser and the trainer's entry, and say that optional packages are there."""
    global ROOT
    ROOT = root
    sys.path.insert(0, os.path.join(root, "src"))
    import llamafactory.extras.misc as misc
    import llamafactory.extras.packages as packages

    misc.require_version = lambda *_, **__: None
    for name in ("is_galore_available", "is_apollo_available", "is_megatron_bridge_available"):
        if hasattr(packages, name):
            setattr(packages, name, lambda: True)
    import datasets
    import deepspeed.comm.torch
    import deepspeed.runtime.config
    import transformers.trainer
    from llamafactory.data import loader, template
    from llamafactory.hparams import parser
    from llamafactory.model import adapter
    from llamafactory.train import trainer_utils, tuner
    from llamafactory.train.ppo import trainer
    from transformers import LlamaForCausalLM, PreTrainedTokenizerFast
    from transformers.integrations import deepspeed as integration

    # the name below deepspeed.comm is torch's own; what it builds would be compiled in every child
    sys.modules["deepspeed.comm.torch"].build_shm_op = lambda: None
    from llamafactory.hparams.training_args import TrainingArguments

    # the KTransformers build of transformers has it
    TrainingArguments.update_kt_config = lambda self, *_, **__: None


def check(setting: dict[str, Any]) -> None:
    """Parse one job and take it as far as the first use of weights."""
    import transformers.training_args as hf
    from llamafactory.hparams import parser
    from llamafactory.train import tuner

    os.environ.update({name: str(value) for name, value in setting.get("env", {}).items()})
    if setting["launcher"] != "python":
        _distributed(int(setting["world"]))
    elif setting["model"].get("devices_visible", 1) > 1:
        hf.TrainingArguments.parallel_mode = property(lambda _: hf.ParallelMode.NOT_DISTRIBUTED)
    has_bf16 = setting["model"].get("has_bf16", True)
    hf.is_torch_bf16_gpu_available = parser.is_torch_bf16_gpu_available = lambda: has_bf16
    os.chdir(tempfile.mkdtemp())
    os.symlink(os.path.join(ROOT, "examples"), "examples")

    def later(model_args: Any, data_args: Any, training_args: Any, finetuning_args: Any, *_: Any) -> None:
        _after_parsing(setting, model_args, data_args, training_args, finetuning_args)

    for name in dir(tuner):
        if name.startswith("run_") and name != "run_exp":
            setattr(tuner, name, later)
    for package in ("megatron_bridge", "mca", "hyper_parallel"):
        module = types.ModuleType(f"llamafactory.train.{package}")
        for name in ("run_pt", "run_sft", "run_dpo"):
            setattr(module, name, later)
        sys.modules[module.__name__] = module
    if hasattr(tuner, "is_hyper_parallel_available"):
        tuner.is_hyper_parallel_available = lambda: True
    tuner._training_function({"args": setting["args"], "callbacks": []})


def _distributed(world: int) -> None:
    import torch.distributed as dist
    from torch.testing._internal.distributed.fake_pg import FakeStore

    os.environ.update(
        {"LOCAL_RANK": "0", "RANK": "0", "WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29555"}
    )
    os.environ["LOCAL_WORLD_SIZE"] = str(world)
    if world > 1:
        os.environ["ACCELERATE_USE_CPU"] = "1"
    dist.init_process_group("fake", rank=0, world_size=world, store=FakeStore())


def _after_parsing(
    setting: dict[str, Any], model_args: Any, data_args: Any, training_args: Any, finetuning_args: Any
) -> None:
    """Template, dataset, attention, quantisation, DeepSpeed configuration, adapter and optimizer, in the trainer's order."""
    from llamafactory.data import data_utils, loader
    from llamafactory.data.template import get_template_and_fix_tokenizer
    from llamafactory.model import adapter
    from llamafactory.model.model_utils.attention import configure_attn_implementation
    from llamafactory.model.model_utils.quantization import configure_quantization
    from llamafactory.train.trainer_utils import create_custom_optimizer
    from transformers import LlamaConfig, LlamaForCausalLM

    _tables(setting, model_args, data_args, finetuning_args)
    tokenizer = _tokenizer()
    template = get_template_and_fix_tokenizer(tokenizer, data_args)
    loader._get_merged_dataset = lambda names, *_, **__: _rows(data_args.streaming) if names else None
    loader._get_preprocessed_dataset = lambda rows, *_, **__: rows
    if hasattr(data_utils, "split_dataset"):
        loader.get_dataset(template, model_args, data_args, training_args, finetuning_args.stage, tokenizer, None)
    said = setting["model"]
    config = LlamaConfig(
        hidden_size=64,
        intermediate_size=64,
        num_hidden_layers=int(said.get("num_hidden_layers", 2)),
        num_attention_heads=4,
        num_key_value_heads=4,
        vocab_size=64,
    )
    if said.get("model_type"):
        config.__class__ = type("AnyConfig", (LlamaConfig,), {"model_type": said["model_type"]})
    method = said.get("quant_method")
    if method:
        config.quantization_config = {"quant_method": method, "bits": 4}
    kwargs: dict[str, Any] = {}
    with contextlib.suppress(
        ImportError, OSError
    ):  # packages and files of the quantiser, after the framework's own checks
        configure_attn_implementation(config, model_args)
        configure_quantization(config, tokenizer, model_args, *_rest(configure_quantization, training_args, kwargs))
    if training_args.deepspeed:
        _deepspeed(setting, training_args)
    if finetuning_args.stage == "ppo":
        _ppo(model_args, data_args, training_args, finetuning_args)
    layers = config.num_hidden_layers
    model = LlamaForCausalLM(
        LlamaConfig(
            hidden_size=64, intermediate_size=64, num_hidden_layers=layers, num_attention_heads=4, vocab_size=64
        )
    )
    if method or model_args.quantization_bit is not None:
        model.quantization_method = method or "bitsandbytes"
    _adapter(adapter, config, model, model_args, finetuning_args)
    if finetuning_args.use_galore or finetuning_args.use_apollo:
        create_custom_optimizer(model, training_args, finetuning_args)
    if finetuning_args.stage in ("pt", "sft") and training_args.do_train:
        _trainer(model, data_args, training_args)


def _tables(setting: dict[str, Any], model_args: Any, data_args: Any, finetuning_args: Any) -> None:
    """Lists of architectures and what an export asks for, as single statements of their files."""
    from llamafactory.extras import constants

    kind, tuner = setting["model"].get("model_type"), "src/llamafactory/train/tuner.py"
    if setting["model"].get("command") == "export" or model_args.export_quantization_bit is not None:
        run(ROOT, tuner, "export_model", "adapter_name_or_path is not None and", {"model_args": model_args})
    if setting["model"].get("command") == "export":
        run(ROOT, tuner, "export_model", "export_dir is None", {"model_args": model_args})
    if model_args.use_kt and finetuning_args.compute_accuracy:
        run(ROOT, "src/llamafactory/train/sft/workflow.py", "run_sft", "is not supported in KTransformers SFT yet.", {})
    if not kind:
        return
    if model_args.mixture_of_depths == "convert":
        names = {"config": types.SimpleNamespace(model_type=kind), **vars(constants)}
        run(
            ROOT,
            "src/llamafactory/model/model_utils/mod.py",
            "convert_pretrained_model_to_mod",
            "MOD_SUPPORTED_MODELS",
            names,
        )
    for name, path in (("use_megatron_bridge", "megatron_bridge"), ("use_mca", "mca")):
        if setting["args"].get(name) or setting["env"].get(name.upper()):
            workflow = f"src/llamafactory/train/{path}/workflow.py"
            listed = "MEGATRON_BRIDGE_SUPPORTED_MODELS" if path == "megatron_bridge" else "MCA_SUPPORTED_MODELS"
            names = {"model_type": kind, listed: _constant(workflow, listed)}
            run(ROOT, workflow, "_check_model_support", f"model_type not in {listed}", names)
    if data_args.neat_packing and model_args.flash_attn == "fa2":
        model = types.SimpleNamespace(config=types.SimpleNamespace(model_type=kind))
        collator = types.SimpleNamespace(neat_packing=True, attn_implementation="flash_attention_2", model=model)
        place = "SFTDataCollatorWith4DAttentionMask.__post_init__"
        run(ROOT, "src/llamafactory/data/collator.py", place, "self.model is not None", {"self": collator})


def _constant(path: str, name: str) -> Any:
    """A list of a file, or of the file it is imported from."""
    from llamafactory.extras import constants

    if hasattr(constants, name):
        return getattr(constants, name)
    with open(os.path.join(ROOT, path), encoding="utf-8") as handle:
        tree = ast.parse(handle.read())
    node = next(
        node for node in tree.body if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == name
    )
    return ast.literal_eval(node.value)


def _adapter(adapter: Any, config: Any, model: Any, model_args: Any, finetuning_args: Any) -> None:
    """The adapter's checks; what a third package would do with the weights is left out."""
    model.merge_and_unload = lambda: model
    adapter.PeftModel.from_pretrained = lambda *_, **__: model
    for name in ("load_unsloth_peft_model", "get_unsloth_peft_model"):
        if hasattr(adapter, name):
            setattr(adapter, name, lambda *_, **__: model)
    try:
        adapter.init_adapter(config, model, model_args, finetuning_args, True)
    except Exception as error:
        if traceback.extract_tb(error.__traceback__)[-1].filename.endswith("llamafactory/model/adapter.py"):
            raise


def _trainer(model: Any, data_args: Any, training_args: Any) -> None:
    """transformers' own Trainer looks at combinations before it looks at the model; accelerate's FSDP wants a device."""
    from accelerate.utils import FullyShardedDataParallelPlugin
    from transformers import Trainer

    FullyShardedDataParallelPlugin.__post_init__ = lambda self: None

    held_out = _rows() if data_args.eval_dataset or data_args.val_size > 1e-6 else None
    rows = _rows(data_args.streaming)
    try:
        Trainer(
            model=model, args=training_args, train_dataset=rows, eval_dataset=held_out, data_collator=lambda rows: rows
        )
    except Exception as error:
        if traceback.extract_tb(error.__traceback__)[-1].filename.endswith("transformers/trainer.py"):
            raise


def _rest(function: Any, training_args: Any, kwargs: dict[str, Any]) -> list[Any]:
    """The last arguments of a function that got one more with the releases."""
    import inspect

    return [True, kwargs] if "is_trainable" in inspect.signature(function).parameters else [kwargs]


def _deepspeed(setting: dict[str, Any], training_args: Any) -> None:
    """What the Trainer and DeepSpeed make of the configuration once the sizes are known."""
    import deepspeed.runtime.config
    from deepspeed.runtime.config import DeepSpeedConfig

    config = training_args.hf_deepspeed_config
    model = types.SimpleNamespace(config=types.SimpleNamespace(hidden_size=64))
    config.trainer_config_finalize(training_args, model, 100)
    world = int(setting["world"])
    deepspeed.runtime.config.dist = types.SimpleNamespace(get_rank=lambda: 0, get_world_size=lambda: world)
    DeepSpeedConfig(config.config)


def _ppo(model_args: Any, data_args: Any, training_args: Any, finetuning_args: Any) -> None:
    from llamafactory.train.ppo.trainer import CustomPPOTrainer
    from llamafactory.train.trainer_utils import create_reward_model

    if finetuning_args.reward_model_type == "api":
        create_reward_model(None, model_args, finetuning_args)
    rows = _rows() if data_args.val_size > 1e-6 or data_args.eval_dataset else None
    if rows is not None:
        CustomPPOTrainer.__init__(object.__new__(CustomPPOTrainer), *[None] * 11, eval_dataset=rows)  # type: ignore[call-arg]
    if training_args.resume_from_checkpoint is not None:
        CustomPPOTrainer.ppo_train(object.__new__(CustomPPOTrainer), training_args.resume_from_checkpoint)


def _tokenizer() -> Any:
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(WordLevel({"<unk>": 0, "</s>": 1}, "<unk>")), eos_token="</s>", unk_token="<unk>"
    )


def _rows(streaming: bool = False) -> Any:
    from datasets import Dataset

    rows = Dataset.from_dict({"input_ids": [[0]] * 200, "labels": [[0]] * 200})
    return rows.to_iterable_dataset() if streaming else rows


if __name__ == "__main__":
    checkout = os.path.abspath(sys.argv[1])
    load(checkout)
    torch.set_num_threads(1)
    serve(check, [checkout, *[path for path in sys.path if path.endswith("site-packages")]], 60.0)
