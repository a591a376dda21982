"""A job as a cluster wants it: a Slurm script, a Volcano job, a ModelArts command."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from ascend_compat.errors import UsageError
from ascend_compat.jobs.render import Rendered

if TYPE_CHECKING:
    from ascend_compat.recipes.job import Prepared

TARGETS = ("slurm", "volcano", "modelarts")
_IMAGE = "ascend-training:latest"
_PORT = 29500


def wrap(rendered: Rendered, prepared: Prepared, target: str) -> Rendered:
    """The job with one more file that starts it on a cluster; raises :class:`UsageError` for an unknown target."""
    if target not in TARGETS:
        raise UsageError(f"no cluster is called {target!r}; there are: {', '.join(TARGETS)}")
    command = _command(rendered)
    nodes, per_node = _nodes(prepared)
    if target == "slurm":
        return _with(rendered, "job.slurm", _slurm(prepared, command, nodes, per_node))
    if target == "volcano":
        return _with(rendered, "volcano.yaml", _volcano(prepared, command, nodes, per_node))
    return _with(rendered, "modelarts.sh", _modelarts(command))


def _with(rendered: Rendered, name: str, text: str) -> Rendered:
    return Rendered(name, {**rendered.files, name: text})


def _command(rendered: Rendered) -> str:
    if rendered.main.endswith(".yaml"):
        return f'python cli/train_grpo.py --config-dir "$PWD" --config-name {rendered.main.removesuffix(".yaml")}'
    return f"bash {rendered.main}"


def _nodes(prepared: Prepared) -> tuple[int, int]:
    from ascend_compat.recipes.job import NODE

    nodes = -(-prepared.devices // NODE)
    return nodes, prepared.devices // nodes


def _slurm(prepared: Prepared, command: str, nodes: int, per_node: int) -> str:
    minutes = -(-prepared.recipe.time_limit // 60)
    return (
        "#!/bin/bash\n"
        f"#SBATCH --job-name={prepared.recipe.name}\n"
        f"#SBATCH --nodes={nodes}\n"
        "#SBATCH --ntasks-per-node=1\n"
        f"#SBATCH --gres=npu:{per_node}\n"
        f"#SBATCH --time={minutes // 60:02}:{minutes % 60:02}:00\n"
        "#SBATCH --output=%x-%j.log\n"
        "set -euo pipefail\n"
        "\n"
        'cd "${SLURM_SUBMIT_DIR:-.}"\n'
        'MASTER_ADDR=$(scontrol show hostnames "${SLURM_JOB_NODELIST:-localhost}" | head -n 1)\n'
        f"MASTER_PORT={_PORT}\n"
        "export MASTER_ADDR MASTER_PORT\n"
        # the single quotes are on purpose: each node expands its own rank
        "# shellcheck disable=SC2016\n"
        f"srun --kill-on-bad-exit=1 bash -c {shlex.quote(f'NODE_RANK=$SLURM_NODEID {command}')}\n"
    )


def _volcano(prepared: Prepared, command: str, nodes: int, per_node: int) -> str:
    import yaml

    name = prepared.recipe.name.replace(".", "-")
    resource = {"huawei.com/Ascend910": per_node}
    container = {
        "name": "train",
        "image": _IMAGE,
        "workingDir": "/job",
        "command": ["bash", "-c"],
        "args": [f"NODE_RANK=$VC_TASK_INDEX MASTER_ADDR={name}-worker-0.{name} MASTER_PORT={_PORT} {command}"],
        "resources": {"requests": dict(resource), "limits": dict(resource)},
        "volumeMounts": [{"name": "job", "mountPath": "/job"}],
    }
    spec: dict[str, Any] = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "labels": {"ring-controller.atlas": "ascend-910b"}},
        "spec": {
            "minAvailable": nodes,
            "schedulerName": "volcano",
            "plugins": {"svc": [], "env": []},
            "maxRetry": 1,
            "queue": "default",
            "tasks": [
                {
                    "name": "worker",
                    "replicas": nodes,
                    "template": {
                        "spec": {
                            "restartPolicy": "Never",
                            "containers": [container],
                            "volumes": [{"name": "job", "persistentVolumeClaim": {"claimName": name}}],
                        }
                    },
                }
            ],
        },
    }
    return yaml.safe_dump(spec, sort_keys=False, width=1000)


def _modelarts(command: str) -> str:
    """The start command of a ModelArts training job; the platform sets the VC_ and MA_ variables on every node."""
    return (
        "#!/bin/bash\n"
        "set -euo pipefail\n"
        "\n"
        'cd "$(dirname "$0")"\n'
        'MASTER_ADDR="${VC_WORKER_HOSTS%%,*}"\n'
        f"MASTER_PORT={_PORT}\n"
        'NODE_RANK="${VC_TASK_INDEX:-0}"\n'
        "export MASTER_ADDR MASTER_PORT NODE_RANK\n"
        f"{command}\n"
    )
