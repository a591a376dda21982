"""verl's own configuration: composed by hydra, validated as its entry does, then the checks of its trainers and engines.

Argument: a checkout. A setting is ``{overrides, config, module, model}``. Heavy packages are stubs; the model is not loaded.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.metadata
import os
import sys
from types import SimpleNamespace as Space
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import torch
from prove_statements import run
from prove_worker import serve, stub

ROOT = ""
FULLY_ASYNC = "verl/experimental/fully_async_policy/fully_async_rollouter.py"


def load(root: str) -> None:
    """Import the parts of verl that hold its checks."""
    global ROOT
    ROOT = root
    sys.path.insert(0, root)
    stub(
        "ray",
        "PIL",
        "datasets",
        "orjson",
        "vllm",
        "sglang",
        "codetiming",
        "torchdata",
        "pylatexenc",
        "wandb",
        "liger_kernel",
        "flash_attn",
        "uvicorn",
        "fastapi",
        "aiohttp",
        "torchvision",
        "transfer_queue",
        "cachetools",
        "zmq",
        "peft",
        "dill",
        "mbridge",
        "msgspec",
        "qwen_vl_utils",
    )
    version = importlib.metadata.version
    importlib.metadata.version = lambda name: "0.18.0" if name == "vllm" else version(name)
    sys.modules["vllm.config.lora"] = None  # type: ignore[assignment]  # then verl takes its own list of ranks
    import verl.trainer.ppo.core_algos
    import verl.trainer.ppo.utils
    import verl.utils.config
    import verl.workers.config
    from verl.workers.config import HFModelConfig

    HFModelConfig.__post_init__ = lambda self: None
    import verl.workers.engine.base
    from verl.workers.rollout import base

    register()
    torch.set_num_threads(1)


def check(setting: dict[str, Any]) -> None:
    """Compose and validate one job."""
    from hydra import compose, initialize_config_dir
    from omegaconf import OmegaConf, open_dict
    from verl.trainer.ppo.utils import need_critic, need_reference_policy
    from verl.utils.config import omega_conf_to_dataclass, validate_config

    module = setting["module"]
    folder = {
        "fully": "verl/experimental/fully_async_policy/config",
        "one_s": "verl/experimental/one_step_off_policy/config",
    }
    place = next((path for name, path in folder.items() if f".{name}" in module), "verl/trainer/config")
    os.chdir(ROOT)
    with initialize_config_dir(config_dir=os.path.join(ROOT, place), version_base=None):
        config = compose(config_name=setting["config"], overrides=setting["overrides"])
    OmegaConf.resolve(config)
    is_fully = ".fully" in module
    if not is_fully:
        validate_config(config, need_reference_policy(config), need_critic(config))
    role = config.actor_rollout_ref
    omega_conf_to_dataclass(role.rollout)
    actor = omega_conf_to_dataclass(role.actor)
    if need_critic(config):
        omega_conf_to_dataclass(config.critic)
    npu = True  # the entry itself takes npu for the device where torch_npu is
    with open_dict(config):
        _algorithms(config, actor)
        _workers(config, actor, setting["model"], npu)
        _trainers(config, module, is_fully, npu)


def _algorithms(config: Any, actor: Any) -> None:
    """Advantage, loss, KL: the functions a step of training calls, over three tokens."""
    import numpy as np
    from verl.trainer.ppo import core_algos

    name = config.algorithm.adv_estimator
    advantage = core_algos.get_adv_estimator_fn(name)
    count = int(config.actor_rollout_ref.rollout.n)
    if name == "grpo_passk":
        advantage(torch.rand(count, 3), torch.ones(count, 3), np.zeros(count), config=config.algorithm)
    mode = actor.policy_loss.get("loss_mode", "vanilla")
    loss = core_algos.get_policy_loss_fn(mode)
    ones = torch.ones(2, 3)
    if mode in ("vanilla", "dro"):
        loss(
            old_log_prob=ones,
            log_prob=ones * 1.1,
            advantages=ones,
            response_mask=ones,
            loss_agg_mode=actor.loss_agg_mode,
            config=actor,
        )
    if actor.use_kl_loss:
        core_algos.kl_penalty(logprob=ones, ref_logprob=ones, kl_penalty=actor.kl_loss_type)
    if config.algorithm.use_kl_in_reward:
        core_algos.get_kl_controller(config.algorithm.kl_ctrl)


def _workers(config: Any, actor: Any, model: dict[str, Any], npu: bool) -> None:
    """Checks of the workers that train and generate."""
    from verl.workers.rollout.base import get_rollout_class

    role = config.actor_rollout_ref
    worker = Space(config=role, world_size=config.trainer.nnodes * config.trainer.n_gpus_per_node)
    engine = "verl/workers/engine_workers.py"
    run(ROOT, engine, "init_model", "use_dynamic_bsz == self.config.rollout", {"self": worker})
    run(
        ROOT, engine, "init_model", "log_prob_micro_batch_size_per_gpu is not None", {"self": worker}
    ) if not role.actor.use_dynamic_bsz else None
    ranks = _data_ranks(config, actor)
    mini = role.actor.ppo_mini_batch_size * role.rollout.n
    if ranks:
        run(
            ROOT,
            engine,
            "train_mini_batch",
            "mini_batch_size % self.engine",
            {"mini_batch_size": mini, "self": Space(engine=Space(get_data_parallel_size=lambda: ranks))},
        )
    if ranks and not role.actor.use_dynamic_bsz and role.actor.ppo_micro_batch_size_per_gpu:
        names = {
            "data": {"micro_batch_size_per_gpu": role.actor.ppo_micro_batch_size_per_gpu},
            "total_data_size": mini // ranks,
            "force_group_size": 1,
        }
        run(ROOT, "verl/workers/engine/utils.py", "prepare_micro_batches", "total_data_size %", names, lead=1)
    rollout = role.rollout
    apart = (rollout.get("nnodes") or 0) > 0
    if not apart:
        infer = rollout.tensor_model_parallel_size * rollout.data_parallel_size * rollout.pipeline_model_parallel_size
        run(
            ROOT,
            engine,
            "init_model",
            "self.world_size % infer_world_size",
            {"self": worker, "infer_world_size": infer},
        )
    with contextlib.suppress(ImportError, AttributeError, TypeError):  # the engine's own package
        get_rollout_class(rollout.name, rollout.mode)
    heads = model.get("num_attention_heads"), model.get("num_key_value_heads")
    ulysses = role.actor.fsdp_config.ulysses_sequence_parallel_size if actor.strategy in ("fsdp", "fsdp2") else 1
    ulysses = max(ulysses, role.actor.get("ulysses_sequence_parallel_size", 1) or 1)
    patch = "verl/models/transformers/monkey_patch.py"
    if ulysses > 1:
        for name, count in zip(("num_attention_heads %", "num_key_value_heads %"), heads):
            if count:
                run(
                    ROOT,
                    patch,
                    "apply_monkey_patch",
                    name,
                    {"num_attention_heads": count, "num_key_value_heads": count, "ulysses_sp_size": ulysses},
                )
        names = {
            "self": Space(
                engine_config=Space(ulysses_sequence_parallel_size=ulysses),
                use_remove_padding=role.model.use_remove_padding,
            )
        }
        run(
            ROOT,
            "verl/workers/engine/fsdp/transformer_impl.py",
            "FSDPEngine.__init__",
            "and not self.use_remove_padding",
            names,
        )
    if actor.strategy == "megatron":
        run(
            ROOT,
            "verl/workers/engine/megatron/transformer_impl.py",
            "__init__",
            "self.engine_config.use_mbridge",
            {"self": Space(engine_config=actor.engine)},
        )
    if actor.strategy == "veomni" and ranks:
        run(
            ROOT,
            "verl/workers/engine/veomni/transformer_impl.py",
            "__init__",
            "dp_size % fsdp_size",
            {"dp_size": ranks, "fsdp_size": actor.engine.fsdp_size, "self": Space()},
        ) if 0 <= actor.engine.fsdp_size < ranks else None
    limit = model.get("max_position_embeddings")
    if limit and rollout.name == "vllm" and rollout.max_model_len is not None:
        names = {"self": Space(config=rollout), "max_position_embeddings": limit}
        run(
            ROOT,
            "verl/workers/rollout/vllm_rollout/vllm_async_server.py",
            "_validate_configs",
            "self.config.max_model_len >",
            names,
        )
    if rollout.get("disaggregation") and rollout.disaggregation.enabled and npu and rollout.name == "vllm":
        run(
            ROOT,
            "verl/workers/rollout/vllm_rollout/vllm_pd_replica.py",
            "init_standalone" if False else "vLLMPDReplica",
            "vLLM PD on NPU",
            {"is_torch_npu_available": lambda **_: True},
        )
    _engines(config, actor, npu)
    if getattr(actor, "calculate_sum_pi_squared", False):
        names = {
            "self": Space(
                use_fused_kernels=role.model.use_fused_kernels,
                engine_config=Space(use_fused_kernels=role.model.use_fused_kernels),
            ),
            "calculate_sum_pi_squared": True,
            "use_fused_kernels": role.model.use_fused_kernels,
        }
        run(
            ROOT,
            "verl/workers/engine/fsdp/transformer_impl.py",
            "prepare_model_outputs",
            "calculate_sum_pi_squared and",
            names,
        )


def _data_ranks(config: Any, actor: Any) -> int:
    world = config.trainer.nnodes * config.trainer.n_gpus_per_node
    if actor.strategy in ("megatron", "mindspeed"):
        size = (
            actor.engine.tensor_model_parallel_size
            * actor.engine.pipeline_model_parallel_size
            * actor.engine.context_parallel_size
        )
    else:
        size = getattr(actor.engine, "ulysses_sequence_parallel_size", 1) or 1
    return world // size if world % size == 0 else 0


def register() -> None:
    """Engines and weight transfers are looked up by names that their files register; the files need devices, the names do not."""
    from verl.checkpoint_engine.base import CheckpointEngineRegistry
    from verl.workers.engine.base import BaseEngine, EngineRegistry

    EngineRegistry._engines.clear()
    for folder, wanted, base in (
        ("verl/workers/engine", "EngineRegistry.register", BaseEngine),
        ("verl/checkpoint_engine", "CheckpointEngineRegistry.register", object),
    ):
        for path, _, files in os.walk(os.path.join(ROOT, folder)):
            for name in files:
                if not name.endswith(".py") or name == "base.py":
                    continue
                with open(os.path.join(path, name), encoding="utf-8") as handle:
                    tree = ast.parse(handle.read())
                for node in ast.walk(tree):
                    for call in getattr(node, "decorator_list", ()):
                        if isinstance(call, ast.Call) and ast.unparse(call.func) == wanted:
                            given = {word.arg: ast.literal_eval(word.value) for word in call.keywords}
                            names = [ast.literal_eval(word) for word in call.args]
                            registry = EngineRegistry if base is BaseEngine else CheckpointEngineRegistry
                            registry.register(*names, **given)(type(node.name, (base,), {}))


def _engines(config: Any, actor: Any, npu: bool) -> None:
    import verl.workers.engine.base as engines
    from verl.checkpoint_engine.base import CheckpointEngineRegistry
    from verl.trainer.ppo.utils import need_critic

    engines.get_device_name = lambda: "npu" if npu else "cuda"
    engines.EngineRegistry.get_engine_cls("language_model", actor.strategy)
    if need_critic(config):
        engines.EngineRegistry.get_engine_cls("value_model", config.critic.strategy)
    transfer = config.actor_rollout_ref.rollout.get("checkpoint_engine")
    if transfer is not None and not transfer.get("custom_backend_module"):
        CheckpointEngineRegistry.get(transfer.backend)


def _trainers(config: Any, module: str, is_fully: bool, npu: bool) -> None:
    """Checks of the trainers: pools, filtering, separate and fully asynchronous training."""
    base = "verl/trainer/ppo/v1/trainer_base.py"
    if is_fully:
        for text in ("not self.hybrid_engine", "train_batch_size == 0", "gen_batch_size == 1"):
            run(
                ROOT,
                FULLY_ASYNC,
                "__init__",
                text,
                {"self": Space(config=config, hybrid_engine=config.actor_rollout_ref.hybrid_engine)},
            )
        run(ROOT, FULLY_ASYNC, "_validate_config", "rollout.calculate_log_probs", {"self": Space(config=config)})
        return
    run(
        ROOT,
        base,
        "PPOTrainer",
        "reward_model.n_gpus_per_node must be greater",
        {"config": config, "self": Space(config=config)},
    ) if config.reward.reward_model.enable_resource_pool else None
    run(
        ROOT,
        base,
        "PPOTrainer",
        "reward_model.nnodes must be greater",
        {"config": config, "self": Space(config=config)},
    ) if config.reward.reward_model.enable_resource_pool else None
    if not config.trainer.get("use_v1"):
        return
    groups = config.algorithm.get("filter_groups")
    if groups is not None and groups.enable:
        run(ROOT, base, "_resolve_filter_groups_metric", "metric must be set", {"filter_metric": groups.metric})
    mode = config.trainer.v1.trainer_mode
    names = {"name": mode, "TRAINER_REGISTRY": {"sync": 1, "colocate_async": 1, "separate_async": 1}}
    with open(os.path.join(ROOT, base), encoding="utf-8") as handle:
        function = next(
            node for node in ast.walk(ast.parse(handle.read())) if getattr(node, "name", "") == "get_trainer_cls"
        )
    function.returns = None
    exec(compile(ast.Module(body=[function], type_ignores=[]), os.path.join(ROOT, base), "exec"), names)
    names["get_trainer_cls"](mode)
    if mode == "separate_async":
        separate = "verl/trainer/ppo/v1/trainer_separate_async.py"
        names = {
            "config": config,
            "train_batch_size": config.data.train_batch_size,
            "ppo_mini_batch_size": config.actor_rollout_ref.actor.ppo_mini_batch_size,
            "parameter_sync_step": config.trainer.v1.separate_async.parameter_sync_step,
        }
        for text in (
            "train_batch_size == parameter_sync_step",
            "rollout.nnodes > 0",
            "rollout.n_gpus_per_node > 0",
            'backend != "naive"',
        ):
            run(ROOT, separate, "__init__", text, dict(names))


if __name__ == "__main__":
    checkout = os.path.abspath(sys.argv[1])
    load(checkout)
    serve(check, [checkout, *[path for path in sys.path if path.endswith("site-packages")]], 60.0)
