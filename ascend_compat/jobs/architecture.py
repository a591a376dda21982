"""The model a job trains, and its architecture facts: by name, by script name, or by its numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ascend_compat.jobs.model import Fact, Job, Problem, Span, Unresolved
from ascend_compat.jobs.spec import Spec

if TYPE_CHECKING:
    import duckdb

    from ascend_compat.matrix.names import Names

_NAMING = ("model", "model_path", "tokenizer_path", "tokenizer_name_or_path", "load_path", "checkpoint_load", "load")
# Column of the model table -> facts that state it, in one framework's words or another's.
_NUMBERS = {
    "num_layers": ("num_layers",),
    "hidden_size": ("hidden_size",),
    "num_attention_heads": ("num_attention_heads",),
    "num_key_value_heads": ("num_key_value_heads", "num_query_groups"),
    "ffn_hidden_size": ("ffn_hidden_size", "intermediate_size"),
    "moe_intermediate_size": ("moe_intermediate_size", "moe_ffn_hidden_size"),
    "num_experts": ("num_experts",),
    "vocab_size": ("vocab_size",),
}
_NEEDED = ("num_layers", "hidden_size", "num_attention_heads")
_TEXT_FACTS = ("model_type", "modality", "architectures")
_WORDS = re.compile(r"[^A-Za-z0-9.]+")


class Architecture:
    """Facts of the models that the matrix holds; kept for as long as one connection is asked."""

    _cache: tuple[object, Architecture] | None = None

    def __init__(self, source: duckdb.DuckDBPyConnection | Mapping[str, dict[str, Any]]) -> None:
        self.named: dict[str, str | None] = {}
        self._one: dict[str, dict[str, Any]] = {}
        self._source = source
        self._all: dict[str, dict[str, Any]] | None = dict(source) if isinstance(source, Mapping) else None

    @classmethod
    def of(cls, con: duckdb.DuckDBPyConnection) -> Architecture:
        """The one object of a connection."""
        if cls._cache is None or cls._cache[0] is not con:
            cls._cache = (con, cls(con))
        return cls._cache[1]

    @property
    def models(self) -> dict[str, dict[str, Any]]:
        """Every model's row, by id."""
        if self._all is None:
            self._all = self._rows("SELECT * FROM model")
        return self._all

    def _rows(self, query: str, *parameters: str) -> dict[str, dict[str, Any]]:
        assert not isinstance(self._source, Mapping)
        cursor = self._source.execute(query, list(parameters))
        columns = [entry[0] for entry in cursor.description or ()]
        rows = [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]
        return {str(row["id"]): row for row in rows}

    def facts(self, model: str) -> dict[str, Any]:
        """What is known of a model, by fact name; unknown ones left out."""
        held = self._all if self._all is not None else self._one
        if model not in held and self._all is None:
            columns = "* EXCLUDE (body, sources, hf_ids, aliases)"
            self._one[model] = self._rows(f"SELECT {columns} FROM model WHERE id = ?", model).get(model, {})
        row = held.get(model, {})
        return {name: value for name, value in row.items() if isinstance(value, int) or (value and name in _TEXT_FACTS)}

    def like(self, numbers: Mapping[str, Any], text_only: bool = False) -> list[str]:
        """Models in which none of the given numbers differs; variants of one that fits are left out."""
        if any(numbers.get(name) is None for name in _NEEDED):
            return []
        fitting = [model for model, row in self.models.items() if self._fits(row, numbers)]
        if text_only:
            fitting = [model for model in fitting if self.models[model].get("modality") in (None, "text")]
        base = min(fitting, key=len, default="")
        if all(model == base or model.startswith(f"{base}-") for model in fitting):
            return [base] if base else []
        return [model for model in fitting if self.models[model].get("variant_of") not in fitting]

    @staticmethod
    def _fits(row: Mapping[str, Any], numbers: Mapping[str, Any]) -> bool:
        if any(row.get(name) != numbers[name] for name in _NEEDED):
            return False
        if (row.get("num_experts") or 0) != (numbers.get("num_experts") or 0):
            return False
        return all(row.get(name) in (None, numbers.get(name)) or numbers.get(name) is None for name in _NUMBERS)


def name_model(job: Job, spec: Spec, names: Names | None, architecture: Architecture | None) -> None:
    """Sets ``job.model`` and the facts of that model that the job leaves open."""
    stated = _stated(job, names, architecture.named if architecture is not None else {})
    if stated is not None:
        job.model = stated
    elif architecture is not None:
        _recognise(job, names, architecture)
    if job.model is not None and architecture is not None:
        _fill(job, spec, architecture)


def _stated(job: Job, names: Names | None, known: dict[str, str | None]) -> str | None:
    if names is None:
        return None
    texts = [job.facts[name].value for name in _NAMING if name in job.facts and job.facts[name].origin == "stated"]
    texts += [s.value for s in job.launch.settings if s.key == "defaults.model" and isinstance(s.value, str)]
    for text in texts:
        if not isinstance(text, str) or not text:
            continue
        if text not in known:
            found = names.model(text)
            known[text] = found.id if found is not None else None
        if known[text] is not None:
            return known[text]
    return None


def _recognise(job: Job, names: Names | None, architecture: Architecture) -> None:
    numbers = {name: value for name, facts in _NUMBERS.items() if (value := _first(job, facts)) is not None}
    layers, noop = numbers.get("num_layers"), job.facts.get("noop_layers")
    if isinstance(layers, int) and noop is not None and isinstance(noop.value, list):
        numbers["num_layers"] = layers - len(noop.value)
    fitting = architecture.like(numbers, job.launch.framework == "mindspeed-llm")
    by_script = _by_script(job, names) if names is not None else []
    if not fitting:
        if any(numbers.get(name) is not None for name in _NEEDED):
            return
        fitting = by_script[:1]
        why = Unresolved("recognised by the script's name", "根据脚本文件名识别")
    else:
        why = Unresolved("recognised by its layers, hidden size and heads", "根据层数、隐藏层维度与注意力头数识别")
    chosen = next((model for model in by_script if model in fitting), fitting[0] if len(fitting) == 1 else None)
    if chosen is None:
        if fitting:
            span = next((job.facts[n].span for n in _NEEDED if n in job.facts and job.facts[n].span), None)
            place = span or Span(job.launch.file, job.launch.line)
            job.problems.append(Problem("AC2035", place, {"models": ", ".join(sorted(fitting)[:6])}))
        return
    job.model = chosen
    if "model" not in job.facts or job.facts["model"].value is None:
        job.facts["model"] = Fact("model", chosen, "derived", why=why)


def _first(job: Job, names: Iterable[str]) -> Any:
    """The value of the first of some facts that the job states."""
    found = (job.facts[name] for name in names if name in job.facts)
    return next((fact.value for fact in found if fact.value is not None and fact.origin == "stated"), None)


def _by_script(job: Job, names: Names) -> list[str]:
    """Models that a run of words of the job file's name means, longest run first."""
    stem = job.launch.file.replace("\\", "/").rpartition("/")[2].rpartition(".")[0]
    words = [word for word in _WORDS.split(stem) if word][:12]
    found: list[str] = []
    for text in _runs(words):
        if any(letter.isdigit() for letter in text):
            model = names.model(text)
            if model is not None and model.id not in found:
                found.append(model.id)
    return found


def _runs(words: list[str]) -> Iterable[str]:
    for size in range(min(5, len(words)), 0, -1):
        for start in range(len(words) - size + 1):
            yield "-".join(words[start : start + size])


def _fill(job: Job, spec: Spec, architecture: Architecture) -> None:
    model = job.model or ""
    why = Unresolved(f"architecture of {model}", f"{model} 的架构参数")
    stated_here = _architecture_stated(job)
    settable = {raw.get("fact") for raw in spec.keys.raw.values()} if stated_here else frozenset()
    known = architecture.facts(model)
    if job.launch.framework == "mindspeed-llm" and job.launch.product == "ascendfactory" and not stated_here:
        known = known | _in_flags(known)
    for name, value in known.items():
        if name not in spec.types or name in settable:
            continue
        before = job.facts.get(name)
        if before is not None and before.origin in ("stated", "unknown"):
            continue
        kind = spec.types[name]
        job.facts[name] = Fact(name, _as(kind, value), "model", why=why)


def _in_flags(known: Mapping[str, Any]) -> dict[str, Any]:
    """What the bundle writes into Megatron's flags, where those have words of their own."""
    heads, groups = known.get("num_attention_heads"), known.get("num_key_value_heads")
    flags = {
        "moe_router_topk": known.get("num_experts_per_tok"),
        "moe_ffn_hidden_size": known.get("moe_intermediate_size"),
    }
    if groups and groups != heads and not known.get("kv_lora_rank"):
        flags |= {"group_query_attention": True, "num_query_groups": groups}
    return {name: value for name, value in flags.items() if value is not None}


def _as(kind: str, value: Any) -> Any:
    if kind == "text" and not isinstance(value, str):
        return str(value)
    return value


def _architecture_stated(job: Job) -> bool:
    """Whether the job itself gives the architecture, so that what it leaves out is the framework's default.

    The bundle takes it from the checkpoint: there one number alone overrides one number.
    """
    if job.launch.framework not in ("mindspeed-llm", "mindspeed-rl"):
        return False
    needed = _NEEDED if job.launch.product == "ascendfactory" else ("num_layers",)
    return all(name in job.facts and job.facts[name].origin == "stated" for name in needed)
