"""verl's own shipped configuration, composed by hydra with the overrides that recipes render."""

from __future__ import annotations

import json
import shlex
import subprocess

import pytest
from support import ROOT, Command

PYTHON = ROOT / ".venv-runners" / "bin" / "python"
COMPOSE = """
import importlib.util, json, sys
from pathlib import Path
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
place = Path(importlib.util.find_spec("verl").submodule_search_locations[0], "trainer", "config")
with initialize_config_dir(str(place), version_base=None):
    made = compose(sys.argv[1], overrides=sys.argv[2:])
print(json.dumps({name: OmegaConf.select(made, name) for name in (
    "algorithm.adv_estimator", "actor_rollout_ref.rollout.n", "actor_rollout_ref.rollout.name", "data.train_batch_size",
    "actor_rollout_ref.actor.ppo_mini_batch_size", "trainer.n_gpus_per_node", "actor_rollout_ref.model.path")}))
"""

pytestmark = pytest.mark.skipif(
    not PYTHON.is_file(), reason="make runners makes the environment that holds verl's config"
)


def compose(overrides: list[str]) -> subprocess.CompletedProcess[str]:
    """Hydra's answer, in the environment that holds verl."""
    return subprocess.run(
        [str(PYTHON), "-c", COMPOSE, "ppo_trainer", *overrides], capture_output=True, text=True, check=False
    )


def overrides_of(script: str) -> list[str]:
    """The words of the rendered command behind its module."""
    words = shlex.split(script.partition("-m verl.trainer.main_ppo")[2].replace("\\\n", " "), comments=True)
    return [word for word in words if word != "$@"]


@pytest.mark.parametrize("model", ["qwen3-8b", "qwen2.5-7b"])
def test_the_rendered_overrides_compose(command: Command, model: str) -> None:
    rendered = command("recipe", "render", "verl-grpo-fsdp-vllm", "--model", model)
    assert rendered.returncode == 0, rendered.stderr
    overrides = overrides_of(rendered.stdout)
    assert len(overrides) > 15
    done = compose(overrides)
    assert done.returncode == 0, done.stderr[-800:]
    made = json.loads(done.stdout.splitlines()[-1])
    said = dict(word.split("=", 1) for word in overrides)
    assert {name: str(value) for name, value in made.items()} == {name: said[name] for name in made}


def test_a_name_that_verl_lacks_is_refused() -> None:
    done = compose(["actor_rollout_ref.rollout.no_such_key=1"])
    assert done.returncode != 0
    assert "no_such_key" in done.stderr
