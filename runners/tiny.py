"""Makes a tiny random checkpoint with its own tokenizer, and small data, so that a job can run without any download.

The checkpoint has the class and the structure (grouped heads, experts, latent attention) of the real model; only sizes shrink.
Run alone: ``python tiny.py --plan plan.json --out FOLDER``.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path
from typing import Any

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<pad>"]
CHAT = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_THINGS = ["red", "green", "blue", "one", "two", "three", "sun", "moon", "north", "south"]
# Hugging Face's own word where it is not the common one
_EXPERTS = ("num_experts", "n_routed_experts", "num_local_experts")


def shrink(arch: dict[str, Any], layers: int = 2, hidden_size: int = 64) -> dict[str, Any]:
    """Architecture facts scaled down: the ratio of heads, the kind of each layer and the routing stay as they are."""
    heads = int(arch.get("num_attention_heads") or 4)
    groups = int(arch.get("num_key_value_heads") or heads)
    per_group = max(1, min(4, heads // groups))
    small_groups = 1 if groups == 1 else 2
    facts: dict[str, Any] = {
        "num_hidden_layers": min(layers, int(arch.get("num_hidden_layers") or layers)),
        "hidden_size": min(hidden_size, int(arch.get("hidden_size") or hidden_size)),
        "num_key_value_heads": small_groups if heads != groups else small_groups * per_group,
        "num_attention_heads": small_groups * per_group,
    }
    facts["intermediate_size"] = 2 * facts["hidden_size"]
    if arch.get("head_dim"):
        facts["head_dim"] = min(16, int(arch["head_dim"]))
    experts = int(arch.get("num_experts") or 0)
    if experts:
        facts["num_experts"] = min(4, experts)
        facts["num_experts_per_tok"] = min(2, int(arch.get("num_experts_per_tok") or 1))
        facts["moe_intermediate_size"] = facts["hidden_size"] // 2
        for name, most in (("n_shared_experts", 1), ("first_k_dense_replace", 1), ("n_group", 2), ("topk_group", 1)):
            if arch.get(name) is not None:
                facts[name] = min(most, int(arch[name]))
    for name, size in (
        ("q_lora_rank", 32),
        ("kv_lora_rank", 16),
        ("qk_nope_head_dim", 16),
        ("qk_rope_head_dim", 8),
        ("v_head_dim", 16),
    ):
        if arch.get(name):
            facts[name] = min(size, int(arch[name]))
    if arch.get("kv_lora_rank"):
        facts["num_key_value_heads"] = facts["num_attention_heads"]
        facts.pop("head_dim", None)
    for name in ("tie_word_embeddings", "rms_norm_eps", "rope_theta", "norm_topk_prob"):
        if isinstance(arch.get(name), (bool, int, float)):
            facts[name] = arch[name]
    return facts


def texts(rows: int, seed: int) -> list[str]:
    """Sentences with a pattern that a tiny model can learn in a few steps."""
    draw = random.Random(seed)
    return [
        " ".join(draw.choice(_THINGS) for _ in range(3)) + f" {n} counts {n + 1} then {n + 2} then {n + 3}."
        for n in range(rows)
    ]


def make_tokenizer(folder: Path, vocab_size: int = 512) -> int:
    """A byte-level BPE tokenizer trained on the data's own sentences; returns its number of tokens."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=max(vocab_size, 256 + len(SPECIAL)),
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts(256, 0), trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<pad>",
        unk_token="<|endoftext|>",
        model_max_length=4096,
    )
    fast.chat_template = CHAT
    fast.save_pretrained(folder)
    return len(fast)


def make_model(model: dict[str, Any], folder: Path, seed: int = 0) -> dict[str, Any]:
    """A random checkpoint in bf16 under ``folder``; returns what was made.

    ``model`` holds ``arch`` (facts in Hugging Face's words), ``class`` or ``model_type``, and perhaps ``layers``,
    ``hidden_size``, ``vocab_size``. Raises ``ValueError`` for a class that the installed transformers does not have.
    """
    import torch
    import transformers

    arch = dict(model.get("arch") or {})
    folder.mkdir(parents=True, exist_ok=True)
    vocab = make_tokenizer(folder, int(model.get("vocab_size") or 512))
    named, kind = model.get("class"), model.get("model_type") or arch.get("model_type")
    if named:
        made = getattr(transformers, named, None)
        if made is None:
            raise ValueError(f"transformers {transformers.__version__} has no class {named}")
        config = made.config_class()
    elif kind:
        made, config = transformers.AutoModelForCausalLM, transformers.AutoConfig.for_model(kind)
    else:
        raise ValueError("a tiny model needs its class or its model_type")
    facts = shrink(arch, int(model.get("layers") or 2), int(model.get("hidden_size") or 64))
    experts = facts.pop("num_experts", None)
    if experts:
        name = next((name for name in _EXPERTS if hasattr(config, name)), "num_experts")
        facts[name] = experts
    facts |= {
        "vocab_size": -(-vocab // 64) * 64,
        "max_position_embeddings": 4096,
        "bos_token_id": None,
        "eos_token_id": SPECIAL.index("<|im_end|>"),
        "pad_token_id": SPECIAL.index("<pad>"),
        "torch_dtype": "bfloat16",
    }
    config = type(config)(**_merged(config, facts))
    torch.manual_seed(seed)
    network = made.from_config(config) if made is transformers.AutoModelForCausalLM else made(config)
    network = network.to(torch.bfloat16)
    network.save_pretrained(folder)
    return {"class": type(network).__name__, "parameters": sum(p.numel() for p in network.parameters()), **facts}


def _merged(config: Any, facts: dict[str, Any]) -> dict[str, Any]:
    """The class's own defaults with our facts; what lists one entry a layer is left to the class."""
    default = {
        key: value
        for key, value in config.to_dict().items()
        if key not in ("layer_types", "model_type", "architectures", "transformers_version", "head_dim", "dtype")
    }
    return {**default, **facts}


def make_data(data: dict[str, Any], folder: Path) -> Path:
    """Small data in the form the job asks for: ``text``, ``instruction``, ``pairs``, ``prompts``; returns the folder.

    JSON for LLaMA-Factory (with ``dataset_info.json``), JSON Lines for MindSpeed, Parquet for verl.
    """
    folder.mkdir(parents=True, exist_ok=True)
    kind, name = data.get("kind", "instruction"), data.get("name") or "recipe_data"
    rows, seed = int(data.get("rows") or 64), int(data.get("seed") or 0)
    sentences = texts(rows, seed)
    if kind == "text":
        records: list[dict[str, Any]] = [{"text": f"{text} {text}"} for text in sentences]
        entry: dict[str, Any] = {"columns": {"prompt": "text"}}
    elif kind == "instruction":
        records = [
            {"instruction": "Go on counting.", "input": str(n), "output": text} for n, text in enumerate(sentences)
        ]
        entry = {}
    elif kind == "pairs":
        records = [
            {"instruction": "Go on counting.", "input": str(n), "chosen": text, "rejected": text[::-1]}
            for n, text in enumerate(sentences)
        ]
        entry = {
            "ranking": True,
            "columns": {"prompt": "instruction", "query": "input", "chosen": "chosen", "rejected": "rejected"},
        }
    elif kind == "prompts":
        records = [
            {"problem": f"What is {n} + {n + 1}?", "prompt": f"What is {n} + {n + 1}?", "labels": str(2 * n + 1)}
            for n in range(rows)
        ]
        entry = {"columns": {"prompt": "problem", "response": "labels"}}
        _parquet(records, folder)
    else:
        raise ValueError(f"no data of kind {kind} can be made")
    (folder / f"{name}.json").write_text(json.dumps(records, ensure_ascii=False, indent=0), encoding="utf-8")
    (folder / f"{name}.jsonl").write_text(
        "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), encoding="utf-8"
    )
    info = {name: {"file_name": f"{name}.json", **entry}}
    (folder / "dataset_info.json").write_text(json.dumps(info, indent=2), encoding="utf-8")
    return folder


def _parquet(records: list[dict[str, Any]], folder: Path) -> None:
    """``train.parquet`` and ``test.parquet`` with the columns that verl's data set and its gsm8k score read."""
    import pyarrow
    import pyarrow.parquet

    rows = [
        {
            "data_source": "openai/gsm8k",
            "prompt": [{"role": "user", "content": record["problem"]}],
            "ability": "math",
            "reward_model": {"style": "rule", "ground_truth": record["labels"]},
            "extra_info": {"index": number},
        }
        for number, record in enumerate(records)
    ]
    for name in ("train", "test"):
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), folder / f"{name}.parquet")


def prepare(plan: dict[str, Any], folder: Path) -> None:
    """Makes ``model/`` (a tiny one only) and ``data/`` under ``folder``, or where the plan's ``path`` says."""
    model, data = plan.get("model") or {}, plan.get("data") or {}
    if model.get("kind") == "tiny":
        made = make_model(model, folder / (model.get("path") or "model"))
        (folder / "tiny.json").write_text(json.dumps(made, indent=2), encoding="utf-8")
    if data.get("kind"):
        make_data(data, folder / (data.get("path") or "data"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--plan", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    prepare(json.loads(options.plan.read_text(encoding="utf-8")), options.out)
