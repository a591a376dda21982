"""Launchers, wrappers, clusters and manifests around a command."""

from __future__ import annotations

import pytest

from ascend_compat.jobs.bash import read_shell
from ascend_compat.jobs.kubernetes import read_manifest
from ascend_compat.jobs.model import Launch, Setting, Unresolved
from ascend_compat.jobs.slurm import devices
from ascend_compat.jobs.yaml_tree import parse

TRAIN = "torchrun --nproc-per-node=8 pretrain_gpt.py --x 1"


def launch(script: str) -> Launch:
    (found,) = read_shell(script, "job.sh", root=None)
    return found


def values(found: Launch) -> dict[str, object]:
    return {setting.key: setting.value for setting in found.settings}


@pytest.mark.parametrize(
    "wrapper",
    [
        "nohup",
        "time",
        "sudo -E",
        "setsid",
        "nice -n 5",
        "timeout 3600",
        "timeout -k 5 1h",
        "numactl --cpunodebind=0 --membind=0",
        "taskset -c 0-23",
        "stdbuf -oL",
        "srun --mpi=none",
        "mpirun -np 2 -H a,b",
        "docker run --rm -it --device /dev/davinci0 -v /a:/a image:tag",
        "docker exec -it box",
        "kubectl exec pod -- ",
        "ssh user@host",
        "conda run -n env",
        "uv run --extra vllm",
        "ray job submit --address http://x --working-dir . --",
        "nohup env A=1 nice -n 5",
        "bash -c 'exec \"$@\"' _ true ;",
    ],
)
def test_a_wrapper_is_taken_off(wrapper: str) -> None:
    found = launch(f"{wrapper} {TRAIN}")
    assert found.entry == "pretrain_gpt.py"
    assert values(found)["--x"] == "1"
    assert values(found)["torchrun:--nproc_per_node"] == "8"


@pytest.mark.parametrize("wrapper", ["ssh host '{}'", 'docker run image bash -c "cd /w && {}"', 'msprof "{}"'])
def test_a_command_in_one_string_is_read(wrapper: str) -> None:
    assert values(launch(wrapper.format(TRAIN)))["--x"] == "1"


def test_variables_given_by_wrappers_are_environment() -> None:
    assert values(launch(f"env A=1 B='2 3' {TRAIN}"))["env:B"] == "2 3"
    assert values(launch(f"docker run -e A=1 image {TRAIN}"))["env:A"] == "1"
    assert values(launch("FORCE_TORCHRUN=1 NNODES=2 llamafactory-cli train x.yaml"))["env:NNODES"] == "2"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("torchrun --nproc_per_node 8 --nnodes=2", {"torchrun:--nproc_per_node": "8", "torchrun:--nnodes": "2"}),
        ("torchrun --standalone --nnodes 1", {"torchrun:--standalone": True, "torchrun:--nnodes": "1"}),
        ("python -m torch.distributed.launch --nproc-per-node 8", {"torchrun:--nproc_per_node": "8"}),
        ("python3 -u -m torch.distributed.run --nnodes 4", {"torchrun:--nnodes": "4"}),
        ("deepspeed --num_gpus 8 --master_port 1", {"deepspeed:--num_gpus": "8", "deepspeed:--master_port": "1"}),
        ("accelerate launch --config_file f.yaml --multi_gpu", {
            "accelerate:--config_file": "f.yaml", "accelerate:--multi_gpu": True,
        }),
        ("msrun --worker_num=16 --local_worker_num 8", {"msrun:--worker_num": "16", "msrun:--local_worker_num": "8"}),
        ("python -X dev", {}),
    ],
)  # fmt: skip
def test_launcher_options_are_settings(command: str, expected: dict[str, object]) -> None:
    found = launch(f"{command} pretrain_gpt.py --x 1")
    assert values(found) == {**expected, "--x": "1"}


@pytest.mark.parametrize(
    ("entry", "framework"),
    [
        ("pretrain_gpt.py", "mindspeed-llm"),
        ("posttrain_gpt.py", "mindspeed-llm"),
        ("./train_fsdp2.py", "mindspeed-llm"),
        ("inference.py", "mindspeed-llm"),
        ("convert_ckpt_v2.py", "mindspeed-llm"),
        ("preprocess_data.py", "mindspeed-llm"),
        ("pretrain_vlm.py", "mindspeed-mm"),
        ("pretrain_sora.py", "mindspeed-mm"),
        ("cli/train_grpo.py", "mindspeed-rl"),
        ("src/train.py x.yaml", "llamafactory"),
        ("/data/LLaMA-Factory/src/train.py --lr 1", "llamafactory"),
        ("train.py --stage sft --model_name_or_path m", "llamafactory"),
        ("train_bash.py --stage sft", "llamafactory"),
        ("mindspeed_mm/fsdp/tasks/x/train.py x.yaml", "mindspeed-mm"),
        ("posttrain_flux_dancegrpo.py --mm-data d.json --micro-batch-size 1", "mindspeed-mm"),
        ("finetune_mine.py --tensor-model-parallel-size 8", "mindspeed-llm"),
    ],
)
def test_an_entry_names_its_framework(entry: str, framework: str) -> None:
    assert launch(f"torchrun {entry}").framework == framework


@pytest.mark.parametrize(
    "command",
    [
        "python setup.py install", "python -c 'print(1)'", "python -m lm_eval", "vllm bench",
        "torchrun train.py --lr 1", "accelerate launch ./examples/model_training/train.py --dataset_repeat 2",
        "torchrun examples/train_dreambooth_lora.py --resolution 512", "python finetune_mine.py --epochs 3",
    ],
)  # fmt: skip
def test_other_programs_are_no_launch(command: str) -> None:
    assert read_shell(command, "job.sh", root=None) == []


def test_llamafactory_names_its_file_and_overrides() -> None:
    found = launch("llamafactory-cli train a/x.yaml stage=sft learning_rate=1e-5 --cutoff-len 10 --do_train")
    assert (found.framework, found.product, found.entry) == ("llamafactory", "llamafactory", "llamafactory-cli train")
    expected = {
        "file:config": "a/x.yaml",
        "launch:program": "llamafactory-cli",
        "launch:command": "train",
        "stage": "sft",
        "learning_rate": "1e-5",
        "cutoff_len": "10",
        "do_train": True,
    }
    assert values(found) == expected
    found = launch("accelerate launch --config_file f.yaml src/train.py x.yaml")
    assert values(found) == {
        "accelerate:--config_file": "f.yaml",
        "file:config": "x.yaml",
        "launch:program": "accelerate",
        "launch:command": "train",
    }


def test_ascendfactory_names_its_file_and_dotted_overrides() -> None:
    found = launch("ascendfactory-cli train x.yaml --a.b=v --env.NNODES=2 --c.d 3")
    assert (found.framework, found.product) == ("ascendfactory", "ascendfactory")
    assert values(found) == {"file:config": "x.yaml", "a.b": "v", "env.NNODES": "2", "c.d": "3"}


def test_train_fsdp2_names_its_file() -> None:
    assert values(launch("torchrun train_fsdp2.py a.yaml --model.path m"))["file:config"] == "a.yaml"


def test_vllm_serve_names_its_model() -> None:
    found = launch("vllm serve Qwen/Qwen3-8B --tensor-parallel-size 5 --enforce-eager")
    assert (found.framework, found.entry) == ("vllm", "vllm serve")
    assert values(found) == {"--model": "Qwen/Qwen3-8B", "--tensor-parallel-size": "5", "--enforce-eager": True}


SLURM = f"""#!/bin/bash
#SBATCH --nodes=4
#SBATCH -J job  # name
#SBATCH --gres=npu:8
srun --ntasks-per-node 1 torchrun --nnodes $SLURM_NNODES --nproc_per_node $SLURM_GPUS_ON_NODE {TRAIN[9:]}
"""


def test_slurm_lines_are_settings_and_variables() -> None:
    found = launch(SLURM)
    got = values(found)
    assert got["slurm:--nodes"] == "4"
    assert got["slurm:--job-name"] == "job"
    assert got["slurm:--gres"] == "npu:8"
    assert got["slurm:devices_per_node"] == 8
    assert got["slurm:--ntasks-per-node"] == "1"
    nodes = [setting for setting in found.settings if setting.key == "torchrun:--nnodes"]
    assert [(setting.value, setting.span.line, setting.span.column) for setting in nodes] == [("4", 2, 17)]


@pytest.mark.parametrize(
    ("text", "count"),
    [("npu:8", 8), ("gpu:ascend910b:4", 4), ("8", 8), ("shard:x,npu:2", 2), ("npu", None), ("npu:2(S:0)", 2)],
)
def test_devices_of_a_resource_string(text: str, count: int | None) -> None:
    assert devices(text) == count


JOB = """apiVersion: batch.volcano.sh/v1alpha1
kind: Job
spec:
  tasks:
    - name: worker
      replicas: 4
      template:
        spec:
          containers:
            - name: train
              command: ["/bin/bash", "-c"]
              args:
                - |
                  TP=8
                  torchrun --nnodes $NNODES pretrain_gpt.py \\
                    --tensor-model-parallel-size $TP
              env:
                - name: NNODES
                  value: "4"
              resources:
                limits:
                  huawei.com/Ascend910: 8
                  cpu: "16"
"""


def manifest(text: str) -> list[Launch]:
    (document,) = parse(text, "job.yaml")
    return read_manifest(document, None)


def test_a_manifest_gives_its_command_and_its_devices() -> None:
    (found,) = manifest(JOB)
    settings: dict[str, Setting] = {setting.key: setting for setting in found.settings}
    assert (found.framework, found.format, found.line) == ("mindspeed-llm", "manifest", 15)
    got = {key: (setting.value, setting.span.line, setting.span.column) for key, setting in settings.items()}
    assert got["kubernetes:devices"] == (8, 22, 41)
    assert got["kubernetes:nodes"] == (4, 6, 17)
    assert got["env:NNODES"] == ("4", 19, 27)
    assert got["torchrun:--nnodes"] == ("4", 19, 27)
    assert got["--tensor-model-parallel-size"] == ("8", 14, 22)


def test_master_and_workers_are_one_launch_on_all_their_nodes() -> None:
    one = (
        "template: {spec: {containers: [{command: [torchrun, pretrain_gpt.py, --x, '1'], "
        "resources: {limits: {huawei.com/Ascend910: '16'}}}]}}"
    )
    text = (
        "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nspec:\n  pytorchReplicaSpecs:\n"
        f"    Master:\n      replicas: 1\n      {one}\n    Worker:\n      replicas: 3\n      {one}\n"
    )
    (found,) = manifest(text)
    got = values(found)
    assert (got["kubernetes:nodes"], got["kubernetes:devices"], got["--x"]) == (4, 16, "1")


def test_the_entry_point_of_a_ray_job_is_read() -> None:
    text = "apiVersion: ray.io/v1\nkind: RayJob\nspec:\n  entrypoint: python -m verl.trainer.main_ppo a.b=1\n"
    (found,) = manifest(text)
    assert (found.framework, values(found)) == ("verl", {"a.b": 1})


def test_a_manifest_without_a_launch_gives_none() -> None:
    assert manifest("apiVersion: v1\nkind: Service\nspec: {ports: [{port: 1}]}\n") == []


def test_an_unknown_count_of_processes_says_why() -> None:
    value = values(launch("torchrun --nproc_per_node $1 pretrain_gpt.py --x 1"))["torchrun:--nproc_per_node"]
    assert isinstance(value, Unresolved)
