"""From an example of a rule to what a framework's own code is given: words, mappings, environment, files.

A setting is JSON; the prover of the framework (``prove_<framework>.py``) says what it holds. Examples no key of the
framework can state have none.
"""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

from ascend_compat.check.examples import Example, job_text
from ascend_compat.errors import CompatError
from ascend_compat.jobs.render import settings_of, tree
from ascend_compat.matrix.predicates import names_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascend_compat.check.engine import Engine


def setting_of(engine: Engine, example: Example) -> dict[str, Any] | None:
    """What the framework is given for an example; None where its keys cannot say it."""
    body = engine.con.execute("SELECT body FROM rule_base WHERE framework = ?", [example.framework]).fetchone()
    base = json.loads(body[0]) if body else {}
    if example.body.get("base"):
        base = {**base, **base["bases"][example.body["base"]]}
    given = dict(example.body)
    if "job" not in given:
        spec = engine.spec(example.framework)
        if spec is None:
            return None
        facts = dict(given.get("facts") or {})
        given["outside"] = {name: facts.pop(name) for name in _OUTSIDE.get(example.framework, ()) if name in facts}
        read = engine.con.execute(
            "SELECT any_value(when_sql), any_value(requires_sql) FROM rule WHERE id = ?", [example.rule]
        ).fetchall()[0]
        mentioned = names_in(f"{read[0] or ''} {read[1]}") - facts.keys()
        given["mentioned"] = mentioned
        given["unset"] = [
            key.name
            for key in spec.keys.values()
            if key.fact in mentioned
            and f"{key.name}=" in str(base.get("job"))
            and spec.default(key, example.version)[1] is None
        ]
        try:
            given["settings"] = settings_of(spec, example.version, facts)
        except CompatError:
            return None
    return _FORMS[example.framework](base, given) if example.framework in _FORMS else None


def _megatron(base: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any] | None:
    facts = {**base.get("facts", {}), **given.get("facts", {})}
    job = given.get("job")
    if job is None and str(facts.get("entry", "")).startswith(("convert", "preprocess")):
        return None
    if job is None and any(key.startswith("env:") for key in given["settings"]):
        return None  # the environment is none of the parser's
    if job is None:
        job = " ".join(
            " ".join(
                [
                    key,
                    *(
                        []
                        if value is True
                        else [_text(item) for item in (value if isinstance(value, list) else [value])]
                    ),
                ]
            )
            for key, value in given["settings"].items()
        )
    text = job_text("mindspeed-llm", base, {"job": job})
    *exports, launch = [line for line in text.splitlines() if line.strip()]
    words = shlex.split(launch)
    entry = next(number for number, word in enumerate(words) if word.endswith(".py"))
    env = dict(line.removeprefix("export ").split("=", 1) for line in exports)
    world = int(facts.get("devices_per_node", 8)) * int(facts.get("nnodes", 1))
    return {"argv": words[entry + 1 :], "world": world, "env": env, "entry": words[entry]}


def _text(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


_OUTSIDE = {
    "llamafactory": (
        "launcher",
        "world_size",
        "has_bf16",
        "chip",
        "model_type",
        "num_hidden_layers",
        "devices_visible",
        "command",
    ),
    "verl": (
        "num_attention_heads",
        "num_key_value_heads",
        "max_position_embeddings",
        "entry",
        "unknown_policy_loss_keys",
        "unknown_struct_keys",
        "plus_on_existing_keys",
    ),
    "mindspeed-rl": (
        "num_hidden_layers",
        "num_attention_heads",
        "nnodes",
        "has_reference_resource",
        "has_reward_resource",
        "has_ref_config",
        "has_reward_config",
        "has_integrated_mode_config",
        "has_critic_config",
        "unknown_keys",
        "unknown_resource_keys",
        "unknown_sampling_keys",
        "devices_per_node",
    ),
}


def _llamafactory(base: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    said = {**given["settings"], **given.get("job", {})} if "job" not in given else given["job"]
    args = {**base.get("job", {}), **{key: value for key, value in said.items() if ":" not in key}}
    if args.get("stage") == "ppo" and "facts" in given:
        args.setdefault("reward_model", "r")
    env = {key.removeprefix("env:"): value for key, value in said.items() if key.startswith("env:")}
    config = {
        key.removeprefix("deepspeed-json:"): value for key, value in said.items() if key.startswith("deepspeed-json:")
    }
    if config:
        sizes = dict.fromkeys(
            ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"), "auto"
        )
        args["deepspeed"] = {"zero_optimization": {"stage": 2}, **(sizes if "facts" in given else {}), **tree(config)}
    sharding = "accelerate-yaml:fsdp_config.fsdp_"
    sharded = {key.removeprefix(sharding): value for key, value in said.items() if key.startswith(sharding)}
    if sharded:
        args |= {"fsdp": "full_shard", "fsdp_config": sharded}
    args = {key: value for key, value in args.items() if value is not None}
    _consistent(args)
    if args.get("report_to") is None:
        args["report_to"] = "none"
    outside = given.get("outside", {})
    several = {"FORCE_TORCHRUN", "USE_MEGATRON_BRIDGE", "USE_MCA", "NPROC_PER_NODE"} & env.keys()
    launcher = outside.get("launcher") or (
        "torchrun" if several or args.get("deepspeed") or args.get("fsdp") else "python"
    )
    world = outside.get("world_size") or int(env.get("NPROC_PER_NODE", 1)) * int(env.get("NNODES", 1))
    model = {**outside}
    name = str(args.get("model_name_or_path", "")).upper()
    for method in ("GPTQ", "AWQ", "AQLM", "FP8"):
        if method in name:
            model["quant_method"] = method.lower()
    return {"args": args, "env": env, "launcher": launcher, "world": world, "model": model}


def _consistent(args: dict[str, Any]) -> None:
    """What an example of one fact leaves open follows it: sizes of a DeepSpeed file, numbers that facts keep as text."""
    config = args.get("deepspeed")
    if isinstance(config, str) and "/" not in config:
        args["deepspeed"] = f"examples/deepspeed/{config}"
    if args.get("flash_attn") == "true":
        args["flash_attn"] = "fa2"
    if not isinstance(config, dict):
        return
    micro, accumulated = config.get("train_micro_batch_size_per_gpu"), config.get("gradient_accumulation_steps")
    if isinstance(micro, int) and isinstance(accumulated, int) and isinstance(config.get("train_batch_size"), int):
        args.update(per_device_train_batch_size=micro, gradient_accumulation_steps=accumulated)
    params = config.get("optimizer", {}).get("params", {})
    if "betas" in params:
        params["betas"] = [float(text) for text in params["betas"]]
        config["optimizer"].setdefault("type", "AdamW")


# facts that count names -> settings that have so many of them
_COUNTED = {
    "unknown_policy_loss_keys": "+actor_rollout_ref.actor.policy_loss.not_a_key{}=1",
    "unknown_struct_keys": "actor_rollout_ref.not_a_key{}=1",
    "plus_on_existing_keys": "+data.train_batch_size=64",
}


def _verl(base: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any] | None:
    words = shlex.split(base.get("job", ""))
    job = given.get("job")
    if isinstance(job, str):
        words += shlex.split(job)
    said = job if isinstance(job, dict) else given.get("settings", {})
    if any(key.startswith("env:") for key in said):
        return None  # the environment is none of hydra's
    outside = given.get("outside", {})
    for name, form in _COUNTED.items():
        words += [form.format(number) for number in range(outside.get(name, 0))]
    config = str(said.get("--config-name", "ppo_trainer")).removesuffix(".yaml")
    module = outside.get("entry", base.get("entry", "verl.trainer.main_ppo"))
    if "fully_async" in module and "--config-name" not in said:
        config = "fully_async_ppo_trainer"
    if job is None:
        words += _verl_follows(given["facts"], given["mentioned"], "fully_async" in module)
        if given["facts"].get("training_backend") == "megatron":
            said = {key.replace("actor.fsdp_config.", "actor.megatron."): value for key, value in said.items()}
    words += [f"{_appended(key)}{key}={_hydra(value)}" for key, value in said.items() if not key.startswith("--")]
    words += [f"{key}=null" for key in given.get("unset", ())]
    last = {word.split("=", 1)[0]: word for word in words}
    return {"overrides": list(last.values()), "config": config, "module": module, "model": outside}


def _appended(key: str) -> str:
    """``++`` for names that the composed configuration need not hold."""
    return "++" if ".engine_kwargs." in key or key.endswith(".moe_tensor_parallel_size") else ""


def _verl_follows(facts: Mapping[str, Any], mentioned: set[str], is_fully: bool) -> list[str]:
    """Overrides that an example of a few facts leaves open, so that only what it is about is judged."""
    words = []
    if facts.get("critic_enabled") and "critic_micro_batch_size_per_gpu" not in mentioned:
        words.append("critic.ppo_micro_batch_size_per_gpu=2")
    for name, role in (("ppo_micro_batch_size", "actor_rollout_ref.actor"), ("critic_micro_batch_size", "critic")):
        if facts.get(name) is not None:
            words.append(f"{role}.ppo_micro_batch_size_per_gpu=null")
    if is_fully:
        words += ["actor_rollout_ref.hybrid_engine=False", "data.train_batch_size=0", "data.gen_batch_size=1"]
        words.append("actor_rollout_ref.rollout.calculate_log_probs=True")
    if facts.get("trainer_mode") == "separate_async":
        rollout = "actor_rollout_ref.rollout"
        words += [f"{rollout}.nnodes=1", f"{rollout}.n_gpus_per_node=8", f"{rollout}.checkpoint_engine.backend=nccl"]
        words += ["data.train_batch_size=64", "trainer.v1.separate_async.parameter_sync_step=4"]
    if facts.get("training_backend") == "megatron":
        words.append("model_engine=megatron")
    return words


def _hydra(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ",".join(_hydra(item) for item in value) + "]"
    return "null" if value is None else _text(value)


def _mindspeed_rl(base: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    job: dict[str, Any] = json.loads(json.dumps(base.get("job") or {}))
    outside = given.get("outside", {})
    _lay(job, given["job"] if "job" in given else tree(given["settings"]))
    training, rl, actor = job["megatron_training"], job["rl_config"], job["actor_config"]
    stage, shared = training.get("stage"), rl.get("use_integrated_worker", True)
    if not shared:
        for role, resource in (("ref", "reference"), ("reward", "reward")):
            if outside.get(f"has_{role}_config", True):
                job[f"{role}_config"] = {**actor, **job.get(f"{role}_config", {})}
            rl.setdefault(f"{resource}_resource", {"num_npus": 8})
    for role in ("ref", "reward"):
        if shared and outside.get(f"has_{role}_config"):
            job[f"{role}_config"] = dict(actor)
    for resource in ("reference", "reward"):
        if shared and outside.get(f"has_{resource}_resource"):
            rl[f"{resource}_resource"] = {"num_npus": 8}
    if outside.get("has_integrated_mode_config"):
        rl["integrated_mode_config"] = {"ref_max_packing_token_size": 1}
    if stage == "ray_ppo" and outside.get("has_critic_config", True):
        job["critic_config"] = {**actor, **job.get("critic_config", {})}
        rl.setdefault("critic_resource", {"num_npus": rl["actor_resource"]["num_npus"]})
    if outside.get("unknown_keys"):
        actor["not_a_key"] = 1
    if outside.get("unknown_resource_keys"):
        rl["actor_resource"]["not_a_key"] = 1
    if outside.get("unknown_sampling_keys"):
        job["generate_config"].setdefault("sampling_config", {})["not_a_key"] = 1
    if "facts" in given:
        _follow(job, given["facts"])
    return {"job": job, "nodes": outside.get("nnodes", 1), "model": outside}


def _follow(job: dict[str, Any], facts: Mapping[str, Any]) -> None:
    """Settings that an example of a few facts leaves open, so that only what it is about is judged."""
    rl, actor, generate = job["rl_config"], job["actor_config"], job["generate_config"]
    if facts.get("padding_free"):
        for name in ("reset_attention_mask", "no_pad_to_seq_lengths"):
            if name not in facts:
                actor[name] = True
    if facts.get("overlong_buffer_on") and "overlong_max_tokens" not in facts:
        rl["rollout_max_tokens"] = generate["sampling_config"]["max_tokens"]
    if facts.get("overlong_buffer_on") and "overlong_buffer" not in facts:
        rl["overlong_buffer"] = 1
    if facts.get("filter_groups"):
        rl.setdefault("filter_groups_train_batch_size", job["megatron_training"]["global_batch_size"])
        if "filter_groups_metric" not in facts:
            rl |= {"filter_groups_metric": "acc", "verifier_function": ["acc"], "verifier_weight": [1.0]}
    if "verifier_functions" in facts and "verifier_weights" not in facts:
        rl["verifier_weight"] = [1.0] * len(facts["verifier_functions"])
    if "verifier_weights" in facts:
        rl["verifier_weight"] = [float(text) for text in facts["verifier_weights"]]
    if "num_layer_list" in facts:
        actor["num_layer_list"] = ",".join(map(str, facts["num_layer_list"]))
    if "seq_length" in facts and "max_model_len" not in facts:
        generate["max_model_len"] = facts["seq_length"]
    if facts.get("share_backbone") and "lora_target_modules" not in facts and facts.get("stage") is not None:
        actor["lora_target_modules"] = ["linear_qkv"]
    if "expert_parallel" in facts and "rollout_expert_parallel" not in facts:
        generate["infer_expert_parallel_size"] = facts["expert_parallel"] * facts.get("tensor_parallel", 1)
    if facts.get("multi_turn"):
        rl.setdefault("max_total_response_length", 65536)
        if "rollout_async" not in facts:
            rl["async_engine"] = True


def _lay(base: dict[str, Any], over: Mapping[str, Any]) -> None:
    for key, value in over.items():
        if isinstance(value, dict) and isinstance(base.get(key), dict):
            _lay(base[key], value)
        else:
            base[key] = value


_FORMS = {"mindspeed-llm": _megatron, "llamafactory": _llamafactory, "verl": _verl, "mindspeed-rl": _mindspeed_rl}
