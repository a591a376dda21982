"""Models: architecture facts by name, and every way a model is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ascend_compat.matrix.build import Table, in_both, json_text, of_kind
from ascend_compat.matrix.normal import normal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ascend_compat.matrix.documents import Document

# fact -> (where it stands in a model document, names it may have there)
FACTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "num_layers": ("arch", ("num_hidden_layers",)),
    "hidden_size": ("arch", ("hidden_size",)),
    "ffn_hidden_size": ("arch", ("intermediate_size",)),
    "moe_intermediate_size": ("arch", ("moe_intermediate_size",)),
    "shared_expert_intermediate_size": ("arch", ("shared_expert_intermediate_size",)),
    "num_attention_heads": ("arch", ("num_attention_heads",)),
    "num_key_value_heads": ("arch", ("num_key_value_heads",)),
    "head_dim": ("arch", ("head_dim",)),
    "vocab_size": ("arch", ("vocab_size",)),
    "num_experts": ("arch", ("n_routed_experts", "num_experts", "num_local_experts")),
    "num_experts_per_tok": ("arch", ("num_experts_per_tok",)),
    "num_shared_experts": ("arch", ("n_shared_experts", "num_shared_experts")),
    "first_k_dense_replace": ("arch", ("first_k_dense_replace",)),
    "moe_layer_freq": ("arch", ("moe_layer_freq",)),
    "n_group": ("arch", ("n_group",)),
    "topk_group": ("arch", ("topk_group",)),
    "num_nextn_predict_layers": ("arch", ("num_nextn_predict_layers",)),
    "max_position_embeddings": ("context", ("max_position_embeddings",)),
    "kv_lora_rank": ("arch", ("kv_lora_rank",)),
    "q_lora_rank": ("arch", ("q_lora_rank",)),
    "qk_nope_head_dim": ("arch", ("qk_nope_head_dim",)),
    "qk_rope_head_dim": ("arch", ("qk_rope_head_dim",)),
    "v_head_dim": ("arch", ("v_head_dim",)),
    "sliding_window": ("arch", ("sliding_window",)),
    "vision_num_layers": ("vision", ("num_hidden_layers",)),
    "vision_hidden_size": ("vision", ("hidden_size",)),
    "vision_num_attention_heads": ("vision", ("num_attention_heads",)),
    "vision_intermediate_size": ("vision", ("intermediate_size",)),
}
# facts of a variant that make it another model than the entry it stands in
_SHAPE = frozenset(name for part, names in FACTS.values() if part == "arch" for name in names)
_TEXTS = ("id", "name_en", "name_zh", "family", "series_en", "series_zh", "model_type", "modality", "type")


def tables(documents: Sequence[Document]) -> list[Table]:
    """``model`` and ``model_alias``."""
    model = Table(
        "model",
        {
            **dict.fromkeys(_TEXTS, "VARCHAR"),
            "variant_of": "VARCHAR",
            "base_model": "VARCHAR",
            "total_params": "BIGINT",
            "active_params": "BIGINT",
            "params": "VARCHAR",
            **dict.fromkeys(FACTS, "BIGINT"),
            "tie_word_embeddings": "BOOLEAN",
            "attention": "VARCHAR",
            "dtype": "VARCHAR",
            "license": "VARCHAR",
            "confidence": "VARCHAR",
            "architectures": "VARCHAR[]",
            "hf_ids": "VARCHAR[]",
            "aliases": "VARCHAR[]",
            "sources": "VARCHAR",
            "body": "VARCHAR",
            "path": "VARCHAR",
        },
    )
    alias = Table("model_alias", dict.fromkeys(("normalised", "model", "kind", "written"), "VARCHAR"))
    for document in of_kind(documents, "models"):
        for body in document.body.get("models") or ():
            model.add(**_model(body, document))
            seen: set[str] = set()
            for kind, written in _names(body):
                key = normal(written)
                if key and key not in seen:
                    seen.add(key)
                    alias.add(normalised=key, model=body["id"], kind=kind, written=written)
    return [model, alias]


def _model(body: dict[str, Any], document: Document) -> dict[str, Any]:
    english, chinese = in_both(body.get("names"))
    series_en, series_zh = in_both(body.get("series"))
    arch = body.get("arch") or {}
    params = body.get("params") or {}
    facts = {}
    for name, (part, keys) in FACTS.items():
        held = body.get(part) or {}
        facts[name] = next((held[key] for key in keys if held.get(key) is not None), None)
    return {
        "id": body["id"],
        "name_en": english or body["id"],
        "name_zh": chinese or body["id"],
        "family": body.get("family") or document.body.get("family"),
        "series_en": series_en,
        "series_zh": series_zh,
        "model_type": body.get("model_type"),
        "modality": body.get("modality"),
        "type": body.get("type"),
        "variant_of": body.get("variant_of"),
        "base_model": body.get("base_model"),
        "total_params": params.get("total_exact"),
        "active_params": params.get("active_exact"),
        "params": params.get("total"),
        **facts,
        "tie_word_embeddings": arch.get("tie_word_embeddings"),
        "attention": arch.get("attention"),
        "dtype": body.get("dtype"),
        "license": body.get("license"),
        "confidence": body.get("confidence"),
        "architectures": list(body.get("architectures") or ()) or None,
        "hf_ids": list(body.get("hf_ids") or ()),
        "aliases": list(body.get("aliases") or ()),
        "sources": json_text(body.get("sources") or []),
        "body": json_text(body),
        "path": document.path,
    }


def _names(body: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "id", str(body["id"])
    names = body.get("names") or {}
    for written in dict.fromkeys(filter(None, (names.get("en"), names.get("zh")))):
        yield "name", str(written)
    variants = [variant["hf_id"] for variant in body.get("variants") or () if not set(variant) & _SHAPE]
    for written in (*(body.get("hf_ids") or ()), *variants):
        yield "hugging-face", str(written)
        yield "hugging-face", str(written).rsplit("/", 1)[-1]
    for written in body.get("aliases") or ():
        yield "alias", str(written)
