"""What the version tables say of a stack, as facts that rules compare: the pairs of its builds, the bounds of its framework."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ascend_compat.stack.facts import FRAMEWORKS, minor_of
from ascend_compat.stack.versions import cann_name, release_of, version_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ascend_compat.stack.tables import Record, Tables

_WILD = re.compile(r"x$", re.IGNORECASE)


def table_facts(tables: Tables, facts: Mapping[str, Any], today: str) -> dict[str, Any]:
    """Facts that follow from the tables for a stack; ``today`` is a month as ``2026-12``.

    Names that end in ``_source`` are no facts: they are the addresses that the facts of that stem come from.
    """
    found: dict[str, Any] = {"today": today}
    _torch_npu(tables, facts, found)
    _companions(tables, facts, found)
    _model(tables, facts, found)
    _rollout(tables, facts, found)
    _driver(tables, facts, found)
    _kernels(tables, facts, found)
    python = facts.get("python_version")
    if python:
        found["python_minor"] = minor_of(python)
    torch = facts.get("torch_release")
    if torch:
        found["torch_pythons"] = tables.pythons(torch) or None
    release = facts.get("ascendfactory_release")
    if release:
        rows = tables.documented("ascendfactory", release)
        found["ascendfactory_cann"] = _unique(row["cann"] for row in rows) or None
        found["ascendfactory_torch"] = _unique(row["torch"] for row in rows) or None
        found["ascendfactory_source"] = _unique(row["source"] for row in rows) or None
    return {name: value for name, value in found.items() if value is not None}


def _torch_npu(tables: Tables, facts: Mapping[str, Any], found: dict[str, Any]) -> None:
    cann = facts.get("cann_version")
    if cann:
        found["cann_official"] = version_key(cann) in tables.official_cann
    torch = facts.get("torch_release")
    if torch:
        found["line_builds"] = _unique(row["torch_npu"] for row in tables.builds_for(torch, None)) or None
        if cann:
            found["cann_torch_npu"] = _unique(row["torch_npu"] for row in tables.builds_for(torch, cann)) or None
    build = facts.get("torch_npu_version")
    if not build:
        return
    rows = tables.of_build(build)
    found["torch_npu_known"] = bool(rows)
    found["torch_npu_official"] = tables.is_official(build)
    found["torch_npu_torch"] = _unique([*(row["torch"] for row in rows), *([] if rows else [release_of(build)])])
    if torch and not any(version_key(torch) == version_key(known) for known in found["torch_npu_torch"]):
        found.setdefault("line_builds", None)
    elif torch:
        # the table may write a release differently (2.1 for 2.1.0): rules compare text
        found["torch_npu_torch"] = _unique([*found["torch_npu_torch"], torch])
    found["torch_npu_cann"] = _unique(row["cann"] for row in rows) or None
    found["pair_source"] = _unique(row.get("source", "") for row in rows) or None
    found["matching_cann"] = rows[0]["cann"] if rows else None
    if cann and found["torch_npu_cann"] and any(version_key(cann) == version_key(c) for c in found["torch_npu_cann"]):
        found["torch_npu_cann"] = _unique([*found["torch_npu_cann"], cann])
    found["documented_set"] = any(
        version_key(row.get("cann", "")) == version_key(cann or "")
        and version_key(row.get("vllm_ascend", "")) == version_key(facts.get("vllm_ascend_version") or "")
        for row in rows
        if "product" in row
    )
    if "line_builds" not in found or found["line_builds"] is None:
        listed = tables.builds_for(release_of(build), None)
        found["line_builds"] = _unique(row["torch_npu"] for row in listed) or None


def _companions(tables: Tables, facts: Mapping[str, Any], found: dict[str, Any]) -> None:
    """The torch line that the installed torchvision and torchaudio are built for, and the installed one."""
    torch = facts.get("torch_release")
    if torch:
        found["torch_minor"] = minor_of(torch)
    for package in ("torchvision", "torchaudio"):
        minor = minor_of(facts.get(f"{package}_version") or "")
        rows = [row for row in tables.rows("torch_vision") if minor and row.get(package) == minor]
        found[f"{package}_torch"] = rows[0]["torch"] if rows else None


def _model(tables: Tables, facts: Mapping[str, Any], found: dict[str, Any]) -> None:
    """The first transformers release with the classes of the job's model."""
    kind = facts.get("model_type")
    rows = [row for row in tables.rows("model_transformers") if row["model_type"] == kind] if kind else []
    found["model_transformers"] = rows[0]["transformers"] if rows else None


def _rollout(tables: Tables, facts: Mapping[str, Any], found: dict[str, Any]) -> None:
    vllm = facts.get("vllm_version")
    if vllm:
        found["vllm_vllm_ascend"] = _unique(
            row["vllm_ascend"]
            for row in tables.vllm_ascend
            if version_key(vllm) in (version_key(row["vllm"]), version_key(row.get("vllm_also", "")))
        )
        oldest = min(version_key(row["vllm"]) for row in tables.vllm_ascend)
        found["vllm_before_plugin"] = bool(version_key(vllm)) and version_key(vllm) < oldest
    version = facts.get("vllm_ascend_version")
    row = tables.vllm_ascend_release(version) if version else None
    if row is None:
        return
    pairs = [row["vllm"], *([row["vllm_also"]] if "vllm_also" in row else [])]
    pairs += [other["vllm"] for other in tables.sets if _same(other, "vllm_ascend", version) and "vllm" in other]
    if vllm and any(version_key(vllm) == version_key(pair) for pair in pairs):
        pairs.append(vllm)
    found["vllm_ascend_vllm"] = _unique(pairs)
    found["vllm_ascend_torch"] = row["torch"]
    found["vllm_ascend_torch_npu"] = row["torch_npu"]
    found["vllm_ascend_cann"] = row["cann"]
    found["vllm_ascend_python_min"] = row["python_min"]
    found["vllm_ascend_python_below"] = row["python_below"]


def _same(row: Record, name: str, version: str | None) -> bool:
    return version is not None and name in row and version_key(row[name]) == version_key(version)


def _driver(tables: Tables, facts: Mapping[str, Any], found: dict[str, Any]) -> None:
    driver = facts.get("driver_version")
    chip = tables.chip(str(facts.get("chip") or ""), None, facts.get("device_memory_gib"))
    if not driver or chip is None:
        return
    for row in tables.rows("hdk"):
        if row["card"] == chip["cloud"] and version_key(row["hdk"]) == version_key(driver):
            found["hdk_card"] = row["card"]
            found["hdk_end_of_service"] = row["end_of_service"]


def _kernels(tables: Tables, facts: Mapping[str, Any], found: dict[str, Any]) -> None:
    kernels = facts.get("kernels_chip")
    families = {row["family"] for row in (tables.chip(part) for part in re.split(r"[,\s]+", kernels or "")) if row}
    if len(families) == 1:
        found["kernels_chip_family"] = families.pop()


def framework_facts(
    tables: Tables, facts: Mapping[str, Any], framework: str | None, version: str | None
) -> list[dict[str, Any]]:
    """One set of facts for each framework the stack has (of the job's framework alone, where there is one)."""
    found = []
    for name in FRAMEWORKS if framework is None else (framework,):
        installed = facts.get(f"{name.replace('-', '_')}_version") or (version if name == framework else None)
        if not installed:
            continue
        rows = tables.documented(name, installed)
        canns = [cann_name(row["cann"]) for row in rows]
        for row in rows:
            canns += [part.strip() for part in row.get("cann_compatible", "").split(",") if part.strip()]
        stated = facts.get("cann_version")
        if stated and any(_matches(stated, pattern) for pattern in canns):
            canns.append(stated)
        canns += _at_least(rows, "cann_min", stated)
        torches = [row["torch"] for row in rows] + _at_least(rows, "torch_min", facts.get("torch_release"))
        cores = _unique(row["megatron"] for row in rows if "megatron" in row)
        made = {
            "stack_framework": name,
            "stack_framework_version": installed,
            "framework_cann": _unique(canns) or None,
            "framework_torch": _unique(torches) or None,
            "framework_core": cores[0] if len(cores) == 1 else None,
            "framework_source": _unique(row["source"] for row in rows) or None,
        }
        found.append({key: value for key, value in made.items() if value is not None})
    return found


def _at_least(rows: Iterable[Record], name: str, stated: str | None) -> list[str]:
    """The stated version, where a framework documents a lower limit that it reaches."""
    if stated and any(name in row and version_key(stated) >= version_key(row[name]) for row in rows):
        return [stated]
    return []


def _matches(version: str, pattern: str) -> bool:
    """Whether a CANN release is of a pattern such as ``8.5.x`` or ``8.3.RCx``."""
    if _WILD.search(pattern):
        stem = _WILD.sub("", pattern).lower()
        return version.lower().startswith(stem)
    return version_key(version) == version_key(pattern)


def bound_facts(tables: Tables, versions: Mapping[str, str], framework: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One set of facts for each package that the framework's release bounds and the stack has; ``versions`` by package."""
    found = []
    rows = tables.bounds(framework["stack_framework"], framework["stack_framework_version"])
    for row in rows:
        installed = versions.get(row["package"])
        if not installed or not version_key(installed):
            continue
        bound = {
            "package": row["package"],
            "package_version": installed,
            "bound_at_least": row.get("at_least"),
            "bound_at_most": row.get("at_most"),
            "bound_below": row.get("below"),
            "bound_exactly": row.get("exactly"),
            "bound_except": row["except"].split() if "except" in row else None,
            "bound_text": row["text"],
            "bound_enforced": row["enforced"],
            "bound_source": [row["source"]],
        }
        found.append({**framework, **{name: value for name, value in bound.items() if value is not None}})
    return found


def _unique(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(value for value in values if value and value != "unknown"))
