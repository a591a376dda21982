"""Names as people write them, against the real matrix."""

from __future__ import annotations

import pytest

from ascend_compat.matrix.names import Match, Names, ordinal
from ascend_compat.matrix.normal import normal, squashed
from ascend_compat.matrix.store import connect


@pytest.fixture(scope="module")
def con():
    with connect() as con:
        yield con


@pytest.fixture(scope="module")
def names(con):
    return Names(con)


@pytest.mark.parametrize(
    ("written", "model", "how", "variant"),
    [
        ("qwen2.5-7b", "qwen2.5-7b", "name", None),
        ("Qwen2.5_7B", "qwen2.5-7b", "name", None),
        ("QWEN 2.5 7B", "qwen2.5-7b", "name", None),
        ("qwen2_5_7b", "qwen2.5-7b", "name", None),
        ("qwen25_7b", "qwen2.5-7b", "name", None),
        ("Qwen/Qwen2.5-7B-Instruct", "qwen2.5-7b", "name", "instruct"),
        ("Qwen2.5-7B-Instruct", "qwen2.5-7b", "name", "instruct"),
        ("通义千问2.5-7B", "qwen2.5-7b", "name", None),
        ("qwen2_0point5b", "qwen2-0.5b", "name", None),
        ("Llama3.1 -8B", "llama3.1-8b", "name", None),
        ("llama_3_1_8b", "llama3.1-8b", "name", None),
        ("Meta-Llama-3.1-8B-Instruct", "llama3.1-8b", "variant", "instruct"),
        ("InternVL2_5-8B", "internvl2.5-8b", "name", None),
        ("Qwen2.5-7B-Instruct-w8a8", "qwen2.5-7b", "variant", "instruct-w8a8"),
        ("Qwen2.5-7B-Instruct-GPTQ-Int4", "qwen2.5-7b", "variant", "instruct-gptq-int4"),
        ("Qwen/Qwen2.5-7B-AWQ", "qwen2.5-7b", "variant", "awq"),
        ("Qwen3-32B-FP8", "qwen3-32b", "variant", "fp8"),
        ("Qwen3-8B-bf16", "qwen3-8b", "variant", "bf16"),
        ("qwen3-8b-hf", "qwen3-8b", "variant", "hf"),
        ("DeepSeek-V3-Base", "deepseek-v3-671b", "name", "base"),
        ("qwen3-30b-a3b-instruct-2507", "qwen3-30b-a3b-2507", "name", None),
        ("/data/models/Qwen2.5-7B-Instruct", "qwen2.5-7b", "path", "instruct"),
        ("/data/models/Qwen2.5-7B-Instruct/", "qwen2.5-7b", "path", "instruct"),
        ("./model_from_hf/qwen2.5-7b-hf", "qwen2.5-7b", "path", "hf"),
        ("C:\\models\\Qwen3-8B", "qwen3-8b", "path", None),
        ("/hub/models--Qwen--Qwen3-8B/snapshots/9c925d64d72725edaf899c6cb9c377fd0709d9c5", "qwen3-8b", "path", None),
        ("/mnt/Qwen3-8B/snapshots/abc", "qwen3-8b", "path", None),
        ("ckpt/Qwen3-8B/global_step_100/actor/huggingface", "qwen3-8b", "path", None),
        ("/saves/qwen3-8b/checkpoint-500", "qwen3-8b", "path", None),
    ],
)
def test_found(names, written, model, how, variant):
    assert names.model(written) == Match(model, how, variant)


@pytest.mark.parametrize(
    ("written", "model"),
    [
        ("DeepSeek-R1", "deepseek-r1-671b"),
        ("deepseek_r1", "deepseek-r1-671b"),
        ("deepseek-ai/DeepSeek-R1-0528", "deepseek-r1-671b"),
        ("/models/DeepSeek-R1/", "deepseek-r1-671b"),
        ("DeepSeek-R1-Distill-Qwen-7B", "deepseek-r1-distill-qwen-7b"),
        ("/models/DeepSeek-R1-Distill-Llama-70B", "deepseek-r1-distill-llama-70b"),
    ],
)
def test_r1_is_the_large_one_and_its_distilled_models_are_not(con, names, written, model):
    assert names.model(written).id == model
    ((model_type, experts),) = con.execute("SELECT model_type, num_experts FROM model WHERE id = ?", [model]).fetchall()
    distilled = "distill" in model
    assert (experts is None) == distilled
    assert model_type in (("qwen2", "llama") if distilled else ("deepseek_v3",))


@pytest.mark.parametrize(
    "written",
    [
        "",
        " ",
        "/",
        "qwen",
        "qwen2.5",
        "Qwen2-57B",
        "Qwen2.5-7.5B",
        "Qwen3.1-7B",
        "Qwen2.5-Maths-7B",
        "DeepSeek-R1-Distill-Qwen-9B",
        "DeepSeek-R1-Distill",
        "/models/DeepSeek-R1/Distill-Qwen-9B",
        "/Qwen2.5-7B/MyModel-13B",
        "/Qwen2.5-7B/qwen-tuned",
        "7B",
        "x" * 100_000,
        "-1" * 3000,
        "'; DROP TABLE model; --",
    ],
)
def test_a_miss_is_no_guess(names, written):
    assert names.model(written) is None


def test_suggestions_are_near(names):
    assert names.suggest_models("qwen3-8")[0] == "qwen3-8b"
    assert "qwen2.5-7b" in names.suggest_models("/models/Qwen2.5-7BB/")
    assert names.suggest_models("§§§") == []
    assert names.suggest_features("loraa")[0] == "lora"
    assert names.suggest_frameworks("llamafactori") == ["llamafactory"]
    assert names.suggest_releases("ascendfactory", "6.5.96")[0] == "6.5.906"
    assert names.suggest_products("ascendfactry") == ["ascendfactory"]


def test_a_variant_is_its_entry(names):
    assert names.model("Qwen/Qwen2.5-Math-7B").id == "qwen2.5-7b"
    assert names.model("/data/QwQ-32B").id == "qwen2.5-32b"


def test_every_name_of_every_model_finds_it(con, names):
    written = con.execute("SELECT written, model FROM model_alias").fetchall()
    hub = con.execute("SELECT unnest(hf_ids), id FROM model").fetchall()
    assert len(written) >= 300
    assert len(hub) >= 100
    found = [(name, model, names.model(name)) for name, model in written + hub]
    wrong = [(name, model, match) for name, model, match in found if match is None or match.id != model]
    assert wrong == []


def test_no_normal_form_means_two_models(con):
    assert (
        con.execute("SELECT normalised FROM model_alias GROUP BY 1 HAVING count(DISTINCT model) > 1").fetchall() == []
    )


def test_series(names):
    models = names.series("Qwen2.5系列")
    assert models == names.series("qwen2.5 series")
    assert "qwen2.5-7b" in models
    assert "qwen2.5-vl-7b" not in models
    assert names.series("no such series") == names.series("") == []


@pytest.mark.parametrize("written", ["LLaMA Factory", "llama_factory", "LLaMA-Factory", "llamafactory"])
def test_frameworks(names, written):
    assert names.framework(written) == "llamafactory"


def test_features_and_products(names):
    assert names.feature("LoRA") == names.feature("Lora 微调") == "lora"
    assert names.feature("ZeRO-3") == "zero-3"
    assert names.feature("lor") is None
    assert names.product("AscendFactory") == "ascendfactory"
    assert names.product("ascend-nothing") is None


def test_releases(names):
    assert names.release("llamafactory", "v0.9.3") == names.release("llamafactory", "0.9.3") == "0.9.3"
    assert names.release("ascendfactory", "0.9.3") is None


def test_ordinals(con, names):
    known = [
        row[0]
        for row in con.execute("SELECT release FROM release WHERE product = 'llamafactory' ORDER BY ordinal").fetchall()
    ]
    assert len(known) >= 10
    assert [ordinal(con, "llamafactory", release) for release in known] == list(range(len(known)))
    at = known.index("0.9.3")
    assert names.ordinal("llamafactory", "V0.9.3") == at
    assert names.ordinal("llamafactory", "0.9.3.dev7") == names.ordinal("llamafactory", "0.9.3rc1") == at - 0.5
    assert names.ordinal("llamafactory", "0.9.3.post1") == at + 0.5
    assert names.ordinal("llamafactory", "0.9.3+cpu") == at
    assert names.ordinal("llamafactory", "0.9.33") is None
    assert names.ordinal("nobody", "0.9.3") is None


def test_normal_forms():
    assert normal("Qwen2.5_7B") == "qwen-2.5-7-b"
    assert normal("Qwen2-57B") == "qwen-2-57-b"
    assert normal("0point5b") == normal("0p5b") == "0.5-b"
    assert squashed("REINFORCE++") == squashed("reinforce-plus-plus")
