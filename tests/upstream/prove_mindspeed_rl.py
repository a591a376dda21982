"""MindSpeed-RL's own configuration classes, the parsing of its entries and its validation of RL arguments, on CPU.

Arguments: checkouts of MindSpeed-RL, MindSpeed and Megatron-LM. A setting is ``{job, nodes, model}``. Ray, the logger and the packages of the workers are stand-ins;
checks of workers that need devices run as single functions or statements of their files.
"""

from __future__ import annotations

import ast
import os
import sys
import types
from types import SimpleNamespace as Space
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import torch
import yaml
from omegaconf import OmegaConf
from prove_statements import run
from prove_worker import Stub, serve

ROOT = MINDSPEED = MEGATRON = ""
NODES = {"count": 1}


def load(root: str, mindspeed: str, megatron: str) -> None:
    """Import the configuration classes without the package's heavy front."""
    global ROOT, MINDSPEED, MEGATRON
    ROOT, MINDSPEED, MEGATRON = root, mindspeed, megatron
    for name in ("mindspeed_rl", "mindspeed_rl.utils", "mindspeed_rl.utils.utils"):
        module = types.ModuleType(name)
        module.__path__ = [os.path.join(root, *name.split("."))]
        sys.modules[name] = module
    sys.modules["mindspeed_rl.utils"].Loggers = Stub
    sys.modules["mindspeed_rl.utils.utils"].get_node_nums = lambda: NODES["count"]
    import mindspeed_rl.config_cls


def _function(path: str, name: str, names: dict[str, Any]) -> Any:
    """One function of a file, over stand-ins for what its module imports."""
    file = os.path.join(ROOT, path)
    with open(file, encoding="utf-8") as handle:
        tree = ast.parse(handle.read())
    node = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == name)
    node.returns, node.decorator_list = None, []
    for argument in [*node.args.args, *node.args.kwonlyargs]:
        argument.annotation = None
    exec(compile(ast.Module(body=[node], type_ignores=[]), file, "exec"), names)
    return names[name]


def check(setting: dict[str, Any]) -> None:
    """Parse one job as its entry does, then what workers and trainers check of it."""
    from typing import Any as Anything

    from mindspeed_rl.config_cls.generate_config import GenerateConfig
    from mindspeed_rl.config_cls.megatron_config import MegatronConfig
    from mindspeed_rl.config_cls.mindstudio_config import MsprobeConfig, ProfilerConfig
    from mindspeed_rl.config_cls.rl_config import RLConfig
    from mindspeed_rl.config_cls.validate_config import validate_rl_args

    NODES["count"] = setting["nodes"]
    job, said = setting["job"], setting["model"]
    models: dict[str, Any] = {}
    for entry in job.pop("defaults", []):
        for name in entry.get("model", []) if isinstance(entry, dict) else []:
            with open(os.path.join(ROOT, "configs/model", f"{name}.yaml"), encoding="utf-8") as handle:
                models |= yaml.safe_load(handle)
    job["model"] = models
    stage = job["megatron_training"].get("stage", "ray_grpo")
    entry = {"ray_ppo": "ppo", "ray_dapo": "dapo"}.get(stage, "grpo")
    names = {
        "Dict": dict, "Any": Anything, "MegatronConfig": MegatronConfig, "RLConfig": RLConfig, "GenerateConfig": GenerateConfig,
        "ProfilerConfig": ProfilerConfig, "MsprobeConfig": MsprobeConfig, "validate_rl_args": validate_rl_args,
    }  # fmt: skip
    parsed = _function(f"cli/train_{entry}.py", "parse_training_config", names)(OmegaConf.create(job))
    actor, rl, generate = parsed["actor_config"], parsed["rl_config"], parsed["generate_config"]
    _model(actor, said)
    _workers(actor, rl, generate, said)
    _trainers(job, rl)


def _model(actor: Any, said: dict[str, Any]) -> None:
    """How Megatron and MindSpeed split the model that is trained; of an example that states no heads nothing is asked."""
    heads = said.get("num_attention_heads")
    if not heads:
        return
    size = Space(num_attention_heads=heads, tensor_model_parallel_size=actor.tensor_model_parallel_size)
    config = "megatron/core/transformer/transformer_config.py"
    run(MEGATRON, config, "__post_init__", "self.num_attention_heads % self.tensor_model_parallel_size", {"self": size})
    size.context_parallel_size = actor.context_parallel_size
    size.context_parallel_algo = actor.context_parallel_algo
    size.seq_length = actor.seq_length
    ulysses = "mindspeed/features_manager/context_parallel/ulysses_context_parallel.py"
    run(MINDSPEED, ulysses, "validate_args", "ulysses_cp_algo", {"args": size})


def _workers(actor: Any, rl: Any, generate: Any, said: dict[str, Any]) -> None:
    """How weights move from training to rollout."""
    container = "mindspeed_rl/workers/resharding/vllm_weight_container.py"
    extend = bool(actor.moe_tp_extend_ep)
    tensor, expert = actor.tensor_model_parallel_size, actor.expert_model_parallel_size
    state = Space(
        _num_hidden_layers=said.get("num_hidden_layers") or actor.num_layers,
        _pp_size=actor.pipeline_model_parallel_size,
        _tp_size=tensor,
        _ep_size=tensor * expert if extend else expert,
        _infer_tp_size=generate.infer_tensor_parallel_size,
        _infer_pp_size=generate.infer_pipeline_parallel_size,
        _infer_ep_size=(generate.infer_expert_parallel_size or 1) * generate.infer_tensor_parallel_size,
        _world_size=rl.actor_resource.num_npus,
        moe_tp_extend_ep=extend,
    )
    _function(container, "_build_num_layer_list", {"List": list})(state, actor.num_layer_list)
    _function(container, "_validate_parallel_config", {})(state)


def _trainers(job: dict[str, Any], rl: Any) -> None:
    """Advantage, KL, data transfer and profiling are looked up by name when the first step runs."""
    ones = torch.ones(2, 3)
    _function("mindspeed_rl/utils/compute.py", "compute_kl_penalty", {"torch": torch})(ones, ones, rl.kl_penalty)
    names = {"adv_estimator": rl.adv_estimator, "compute_gae_advantage_return": lambda *_, **__: (ones, ones)}
    if rl.adv_estimator not in ("gae", "group_norm"):
        run(
            ROOT, "mindspeed_rl/trainer/utils/compute_utils.py", "compute_advantage", "raise NotImplementedError", names
        )
    names = {
        "kl_ctrl_type": rl.kl_ctrl_type,
        "init_kl_coef": rl.init_kl_coef,
        "horizon": rl.kl_horizon,
        "kl_horizon": rl.kl_horizon,
        "kl_target": rl.kl_target,
    }
    names |= {
        "FixedKLController": Stub,
        "AdaptiveKLController": Stub,
        "self": Space(init_kl_coef=rl.init_kl_coef, kl_horizon=rl.kl_horizon),
    }
    run(ROOT, "mindspeed_rl/trainer/base.py", "__init__", "if kl_ctrl_type == 'fixed'", names)
    with open(os.path.join(ROOT, "mindspeed_rl/trainer/utils/data_strategy.py"), encoding="utf-8") as handle:
        module = ast.parse(handle.read())
    values: dict[str, Any] = {}
    for node in module.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and "_STRATEGY" in ast.unparse(node):
            if isinstance(node, ast.AnnAssign):
                node.annotation = ast.Constant("")
            exec(compile(ast.Module(body=[node], type_ignores=[]), "data_strategy.py", "exec"), values)
    _function("mindspeed_rl/trainer/utils/data_strategy.py", "_normalize_strategy", values)(
        getattr(rl, "data_strategy", None)
    )
    profiler = (job.get("profiler_config") or {}).get("integrated") or {}
    if profiler.get("profile"):
        _profile({"args": Space(profile_level=profiler.get("profile_level")), "torch_npu": Stub()})


def _profile(names: dict[str, Any]) -> None:
    with open(os.path.join(ROOT, "mindspeed_rl/utils/utils.py"), encoding="utf-8") as handle:
        tree = ast.parse(handle.read())
    owner = next(
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and "args.profile_level ==" in ast.unparse(node)
    )
    run(ROOT, "mindspeed_rl/utils/utils.py", owner, "args.profile_level == 'level_none'", names)


if __name__ == "__main__":
    checkouts = [os.path.abspath(path) for path in sys.argv[1:4]]
    load(*checkouts)
    serve(check, checkouts, 30.0)
