"""The facts command over the real matrix: its lines, its table, its exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ascend_compat.check.engine import Engine, Options
from ascend_compat.cli.facts import CANONICAL, understand
from ascend_compat.jobs.expand import expand
from ascend_compat.jobs.model import Fact, Launch, Setting, Span
from ascend_compat.jobs.read import read_paths

LLAMAFACTORY = """\
model_name_or_path: /data/models/Qwen2.5-7B-Instruct
stage: sft
finetuning_type: lora
dataset: alpaca_zh_demo
template: qwen
cutoff_len: 4096
per_device_train_batch_size: 2
gradient_accumulation_steps: 8
learning_rate: 1.0e-4
bf16: true
"""
MINDSPEED_RL = """\
megatron_training:
  model: qwen25_7b
  bf16: true
  global_batch_size: 32
  seq_length: 2048
  stage: ray_grpo
actor_config:
  model: qwen25_7b
  micro_batch_size: 4
  tensor_model_parallel_size: 2
  pipeline_model_parallel_size: 2
rl_config:
  n_samples_per_prompt: 8
  actor_resource:
    num_npus: 16
generate_config:
  infer_tensor_parallel_size: 1
  max_model_len: 4096
"""
VERL = """\
data:
  train_batch_size: 64
  max_prompt_length: 512
  max_response_length: 1024
actor_rollout_ref:
  model:
    path: Qwen/Qwen2.5-7B-Instruct
  actor:
    ppo_mini_batch_size: 32
    ppo_micro_batch_size_per_gpu: 2
  rollout:
    name: vllm
    n: 8
    tensor_model_parallel_size: 2
algorithm:
  adv_estimator: grpo
trainer:
  n_gpus_per_node: 8
  nnodes: 2
"""
MINDSPEED_LLM = """\
training:
  tokenizer-name-or-path: /data/Qwen2.5-7B
  tensor-model-parallel-size: 4
  pipeline-model-parallel-size: 2
  seq-length: 4096
  micro-batch-size: 1
  global-batch-size: 64
  stage: sft
  finetune: true
  bf16: true
"""
MINDSPEED_MM = """\
data:
  dataset_param:
    preprocess_parameters:
      model_name_or_path: ./Qwen2.5-VL-7B-Instruct
    basic_parameters:
      dataset_dir: ./data
convert_ckpt_hf2mg:
  cfg:
    parallel_config:
      llm_pp_layers: [1, 10, 10, 7]
"""
Command = Callable[..., Any]


@pytest.fixture(scope="module")
def engine(con: duckdb.DuckDBPyConnection) -> Engine:
    return Engine(con)


def inside(text: str) -> str:
    """The settings as an AscendFactory file carries them."""
    return "af_output_dir: out\nbackend_config:\n" + "".join(f"  {line}\n" for line in text.splitlines())


def under_training(text: str) -> str:
    return "training:\n" + "".join(f"  {line}\n" for line in text.splitlines())


def facts_of(engine: Engine, path: Path, text: str, version: str | None = None) -> dict[str, Fact]:
    path.write_text(text)
    (read,) = read_paths([str(path)])
    assert read.error is None
    return facts_of_launches(engine, read.launches, version)


def facts_of_launches(engine: Engine, launches: list[Launch], version: str | None) -> dict[str, Fact]:
    (job,) = understand(engine, launches, Options(framework_version=version))
    assert job is not None
    return job.facts


def same(one: dict[str, Fact], other: dict[str, Fact]) -> int:
    """How many stated facts are the same; every stated one but the wrapper's own must be."""
    count = 0
    for name, fact in one.items():
        if fact.origin == "stated" and name not in ("af_output_dir", "entry"):
            assert (other[name].value, other[name].origin) == (fact.value, "stated"), name
            count += 1
    return count


@pytest.mark.parametrize(
    ("own", "wrapped", "version", "count"),
    [
        (LLAMAFACTORY, inside(under_training(LLAMAFACTORY)), "0.9.3", 10),
        (MINDSPEED_RL, inside(MINDSPEED_RL), "2.1.0", 12),
        (VERL, inside(VERL), "v0.6.1", 12),
    ],
)
def test_same_job_in_both_forms(
    engine: Engine, tmp_path: Path, own: str, wrapped: str, version: str, count: int
) -> None:
    plain = facts_of(engine, tmp_path / "own.yaml", own, version)
    bundled = facts_of(engine, tmp_path / "wrapped.yaml", wrapped, version)
    assert same(bundled, plain) == same(plain, bundled) >= count
    open_in_bundle = (
        "nnodes",
        "devices_per_node",
        "launcher",
        "fsdp",
        "zero_stage",
        "deepspeed_stage",
        "af_output_dir",
    )
    for name, fact in plain.items():
        if name not in open_in_bundle and not name.startswith(("unknown_", "plus_")):
            assert bundled[name].value == fact.value, name


def test_mindspeed_llm_in_both_forms(engine: Engine, tmp_path: Path) -> None:
    bundled = facts_of(engine, tmp_path / "wrapped.yaml", inside(MINDSPEED_LLM), "2.1.0")
    words = [line.strip().split(": ") for line in MINDSPEED_LLM.splitlines()[1:]]
    launch = Launch("run.sh", 1, "bash", "mindspeed-llm", "mindspeed-llm", "posttrain_gpt.py")
    for number, (key, value) in enumerate(words, 1):
        launch.settings.append(Setting(f"--{key}", True if value == "true" else value, Span("run.sh", number)))
    plain = facts_of_launches(engine, [launch], "2.1.0")
    assert same(plain, bundled) >= 8
    for name in ("seq_length", "tensor_parallel", "num_layers", "context_parallel", "finetuning_type", "entry"):
        assert bundled[name].value == plain[name].value, name


def test_mindspeed_mm_through_the_wrapper(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "mm.yaml").write_text(inside(MINDSPEED_MM))
    (read,) = read_paths([str(tmp_path / "mm.yaml")])
    (job,) = understand(engine, read.launches, Options())
    assert job is not None
    assert (job.launch.framework, job.model, job.facts["pp_layer_list"].value) == (
        "mindspeed-mm",
        "qwen2.5-vl-7b",
        [1, 10, 10, 7],
    )


def test_lines_of_json(command: Command, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(LLAMAFACTORY)
    (tmp_path / "wrapped.yaml").write_text(inside(VERL))
    done = command("facts", "job.yaml", "wrapped.yaml", "--format", "jsonl", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    first, second = (json.loads(line) for line in done.stdout.splitlines())
    assert set(first) == {"file", "line", "framework", "facts"}
    assert (first["file"], first["line"], first["framework"]) == ("job.yaml", 1, "llamafactory")
    assert first["facts"]["seq_length"] == {
        "value": 4096,
        "origin": "stated",
        "file": "job.yaml",
        "line": 6,
        "column": 13,
        "why": None,
    }
    assert first["facts"]["lora_r"]["origin"] == "default"
    assert first["facts"]["num_layers"] == {
        "value": 28,
        "origin": "model",
        "file": None,
        "line": None,
        "column": None,
        "why": "architecture of qwen2.5-7b",
    }
    assert first["facts"]["world_size"]["origin"] == "unknown"
    assert second["facts"]["world_size"]["value"] == 16
    assert second["facts"]["world_size"]["origin"] == "derived"
    origins = {fact["origin"] for line in (first, second) for fact in line["facts"].values()}
    assert origins == {"stated", "default", "derived", "model", "unknown"}


def test_canonical_names_are_all_there(engine: Engine, tmp_path: Path) -> None:
    rollout = {"rollout_tensor_parallel", "rollout_n", "max_prompt_length", "max_response_length"}
    batches = {"train_batch_size", "ppo_mini_batch_size"}
    absent = [
        {"expert_tensor_parallel", "ulysses_sp"} | rollout | batches,
        {"expert_tensor_parallel", "ulysses_sp"},
        {"global_batch_size"},
    ]
    for number, text in enumerate((LLAMAFACTORY, MINDSPEED_RL, VERL)):
        facts = facts_of(engine, tmp_path / f"{number}.yaml", text)
        assert set(CANONICAL) - set(facts) == absent[number]


def test_table_in_both_languages(command: Command, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(LLAMAFACTORY + "cutof_len: 1\n")
    english = command("facts", "job.yaml", "--framework-version", "0.9.3", cwd=tmp_path).stdout
    chinese = command("facts", "job.yaml", "--framework-version", "0.9.3", "--lang", "zh", cwd=tmp_path).stdout
    assert "job.yaml:1  llamafactory 0.9.3 (as asked)" in english
    assert "understood from the file (10)" in english and "从文件中读出 (10)" in chinese
    assert "seq_length                  = 4096   cutoff_len" in english
    assert "llamafactory 0.9.3 does not know cutof_len; the nearest key it knows is cutoff_len." in english.replace(
        "LLaMA-Factory", "llamafactory"
    )
    assert "cutof_len" in chinese and "最接近" in chinese


def test_unreadable_file_is_one_sentence(command: Command, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("stage: [sft\nx: }\n")
    (tmp_path / "job.yaml").write_text(LLAMAFACTORY)
    done = command("facts", "bad.yaml", "none.yaml", "job.yaml", "--format", "jsonl", cwd=tmp_path)
    assert done.returncode == 2
    assert len(done.stdout.splitlines()) == 1
    assert [line.split(" ")[1] for line in done.stderr.splitlines()] == ["AC2008", "AC2001"]


def test_one_job_two_versions(engine: Engine, tmp_path: Path) -> None:
    text = LLAMAFACTORY.replace("cutoff_len: 4096\n", "use_v1_kernels: true\n")
    (tmp_path / "job.yaml").write_text(text)
    found = {}
    for version in ("0.9.0", "0.9.3", "0.9.4"):
        (read,) = read_paths([str(tmp_path / "job.yaml")])
        (job,) = understand(engine, read.launches, Options(framework_version=version))
        assert job is not None
        found[version] = (job.facts["seq_length"].value, [problem.code for problem in job.problems])
    assert found == {"0.9.0": (1024, ["AC2021"]), "0.9.3": (2048, ["AC2021"]), "0.9.4": (2048, [])}


def test_deepspeed_file_beside_or_guessed(engine: Engine, tmp_path: Path) -> None:
    text = LLAMAFACTORY + "deepspeed: examples/deepspeed/ds_z3_offload_config.json\n"
    guessed = facts_of(engine, tmp_path / "job.yaml", text)
    assert (guessed["deepspeed_stage"].value, guessed["deepspeed_stage"].origin) == (3, "derived")
    why = guessed["deepspeed_stage"].why
    assert why is not None and "guessed" in why.en
    folder = tmp_path / "examples" / "deepspeed"
    folder.mkdir(parents=True)
    (folder / "ds_z3_offload_config.json").write_text(
        '{\n  "train_batch_size": "auto",\n  "zero_optimization": {\n    "stage": 2\n  }\n}\n'
    )
    read = facts_of(engine, tmp_path / "job.yaml", text)
    stage = read["deepspeed_stage"]
    assert (stage.value, stage.origin) == (2, "stated")
    assert stage.span is not None and stage.span.file.endswith("ds_z3_offload_config.json")
    assert (stage.span.line, stage.span.column) == (4, 14)
    assert [span.line for span in stage.chain] == [11]


def test_included_model_file(engine: Engine, tmp_path: Path) -> None:
    job = "defaults:\n  - model:\n      - qwen25_7b\n" + MINDSPEED_RL
    away = facts_of(engine, tmp_path / "job.yaml", job)
    assert (away["num_layers"].value, away["num_layers"].origin) == (28, "model")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "qwen25_7b.yaml").write_text("qwen25_7b:\n  num_layers: 4\n  hidden-size: 3584\n")
    here = facts_of(engine, tmp_path / "job.yaml", job)
    layers = here["num_layers"]
    assert (layers.value, layers.origin) == (4, "stated")
    assert layers.span is not None and layers.span.line == 2
    assert here["hidden_size"].value == 3584


@pytest.mark.parametrize(
    ("framework", "key", "nearest"),
    [
        ("mindspeed-llm", "--tensor-model-parallel", "--tensor-model-parallel-size"),
        ("mindspeed-llm", "--seq_length", "--seq-length"),
        ("llamafactory", "cutof_len", "cutoff_len"),
        ("mindspeed-rl", "rl_config.n_sample_per_prompt", "rl_config.n_samples_per_prompt"),
        ("mindspeed-rl", "rl_config.max_model_len", "generate_config.max_model_len"),
        (
            "verl",
            "actor_rollout_ref.rollout.tensor_model_parallel_siz",
            "actor_rollout_ref.rollout.tensor_model_parallel_size",
        ),
        ("verl", "actor_rollout_ref.rollout.ppo_mini_batch_size", "actor_rollout_ref.actor.ppo_mini_batch_size"),
    ],
)
def test_misspelt_key_of_each_framework(engine: Engine, framework: str, key: str, nearest: str) -> None:
    launch = Launch("run.sh", 1, "bash", framework, framework, "")
    launch.settings = [Setting(key, "1", Span("run.sh", 7))]
    (job,) = understand(engine, [launch], Options())
    assert job is not None
    (problem,) = job.problems
    assert (problem.code, problem.span.line, problem.words["nearest"]) == ("AC2020", 7, nearest)


def started(framework: str, *settings: tuple[str, str], product: str | None = None) -> Launch:
    launch = Launch("run.sh", 1, "bash", framework, product or framework, "")
    launch.settings = [Setting(key, value, Span("run.sh", number)) for number, (key, value) in enumerate(settings, 1)]
    return launch


def test_command_with_its_file_and_overrides(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(LLAMAFACTORY)
    launch = started("llamafactory", ("env:NNODES", "2"), ("file:config", "x.yaml"), ("cutoff_len", "8192"))
    facts = facts_of_launches(engine, [expand(launch, tmp_path)], None)
    assert (facts["seq_length"].value, facts["nnodes"].value, facts["micro_batch_size"].value) == (8192, 2, 2)
    span, chain = facts["micro_batch_size"].span, facts["micro_batch_size"].chain
    assert span is not None and (span.file, span.line) == (str(tmp_path / "x.yaml"), 7)
    assert [place.line for place in chain] == [2]


def test_wrapper_command_with_its_file_and_overrides(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(inside(under_training(LLAMAFACTORY)))
    launch = started(
        "",
        ("file:config", "x.yaml"),
        ("--backend_config.training.cutoff_len", "8192"),
        ("--env.NNODES", "2"),
        ("--af_output_dir", "there"),
        product="ascendfactory",
    )
    launch = expand(launch, tmp_path)
    facts = facts_of_launches(engine, [launch], None)
    assert (launch.framework, launch.product) == ("llamafactory", "ascendfactory")
    stated = {name: facts[name].value for name in ("seq_length", "nnodes", "af_output_dir", "micro_batch_size")}
    assert stated == {"seq_length": 8192, "nnodes": 2, "af_output_dir": "there", "micro_batch_size": 2}


def test_hydra_command_with_its_config(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "grpo.yaml").write_text(MINDSPEED_RL)
    launch = started("mindspeed-rl", ("--config-name", "grpo"), ("actor_config.tensor_model_parallel_size", "4"))
    facts = facts_of_launches(engine, [expand(launch, tmp_path)], None)
    assert (facts["tensor_parallel"].value, facts["rollout_n"].value) == (4, 8)


def test_named_file_that_is_not_here_leaves_things_unknown(engine: Engine, tmp_path: Path) -> None:
    launch = expand(started("llamafactory", ("file:config", "gone.yaml")), tmp_path)
    assert [problem.code for problem in launch.problems] == ["AC2029"]
    facts = facts_of_launches(engine, [launch], None)
    assert facts["seq_length"].origin == "unknown"
    why = facts["seq_length"].why
    assert why is not None and "gone.yaml" in why.en
