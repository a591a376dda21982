"""Architecture facts against the parameter counts that others published."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from ascend_compat.matrix.documents import load_documents
from ascend_compat.matrix.normal import normal

TOLERANCE = {"exact": 1e-4, "rounded": 0.02}


def _models() -> list[dict[str, Any]]:
    return [model for document in load_documents() if document.kind == "models" for model in document.body["models"]]


MODELS = {model["id"]: model for model in _models()}


def _linear(inputs: int, outputs: int, bias: bool = False) -> int:
    return inputs * outputs + (outputs if bias else 0)


def _attention(a: dict[str, Any]) -> int:
    hidden, heads = a["hidden_size"], a["num_attention_heads"]
    if "kv_lora_rank" in a:
        nope, rope, value = a["qk_nope_head_dim"], a["qk_rope_head_dim"], a["v_head_dim"]
        latent, query = a["kv_lora_rank"], a.get("q_lora_rank")
        wide = heads * (nope + rope)
        count = _linear(hidden, query) + query + _linear(query, wide) if query else _linear(hidden, wide)
        count += _linear(hidden, latent + rope) + latent + _linear(latent, heads * (nope + value))
        return count + _linear(heads * value, hidden)
    size = a["head_dim"]
    wide, narrow = heads * size, a["num_key_value_heads"] * size
    bias = a["attention_bias"]
    count = _linear(hidden, wide * (2 if a.get("attn_output_gate") else 1))
    count += 2 * _linear(hidden, narrow) + _linear(wide, hidden, bias == "qkvo")
    if bias in ("qkv", "qkvo"):
        count += wide + 2 * narrow
    return count + (2 * size if a.get("qk_norm") else 0) + (heads if a.get("attention_sinks") else 0)


def _gated_delta(a: dict[str, Any]) -> int:
    linear, hidden = a["linear_attention"], a["hidden_size"]
    keys = linear["num_key_heads"] * linear["key_head_dim"]
    values = linear["num_value_heads"] * linear["value_head_dim"]
    heads = linear["num_value_heads"]
    projected = _linear(hidden, 2 * keys + 2 * values) + _linear(hidden, 2 * heads)
    return (
        projected
        + (2 * keys + values) * linear["conv_kernel_dim"]
        + 2 * heads
        + linear["value_head_dim"]
        + values * hidden
    )


def _experts(a: dict[str, Any]) -> tuple[int, int]:
    """Feed-forward parameters of a mixture layer: all of them, and those one token uses."""
    hidden, width, number = a["hidden_size"], a["moe_intermediate_size"], a["num_experts"]
    expert = 3 * hidden * width + (2 * width + hidden if a.get("expert_bias") else 0)
    router = _linear(hidden, number, bool(a.get("router_bias"))) + (number if a.get("router_correction_bias") else 0)
    shared_width = a.get("shared_expert_intermediate_size", width * a.get("n_shared_experts", 0))
    shared = 3 * hidden * shared_width + (hidden if a.get("shared_expert_gate") else 0)
    return number * expert + router + shared, a["num_experts_per_tok"] * expert + router + shared


def _text(a: dict[str, Any]) -> dict[str, int]:
    hidden, vocabulary = a["hidden_size"], a["vocab_size"] * a["hidden_size"]
    norms = a.get("norms_per_layer", 2) * hidden
    mixture = bool(a.get("num_experts"))
    dense_layers = a.get("first_k_dense_replace", 0) if mixture else a["num_hidden_layers"]
    every = a.get("linear_attention", {}).get("full_attention_interval")
    body = used = hidden
    for layer in range(a["num_hidden_layers"]):
        mixer = _gated_delta(a) if every and (layer + 1) % every else _attention(a)
        held, active = (3 * hidden * a["intermediate_size"],) * 2 if layer < dense_layers else _experts(a)
        body += mixer + norms + held
        used += mixer + norms + active
    head = 0 if a["tie_word_embeddings"] else vocabulary
    found = {
        "text": body + vocabulary + head,
        "non_embedding": body,
        "embedding": vocabulary + head,
        "active_text": used + vocabulary + head,
        "active_text_no_emb": used + (head or vocabulary),
        "active_body": used,
    }
    if a.get("num_nextn_predict_layers"):
        held = _experts(a)[0] if mixture else 3 * hidden * a["intermediate_size"]
        layer_count = _attention(a) + norms + held + 2 * hidden * hidden + 3 * hidden
        found["mtp"] = a["num_nextn_predict_layers"] * layer_count
    return found


def _vision(v: dict[str, Any], text_hidden: int) -> tuple[int, int]:
    """Tower and projector."""
    hidden, layers, width, patch = v["hidden_size"], v["num_hidden_layers"], v["intermediate_size"], v["patch_size"]
    norm = 2 * hidden
    attention = 4 * _linear(hidden, hidden, True)
    two_layer = _linear(hidden, width, True) + _linear(width, hidden, True)
    merged = hidden * v.get("spatial_merge_size", 2) ** 2
    out = v.get("out_hidden_size", text_hidden)
    merger = _linear(merged, merged, True) + _linear(merged, out, True)
    pixels = 3 * patch * patch * v.get("temporal_patch_size", 1) * hidden
    places = (v.get("image_size", 0) // patch) ** 2
    family = v["family"]
    if family == "qwen2_vl":
        return pixels + layers * (attention + two_layer + 2 * norm), norm + merger
    if family == "qwen2_5_vl":
        gated = 2 * _linear(hidden, width, True) + _linear(width, hidden, True)
        return pixels + layers * (attention + gated + 2 * hidden), hidden + merger
    if family == "qwen3_vl":
        deep = len(v["deepstack_visual_indexes"]) * (2 * merged + merger)
        tower = pixels + hidden + v["num_position_embeddings"] * hidden
        return tower + layers * (attention + two_layer + 2 * norm), norm + merger + deep
    if family == "intern_vit":
        layer = 4 * hidden * hidden + hidden + (3 * hidden if v["qkv_bias"] else 0) + two_layer + 2 * hidden
        layer += 2 * (hidden if v["norm_type"] == "rms_norm" else norm) + (2 * hidden if v["qk_normalization"] else 0)
        tower = pixels + hidden + hidden + (places + 1) * hidden + layers * layer
        return tower, 2 * merged + _linear(merged, text_hidden, True) + _linear(text_hidden, text_hidden, True)
    if family == "siglip":
        tower = pixels + hidden + places * hidden + layers * (attention + two_layer + 2 * norm) + norm
        return tower, hidden + hidden * text_hidden
    assert family == "llama4_vision"
    tower = pixels + hidden + (places + 1) * hidden + 2 * norm + layers * (attention + two_layer + 2 * norm)
    between, behind = v["projector_input_dim"], v["projector_output_dim"]
    return tower, width * between + between * behind + behind * text_hidden


def _audio(a: dict[str, Any]) -> int:
    size, width, out = a["d_model"], a["encoder_ffn_dim"], a["output_dim"]
    convolutions = a["num_mel_bins"] * size * 3 + size + size * size * 3 + size
    layer = 4 * size * size + 3 * size + _linear(size, width, True) + _linear(width, size, True) + 4 * size
    return convolutions + a["encoder_layers"] * layer + 2 * size + _linear(size, out, True) + 2 * out


def counts(model: dict[str, Any]) -> dict[str, int]:
    """Parameter counts of a model from its facts alone."""
    found = _text(model["arch"])
    towers = 0
    if "vision" in model:
        found["vision"], found["projector"] = _vision(model["vision"], model["arch"]["hidden_size"])
        towers += found["vision"] + found["projector"]
    if "audio" in model:
        found["audio"] = _audio(model["audio"])
        towers += found["audio"]
    found["total"] = found["text"] + towers
    found["active"] = (found["active_text"] if model["type"] == "moe" else found["text"]) + towers
    return found


def test_65_models_of_the_tables_and_38_of_reports_and_their_figures() -> None:
    assert len(MODELS) == len(_models()) == 65 + 38
    assert Counter(model["type"] for model in MODELS.values()) == {"dense": 83, "moe": 20}
    figures = [figure for model in MODELS.values() for figure in model["published"]]
    assert Counter(figure["kind"] for figure in figures) == {"exact": 87, "rounded": 87}


@pytest.mark.parametrize("name", list(MODELS))
def test_counts_follow_from_the_facts(name: str) -> None:
    model = MODELS[name]
    found = counts(model)
    assert found["total"] == model["params"]["total_exact"]
    active = found["active_text"] if model["type"] == "moe" else found["total"]
    assert active == model["params"]["active_exact"]
    for figure in model["published"]:
        parts = figure["counts"].split("+")
        if "talker" in parts:
            continue
        have = sum(found[part] for part in parts) + figure.get("plus", 0)
        allowed = figure.get("tolerance", TOLERANCE[figure["kind"]])
        assert abs(have / figure["value"] - 1) <= allowed, figure


def test_no_name_leads_to_two_models() -> None:
    owners: dict[str, set[str]] = {}
    for name, model in MODELS.items():
        names = [name, *model["names"].values(), *model["hf_ids"], *model["aliases"]]
        names += [variant["hf_id"] for variant in model.get("variants", [])]
        for text in names:
            owners.setdefault(normal(text.rsplit("/", 1)[-1]), set()).add(name)
    assert len(owners) > 250
    assert {name: ids for name, ids in owners.items() if len(ids) > 1} == {}


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("deepseek-r1-distill-qwen-1.5b", "qwen2.5-1.5b"),
        ("deepseek-r1-distill-qwen-7b", "qwen2.5-7b"),
        ("deepseek-r1-distill-qwen-14b", "qwen2.5-14b"),
        ("deepseek-r1-distill-qwen-32b", "qwen2.5-32b"),
        ("deepseek-r1-distill-llama-8b", "llama3.1-8b"),
        ("deepseek-r1-distill-llama-70b", "llama3.1-70b"),
    ],
)
def test_distilled_models_are_their_base_in_shape(name: str, base: str) -> None:
    assert MODELS[name]["variant_of"] == base
    here, there = MODELS[name]["arch"], MODELS[base]["arch"]
    for fact in ("num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads"):
        assert here[fact] == there[fact]


def test_series_have_both_names() -> None:
    chinese = [model["series"]["zh"] for model in MODELS.values()]
    assert all(name.endswith("系列") for name in chinese)
    assert len(set(chinese)) == 30
