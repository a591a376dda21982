"""What a recipe states is what our own reader understands of the job rendered from it, on every model it is meant for."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ascend_compat.check.engine import Engine
from ascend_compat.errors import UsageError
from ascend_compat.jobs.read import read_file
from ascend_compat.matrix.store import connect
from ascend_compat.recipes.job import model_of, prepare, render_job, understand, version_of, write_files
from ascend_compat.recipes.load import recipes
from ascend_compat.recipes.wrap import TARGETS, wrap

FRAMEWORKS = ("llamafactory", "mindspeed-llm", "mindspeed-rl", "verl")


@pytest.fixture(scope="module")
def engine():
    con = connect()
    yield Engine(con)
    con.close()


def _all():
    with connect() as con:
        models = [
            row[0] for row in con.execute("SELECT id FROM model WHERE num_layers IS NOT NULL ORDER BY id").fetchall()
        ]
        return [entry for entry in recipes(con) if entry.framework in FRAMEWORKS], models


RECIPES, MODELS = _all()


def test_there_are_recipes_and_models_to_try():
    assert len(RECIPES) >= 30
    assert len(MODELS) >= 50
    assert {entry.framework for entry in RECIPES} == set(FRAMEWORKS)


def _prepared(engine, recipe, name, release, layout):
    model = model_of(engine, recipe.model if recipe.tiny else name)
    if not recipe.fits(model) or model["num_key_value_heads"] is None:
        return None
    return prepare(engine, recipe, model, version_of(engine, recipe.framework, "ascendfactory", release), layout)


def _same(engine, prepared, folder, main=None):
    rendered = render_job(engine, prepared)
    path = write_files(rendered, folder)
    found = understand(engine, prepared.recipe, main or path, prepared.version)
    for name, value in prepared.facts.items():
        fact = found.job.facts.get(name)
        read = fact.value if fact is not None else found.outcome.derived.get(name)
        if value is None:
            assert fact is None or fact.origin != "stated", name
        else:
            assert read == value, name
    assert found.job.model == prepared.model["id"]
    assert not found.job.problems
    assert not found.job.launch.problems
    return found


@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much],
)
@given(
    recipe=st.sampled_from(RECIPES),
    model=st.sampled_from(MODELS),
    release=st.sampled_from(["6.5.906", "6.5.910"]),
    place=st.integers(0, 20),
)
def test_a_rendered_recipe_reads_back_as_itself(engine, tmp_path, recipe, model, release, place):
    prepared = _prepared(engine, recipe, model, release, recipe.layouts[place % len(recipe.layouts)])
    assume(prepared is not None)
    _same(engine, prepared, tmp_path)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda entry: entry.name)
def test_every_recipe_reads_back_on_its_own_model_and_reaches_its_features(engine, tmp_path, recipe):
    own = "qwen3-30b-a3b" if (recipe.body.get("for") or {}).get("type") == "moe" else recipe.model
    prepared = _prepared(engine, recipe, own, "6.5.906", recipe.layouts[0])
    found = _same(engine, prepared, tmp_path)
    assert set(recipe.features) <= set(found.features)
    assert [rule.id for rule in found.outcome.broken if rule.severity == "impossible"] == []


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda entry: entry.name)
def test_wrapped_for_a_cluster_it_reads_back_on_the_same_devices(engine, tmp_path, recipe, target):
    own = "qwen3-30b-a3b" if (recipe.body.get("for") or {}).get("type") == "moe" else recipe.model
    prepared = _prepared(engine, recipe, own, "6.5.906", recipe.layouts[0])
    main = write_files(wrap(render_job(engine, prepared), prepared, target), tmp_path)
    read = read_file(str(main))
    assert read.error is None
    assert [launch.framework for launch in read.launches] == [recipe.framework]
    found = understand(engine, recipe, main, prepared.version)
    world = found.outcome.derived.get("world_size") or found.job.facts["world_size"].value
    assert world == prepared.devices
    assert found.job.model == prepared.model["id"]
    stated = {setting.key: setting.value for setting in read.launches[0].settings}
    nodes = -(-prepared.devices // 8)
    if target == "slurm":
        assert (int(stated["slurm:--nodes"]), stated["slurm:devices_per_node"]) == (nodes, prepared.devices // nodes)
    if target == "volcano":
        assert (stated["kubernetes:nodes"], stated["kubernetes:devices"]) == (nodes, prepared.devices // nodes)


def test_a_fact_no_key_sets_is_refused(engine, tmp_path):
    recipe = next(entry for entry in RECIPES if entry.name == "verl-grpo-fsdp-vllm")
    prepared = _prepared(engine, recipe, recipe.model, "6.5.906", recipe.layouts[0])
    prepared.facts["moe_grouped_gemm"] = True
    with pytest.raises(UsageError, match="no key for: moe_grouped_gemm"):
        render_job(engine, prepared)
