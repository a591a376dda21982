"""Tables of facts that others read from the official examples, column by column, against what our reader says.

A cell agrees when any launch of its file gives the value; a column given for which we have no fact at all disagrees.
Models are compared where the name is one of ours: the others are counted.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ascend_compat.matrix.names import Names

Facts = Mapping[str, Any]
Column = str | Callable[[Facts, str], bool]
PATHS = ("script", "config", "file")
# columns that tell how a table was made or how a file is written, and nothing a job states
REMARKS = frozenset(
    (
        *("resolved", "notes", "framework_check", "kind", "algorithm", "compose", "own_validation", "resolution"),
        *("bash_constructs", "launcher", "launcher_scripts", "hardware", "mismatch", "train_backend", "parser_live"),
        *("devices_implied", "engine", "parallel", "deepspeed_file"),
    )
)
# words of a task and of a list of features -> whether a launch is or has it
_TASKS: dict[str, Callable[[Facts], Any]] = {
    "pretrain": lambda facts: facts.get("training_job") and facts.get("stage") is None,
    "full-sft": lambda facts: facts.get("stage") == "sft" and facts.get("finetuning_type") == "full",
    "lora-sft": lambda facts: facts.get("stage") == "sft" and facts.get("finetuning_type") == "lora",
    "inference": lambda facts: str(facts.get("entry")).startswith("inference"),
    "evaluate": lambda facts: str(facts.get("entry")).startswith("evaluation"),
    "ckpt-convert": lambda facts: facts.get("conversion_job") or "_ckpt_" in str(facts.get("entry")),
    "data": lambda facts: facts.get("data_job"),
}
_WORDS: dict[str, Callable[[Facts], Any]] = {
    **_TASKS,
    "bf16": lambda facts: facts.get("bf16"),
    "fp16": lambda facts: facts.get("fp16"),
    "flash-attn": lambda facts: facts.get("flash_attention"),
    "grouped-gemm": lambda facts: facts.get("moe_grouped_gemm"),
    "dist-optim": lambda facts: facts.get("distributed_optimizer"),
    "hf2mg-online": lambda facts: facts.get("online_hf_load"),
    "sp": lambda facts: facts.get("sequence_parallel"),
    "recompute": lambda facts: facts.get("recompute_granularity"),
    "recompute-act": lambda facts: facts.get("recompute_activation_function"),
    "reuse-fp32-param": lambda facts: facts.get("reuse_fp32_param"),
    "swap-optimizer": lambda facts: facts.get("swap_optimizer"),
    "swap-attention": lambda facts: facts.get("swap_attention"),
    "mla": lambda facts: facts.get("mla"),
    "dsa": lambda facts: facts.get("dsa"),
    "mhc": lambda facts: facts.get("mhc"),
    "mtp": lambda facts: (facts.get("mtp_num_layers") or 0) > 0,
    "moe-a2a-overlap": lambda facts: facts.get("moe_alltoall_overlap"),
    "moe-fb-overlap": lambda facts: facts.get("moe_fb_overlap"),
    "moe-zero-memory": lambda facts: facts.get("moe_zero_memory"),
    "tp-extend-ep": lambda facts: facts.get("moe_tp_extend_ep"),
    "overlap-grad-reduce": lambda facts: facts.get("overlap_grad_reduce"),
    "overlap-param-gather": lambda facts: facts.get("overlap_param_gather"),
    "dynamic-length": lambda facts: facts.get("dynamic_length") or facts.get("variable_seq_lengths"),
    "reset-attention-mask": lambda facts: facts.get("reset_attention_mask"),
    "neat-pack": lambda facts: facts.get("neat_pack"),
    "pack-data": lambda facts: facts.get("pack"),
    "lora": lambda facts: facts.get("finetuning_type") == "lora",
    "coc": lambda facts: facts.get("ascend_coc"),
    "mc2": lambda facts: facts.get("ascend_mc2"),
    "no-gloo": lambda facts: facts.get("disable_gloo_group") or facts.get("gloo_disabled"),
    "dualpipev": lambda facts: facts.get("pipeline_schedule") == "dualpipev",
}
_PAIRS: dict[str, Callable[[Facts], Any]] = {
    "stage": lambda facts: facts.get("stage"),
    "dispatcher": lambda facts: facts.get("moe_token_dispatcher"),
    "etp": lambda facts: facts.get("expert_tensor_parallel"),
    "experts": lambda facts: f"{facts.get('num_experts')}/top{facts.get('moe_router_topk')}",
    "noop": lambda facts: _text(facts.get("noop_layers")),
    "layer-list": lambda facts: _text(facts.get("num_layer_list")),
    "cp-algo": lambda facts: facts.get("context_parallel_algo"),
}


_NO_FACT = frozenset(("o2-optimizer", "cp-send-recv-overlap"))


def _features(facts: Facts, wanted: str) -> bool:
    """Every word of a list of features holds."""
    for word in wanted.split(";"):
        name, equals, value = word.partition("=")
        if equals:
            if str(_PAIRS[name](facts)) != value:
                return False
        elif word not in _NO_FACT and not _WORDS[word](facts):
            return False
    return True


def _packing(facts: Facts, wanted: str) -> bool:
    if facts.get("trainer_backend") == "v1" or facts.get("use_v1"):
        return bool((facts.get("batching_strategy") or "normal") == wanted)
    said = wanted.replace("(pt)", "").split()[-1].lower()
    return bool(facts.get("packing")) == (said == "true") or facts.get("packing") is None


def _attention(facts: Facts, wanted: str) -> bool:
    found = facts.get("attention_implementation")
    return found == wanted.split()[0] or (found is None and "default" in wanted)


def _file(fact: str) -> Callable[[Facts, str], bool]:
    return lambda facts, wanted: str(facts.get(fact)).rpartition("/")[2] == wanted


def _algorithm(facts: Facts, wanted: str) -> bool:
    """``GRPO+gspo``: the algorithm, or the way its policy is trained; words about the entry are not compared."""
    words = {word.lower() for word in wanted.split("+")} - {"fully_async", "one_step_off", "lora"}
    names = {facts.get("rl_algorithm"), facts.get("advantage_estimator"), facts.get("policy_loss_mode")}
    return bool(words & names) and ("LoRA" not in wanted or facts.get("finetuning_type") == "lora")


def _engine_config(facts: Facts, wanted: str) -> bool:
    """The configuration a launch starts from: its name, or the engine chosen on its command line."""
    if wanted.startswith("model_engine="):
        return wanted.partition("=")[2] in (facts.get("shipped_configs") or ())
    name = facts.get("config_name") or "ppo_trainer"
    return str(name).removesuffix(".yaml") in (wanted.removesuffix(".yaml"), "ppo_trainer")


COLUMNS: dict[str, dict[str, Column]] = {
    "MindSpeed-LLM": {
        "task": lambda facts, wanted: bool(_TASKS[wanted](facts)),
        "entry": lambda facts, wanted: str(facts.get("entry")).rpartition("/")[2] == wanted.rpartition("/")[2],
        "TP": "tensor_parallel",
        "PP": "pipeline_parallel",
        "CP": "context_parallel",
        "EP": "expert_parallel",
        "VPP": "virtual_pipeline_chunks",
        "layers_per_vpp_chunk": "virtual_pipeline_layers",
        "nodes": "nnodes",
        "DP": "data_parallel",
        "seq": "seq_length",
        "mbs": "micro_batch_size",
        "gbs": "global_batch_size",
        "micro_batches": "num_micro_batches",
        "layers": "num_layers",
        "features": _features,
    },
    "verl": {
        "module": "entry",
        "algorithm": _algorithm,
        "config_name": _engine_config,
        "adv_estimator": "advantage_estimator",
        "loss_mode": "policy_loss_mode",
        "train_backend": "training_backend",
        "use_dynamic_bsz": "dynamic_batch",
        "trainer_device_in_file": "device_type",
    },
    "MindSpeed-RL": {
        "algorithm": _algorithm,
        "train_backend": lambda facts, wanted: str(facts.get("training_backend")) in wanted.lower(),
        "num_npus": "actor_devices",
        "cp_algo": "context_parallel_algo",
        "train_data_parallel": "data_parallel",
        "mini_batch_size": "ppo_mini_batch_size",
        "use_remove_padding": "padding_free",
        "recompute": "recompute_granularity",
        "vpp_layers": "virtual_pipeline_layers",
    },
    "LLaMA-Factory": {
        "deepspeed_file": _file("deepspeed"),
        "engine": lambda facts, wanted: (facts.get("trainer_backend") == "v1") == (wanted == "v1"),
        "quantization_bits": "quantization_bit",
        "cutoff_len": "seq_length",
        "grad_accum": "gradient_accumulation_steps",
        "template": "chat_template",
        "packing": _packing,
        "attention": _attention,
    },
}
_UNSTATED = "-"


@dataclass(slots=True)
class Agreement:
    """Cells that agree and cells compared, by column; a line for each that differs; rows whose file gave no launch."""

    agreed: Counter[str] = field(default_factory=Counter)
    compared: Counter[str] = field(default_factory=Counter)
    differing: list[str] = field(default_factory=list)
    rows: int = 0
    without_launch: list[str] = field(default_factory=list)
    other_models: set[str] = field(default_factory=set)

    def as_dict(self) -> dict[str, Any]:
        """The counts as a report shows them."""
        return {
            "expected_rows": self.rows,
            "expected_without_launch": self.without_launch,
            "agreement": {name: f"{self.agreed[name]}/{self.compared[name]}" for name in self.compared},
            "models_not_ours": sorted(self.other_models),
            "differing": self.differing,
        }


def compare(repo: str, found: Mapping[str, Iterable[Facts]], table: Path, names: Names) -> Agreement:
    """``table`` (tab-separated) against the facts of each file's launches; ``names`` knows our models."""
    lines = [line for line in table.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    result = Agreement()
    columns = COLUMNS[repo]
    for row in csv.DictReader(lines, delimiter="\t"):
        name = next(row[key] for key in PATHS if key in row)
        if not name:
            continue
        result.rows += 1
        launches = list(found.get(name, ()))
        if not launches:
            result.without_launch.append(name)
            continue
        for column, wanted in row.items():
            if not wanted or wanted == _UNSTATED or column in PATHS or (column in REMARKS and column not in columns):
                continue
            if column == "model":
                _models(result, name, launches, wanted, names)
                continue
            result.compared[column] += 1
            if any(_agrees(columns.get(column, column), facts, wanted) for facts in launches):
                result.agreed[column] += 1
            else:
                told = columns.get(column, column)
                value = launches[0].get(told) if isinstance(told, str) else "otherwise"
                result.differing.append(f"{name}: {column} is {value!r}, expected {wanted}")
    return result


def _models(result: Agreement, name: str, launches: list[Facts], wanted: str, names: Names) -> None:
    """Compares the model, where the launch states one and the name is one of ours."""
    match = names.model(wanted)
    stated = [facts for facts in launches if facts.get("(model)") or facts.get("model") or facts.get("model_path")]
    if match is None:
        result.other_models.add(wanted)
    if match is None or not stated:
        return
    result.compared["model"] += 1
    if any(facts["(model)"] == match.id for facts in stated):
        result.agreed["model"] += 1
    else:
        result.differing.append(f"{name}: model is {stated[0]['(model)']!r}, expected {wanted}")


def _agrees(column: Column, facts: Facts, wanted: str) -> bool:
    return _same(facts.get(column), wanted) if isinstance(column, str) else column(facts, wanted)


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _same(value: Any, wanted: str) -> bool:
    if isinstance(value, bool) or value is None:
        return str(value).lower() == wanted.lower()
    if isinstance(value, (int, float)):
        try:
            return float(value) == float(wanted.split()[0])
        except ValueError:
            return False
    return _text(value).lower() == wanted.lower()
