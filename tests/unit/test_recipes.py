"""Recipes: their documents, what they inherit, the layout a model can use, and how a cluster gets them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from ascend_compat.check.engine import Engine
from ascend_compat.errors import DataError, UsageError
from ascend_compat.matrix import build_recipes
from ascend_compat.recipes.fit import fit
from ascend_compat.recipes.job import model_of, prepare, render_job, with_sft, write_files
from ascend_compat.recipes.load import recipe, recipes
from ascend_compat.recipes.select import reach, release_of
from ascend_compat.recipes.wrap import wrap
from ascend_compat.resources import schema_dir

ROOT = Path(__file__).resolve().parent.parent.parent
SCRIPTS = ("llamafactory-lora", "mindspeed-llm-cp-ring", "verl-grpo-fsdp-vllm", "mindspeed-rl-grpo")


@pytest.fixture(scope="module")
def engine(con):
    return Engine(con)


def _validator(path):
    shared = Resource.from_contents(json.loads((schema_dir() / "common.schema.json").read_text()))
    registry = Registry().with_resource("common.schema.json", shared)
    return Draft202012Validator(json.loads(path.read_text()), registry=registry)


def test_every_document_fits_the_schema():
    validator = _validator(schema_dir() / "recipe.schema.json")
    files = build_recipes.recipe_files()
    assert len(files) == 39
    for file in files:
        body = yaml.safe_load(file.read_text(encoding="utf-8"))
        assert [error.message for error in validator.iter_errors(body)] == [], file.name
        assert body["name"] == file.stem
        assert "like" in body or validator.is_valid({**body, "framework": body["framework"]})
    assert not validator.is_valid(
        {"kind": "recipe", "name": "x", "title": {"en": "a", "zh": "b"}, "features": ["lora"]}
    )


def test_the_features_of_every_recipe_are_in_the_vocabulary(con):
    known = {row[0] for row in con.execute("SELECT id FROM feature").fetchall()}
    found = recipes(con)
    assert len(found) == 39
    assert {name for entry in found for name in entry.features} <= known


def test_every_supported_column_of_6_5_906_is_exercised(con):
    columns = con.execute(
        "SELECT DISTINCT framework, \"column\" FROM cell WHERE product = 'ascendfactory' AND release = '6.5.906' AND status = 'supported'"
    ).fetchall()
    assert len(columns) == 18
    cells = reach(Engine(con), "ascendfactory", "6.5.906")
    assert len(cells) == 742
    reached = {(cell.framework, cell.feature) for cell in cells if cell.runs}
    features = con.execute(
        "SELECT framework, \"column\", feature FROM claim WHERE product = 'ascendfactory' AND release = '6.5.906'"
    ).fetchall()
    exercised = {(framework, column) for framework, column, feature in features if (framework, feature) in reached}
    assert exercised == set(columns)
    unreached = [cell for cell in cells if not cell.runs]
    assert len(unreached) == 59
    assert all(cell.why for cell in unreached)


def test_a_recipe_is_completed_by_the_one_it_is_like(con):
    found = recipe(con, "llamafactory-full-tiny-moe")
    assert found.framework == "llamafactory"
    assert found.body["facts"]["seq_length"] == 64
    assert found.body["facts"]["bf16"] is True
    assert "lora_r" not in found.body["facts"]
    assert found.body["families"]["Llama-3.1"] == {"facts": {"chat_template": "llama3"}}
    assert (found.tiny, found.devices, found.steps, found.time_limit) == (True, 1, 5, 300)


def test_an_unknown_parent_and_a_ring_are_refused(tmp_path, monkeypatch):
    for name, like in (("a", "b"), ("b", "a"), ("c", "gone")):
        (tmp_path / f"{name}.yaml").write_text(f"kind: recipe\nname: {name}\nlike: {like}\n")
    monkeypatch.setattr(build_recipes, "recipe_files", lambda: sorted(tmp_path.glob("[ab].yaml")))
    with pytest.raises(DataError, match="is like"):
        build_recipes.read_recipes()
    monkeypatch.setattr(build_recipes, "recipe_files", lambda: sorted(tmp_path.glob("c.yaml")))
    with pytest.raises(DataError, match="recipe c is like gone"):
        build_recipes.read_recipes()


def test_the_digest_is_of_what_runs_not_of_words_or_order():
    body = {"name": "a", "title": {"en": "x"}, "facts": {"one": 1, "two": 2}}
    same = {"facts": {"two": 2, "one": 1}, "title": {"en": "other"}, "name": "a"}
    assert build_recipes.digest_of(body) == build_recipes.digest_of(same)
    assert build_recipes.digest_of(body) != build_recipes.digest_of({**body, "facts": {"one": 1, "two": 3}})


def test_the_first_layout_that_fits_is_taken(engine):
    entry = recipe(engine.con, "llamafactory-full")
    small = fit(engine, entry, model_of(engine, "qwen2.5-7b"), "0.9.3")
    large = fit(engine, entry, model_of(engine, "qwen2.5-72b"), "0.9.3")
    assert (small.prepared.devices, large.prepared.devices) == (8, 32)
    never = fit(engine, recipe(engine.con, "llamafactory-zero-1"), model_of(engine, "qwen2.5-72b"), "0.9.3")
    assert never.prepared is None
    assert never.why == ("at least 135 GiB a device of 64",)


def test_layers_a_pipeline_does_not_divide_are_filled_up(engine):
    entry = recipe(engine.con, "mindspeed-llm-pretrain")
    layout = {"devices": 256, "tensor_parallel": 8, "pipeline_parallel": 8}
    made = prepare(engine, entry, model_of(engine, "deepseek-v3-671b"), "2.1.0", layout)
    assert (made.facts["num_layers"], made.facts["noop_layers"]) == (64, [61, 62, 63])
    assert (made.facts["nnodes"], made.facts["devices_per_node"]) == (32, 8)


def test_a_tiny_model_keeps_its_structure(engine):
    entry = recipe(engine.con, "llamafactory-lora-tiny-moe")
    real = model_of(engine, entry.model)
    tiny = prepare(engine, entry, real, "0.9.3").model
    assert tiny["num_attention_heads"] // tiny["num_key_value_heads"] == 4
    assert real["num_attention_heads"] // real["num_key_value_heads"] == 8
    assert tiny["model_type"] == real["model_type"]
    assert tiny["num_experts"] == 4
    assert not entry.fits(model_of(engine, "qwen3-0.6b"))


def test_supervised_fine_tuning_is_told_apart():
    assert "sft" in with_sft(("lora", "flash-attention"))
    assert "sft" not in with_sft(("full", "pretrain"))
    assert "sft" not in with_sft(("lora", "dpo"))


def test_unknown_names_get_the_nearest(engine):
    with pytest.raises(UsageError, match="llamafactory-lora"):
        recipe(engine.con, "llamafactory-lor")
    with pytest.raises(UsageError, match="nearest"):
        model_of(engine, "qwen2.5-7")
    with pytest.raises(UsageError, match=r"6\.5\.906"):
        release_of(engine, "verl", "6.5.96")


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.parametrize("target", ["slurm", "modelarts"])
def test_scripts_pass_shellcheck(engine, tmp_path, name, target):
    entry = recipe(engine.con, name)
    prepared = prepare(
        engine,
        entry,
        model_of(engine, entry.model),
        "2.1.0" if "mindspeed" in name else "0.9.3" if "llama" in name else "v0.5.0",
    )
    main = write_files(wrap(render_job(engine, prepared), prepared, target), tmp_path)
    shellcheck = Path(sys.executable).parent / "shellcheck"
    done = subprocess.run([str(shellcheck), str(main)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_volcano_manifests_fit_their_kind(engine):
    validator = _validator(ROOT / "tests" / "samples" / "volcano" / "job.schema.json")
    names = [entry for entry in recipes(engine.con) if entry.framework != "torch"]
    assert len(names) == 32
    for entry in names:
        version = {"llamafactory": "0.9.5", "verl": "v0.5.0"}.get(entry.framework, "2.1.0")
        model = "qwen3-30b-a3b" if entry.name == "mindspeed-llm-moe" else entry.model
        prepared = prepare(engine, entry, model_of(engine, model), version)
        manifest = yaml.safe_load(wrap(render_job(engine, prepared), prepared, "volcano").files["volcano.yaml"])
        assert [error.message for error in validator.iter_errors(manifest)] == []
    assert not validator.is_valid({**manifest, "kind": "Pod"})
    with pytest.raises(UsageError, match="no cluster is called"):
        wrap(render_job(engine, prepared), prepared, "lsf")
