"""The version tables: all rows are there, they order as their keys say, and every documented row is accepted."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from ascend_compat.check.stack import StackChecker
from ascend_compat.stack.model import Stack
from ascend_compat.stack.read import read_text
from ascend_compat.stack.tables import Tables
from ascend_compat.stack.versions import cann_name, version_key

ROWS = {
    "torch_npu": 62, "torch_python": 58, "torch_npu_lifecycle": 18, "vllm_ascend": 36, "products": 312, "sets": 43,
    "hdk": 15, "hardware": 30, "framework_bounds": 185,
}  # fmt: skip


@pytest.fixture(scope="module")
def tables(con: duckdb.DuckDBPyConnection) -> Tables:
    return Tables(con)


@pytest.fixture(scope="module")
def checker(con: duckdb.DuckDBPyConnection) -> StackChecker:
    return StackChecker(con, today="2026-05")


def _rejections(checker: StackChecker, lines: list[str]) -> list[str]:
    report = checker.report(read_text("\n".join(lines), "row"))
    return [f"{finding.code}: {finding.message.en}" for finding in report.findings if finding.severity == "error"]


@pytest.mark.parametrize("name", sorted(ROWS))
def test_a_table_has_all_its_rows(name: str, tables: Tables) -> None:
    assert len(tables.rows(name)) == ROWS[name]


def test_every_row_names_its_source(con: duckdb.DuckDBPyConnection, tables: Tables) -> None:
    for name in ROWS:
        if not tables.source(name):
            assert all(row["source"] for row in tables.rows(name)), name


def test_torch_npu_orders_as_its_key_says(tables: Tables) -> None:
    # the vendor's table goes from new to old: within a torch line, builds and CANN releases both fall
    checked = 0
    for torch in {row["torch"] for row in tables.builds} - {"1.8.1"}:
        line = [row for row in tables.builds if row["torch"] == torch]
        for newer, older in itertools.pairwise(line):
            assert version_key(newer["torch_npu"]) > version_key(older["torch_npu"]), (newer, older)
            assert version_key(newer["cann"]) > version_key(older["cann"]), (newer, older)
            checked += 1
    assert checked == 40


def test_cann_and_life_cycle_order_as_their_keys_say(tables: Tables) -> None:
    canns = list(dict.fromkeys(row["cann"] for row in tables.builds))
    assert len(canns) == 23
    assert [version_key(cann) for cann in canns] == sorted((version_key(cann) for cann in canns), reverse=True)
    lines = [row["torch"] for row in tables.rows("torch_npu_lifecycle")]
    assert [version_key(line) for line in lines] == sorted((version_key(line) for line in lines), reverse=True)


def test_every_torch_npu_row_is_accepted(checker: StackChecker, tables: Tables) -> None:
    accepted = 0
    for row in tables.builds:
        lines = [f"cann: {row['cann']}", f"torch=={row['torch']}", f"torch-npu=={row['torch_npu']}"]
        for python in tables.pythons(row["torch"])[:1]:
            lines.append(f"python: {python}")
        assert _rejections(checker, lines) == [], row
        accepted += 1
    print(f"{accepted} of 62 torch_npu rows accepted")
    assert accepted == 62


def test_every_vllm_ascend_row_is_accepted(checker: StackChecker, tables: Tables) -> None:
    accepted = 0
    for row in tables.vllm_ascend:
        for vllm in filter(None, (row["vllm"], row.get("vllm_also"))):
            lines = [
                f"cann: {row['cann']}", f"nnal: {row['cann']}", f"torch=={row['torch']}", f"torch-npu=={row['torch_npu']}",
                f"vllm=={vllm}", f"vllm-ascend=={row['vllm_ascend']}", "python: 3.11.9",
            ]  # fmt: skip
            report = checker.report(read_text("\n".join(lines), "row"))
            found = [finding.message.en for finding in report.findings if finding.severity != "note"]
            assert found == [], row
        accepted += 1
    print(f"{accepted} of 36 vllm-ascend rows accepted")
    assert accepted == 36


# how a component of a product's row is written in a stack file; the rest are told by their own name
KEYS = {
    "cann": "cann: {}", "cann_recommended": "cann: {}", "cann_min": "cann: {}", "cann_compatible": "cann: {}",
    "vllm (verl and mindspeed-rl rollout)": "vllm=={}",
    "pytorch": "torch=={}", "pytorch (mindspeed-llm)": "torch=={}", "torch_min": "torch=={}", "torch_recommended": "torch=={}",
    "torch_npu_min": "torch-npu=={}", "torch_npu_recommended": "torch-npu=={}", "torch_npu": "torch-npu=={}",
    "vllm_ascend": "vllm-ascend=={}", "vllm_ascend_recommended": "vllm-ascend=={}", "driver": "driver: {}", "hdk": "driver: {}",
    "driver_firmware": "driver: {}", "firmware-driver": "driver: {}", "python": "python: {}", "image": "container_image: {}",
    "image_pytorch21": "container_image: {}", "image_pytorch25": "container_image: {}", "docker_base": "{}",
    "mindspeed_core": "mindspeed=={}", "megatron": "megatron-core=={}", "megatron-lm": "megatron-core=={}",
}  # fmt: skip


def _lines(row: dict[str, Any]) -> Iterator[list[str]]:
    """A product's row as stack files, one for each version its cell lists."""
    component = row["component"].lower()
    for written in re.split(r"[,/;] |[;]", row["version"].replace("{snt9b,snt9b23}", "snt9b")):
        version = re.sub(r"^(==|>=|<=|v|releases/v?|Core |Ascend HDK |~)+", "", written.split(" (")[0].strip())
        if component == "docker_base":
            cann, python = re.match(r"cann (\S+).* py(\S+)", version).groups()  # type: ignore[union-attr]
            yield [f"cann: {cann_name(cann)}", f"python: {python}"]
        elif not version or " " in version:
            yield [f"{row['product']}: {row['release']}"] if row["product"] == "ascendfactory" else []
        else:
            yield [KEYS.get(component, f"{row['component']}=={{}}").format(version)]


def test_every_product_row_is_accepted(checker: StackChecker, tables: Tables) -> None:
    accepted = stacks = 0
    for row in tables.rows("products"):
        own = {
            "llamafactory": "llamafactory",
            "verl": "verl",
            "mindspeed-llm": "mindspeed-llm",
            "mindspeed-rl": "mindspeed-rl",
        }
        release = row["release"].lstrip("v")
        framework = [f"{own[row['product']]}=={release}"] if row["product"] in own and release[0].isdigit() else []
        for lines in _lines(row):
            if not lines and not framework:
                lines = [f"nodes: {len(row['version'])}"]
            assert _rejections(checker, [*framework, *lines]) == [], (row, lines)
            stacks += 1
        accepted += 1
    print(f"{accepted} of 312 product rows accepted, as {stacks} stacks")
    assert accepted == 312
    assert stacks > 330


def test_every_documented_set_is_accepted_whole(checker: StackChecker, tables: Tables) -> None:
    accepted = 0
    for row in tables.sets:
        lines = [f"cann: {row['cann']}", f"torch=={row['torch']}"]
        if row["torch_npu"] != "unknown":
            lines.append(f"torch-npu=={row['torch_npu']}")
        lines += [
            f"{name.replace('_', '-')}=={row[name]}" for name in ("vllm", "vllm_ascend", "transformers") if name in row
        ]
        python = row.get("python", row.get("python_min", "unknown"))
        lines += [f"python: {python}"] if python != "unknown" else []
        lines += [f"nnal: {row['cann']}"] if "vllm_ascend" in row else []
        if row["product"] in ("llamafactory", "verl", "mindspeed-llm", "mindspeed-rl") and row["release"][0].isdigit():
            lines.append(f"{row['product']}=={row['release']}")
        assert _rejections(checker, lines) == [], row
        accepted += 1
    assert accepted == 43


def test_sets_say_what_the_single_versions_say(tables: Tables) -> None:
    texts: dict[tuple[str, str], str] = {}
    for row in tables.rows("products"):
        key = row["product"], row["release"].lstrip("v")
        texts[key] = f"{texts.get(key, '')} {row['version'].lower()}"
    compared = 0
    for row in tables.sets:
        text = texts[row["product"], row["release"]]
        for name in ("cann", "torch", "vllm", "torch_npu", "transformers", "triton_ascend"):
            value = row.get(name, "unknown").lower()
            if value == "unknown" or (name == "torch_npu" and "torch_npu_line" in row):
                continue
            assert value in text, (row, name)
            compared += 1
    assert compared == 128


def test_torch_npu_of_a_line_follows_from_the_branch_names(tables: Tables) -> None:
    checked = 0
    branches = {row["branch"]: row["torch_npu"] for row in tables.builds}
    for row in tables.sets:
        if "torch_npu_line" in row:
            assert branches[f"v{row['torch']}-{row['torch_npu_line']}"] == row["torch_npu"], row
            checked += 1
    assert checked == 16


def test_chips_of_the_given_names_are_in_the_hardware_table(tables: Tables) -> None:
    socs = [
        "Ascend910B1", "910B2", "910B2C", "910B3", "910B4", "910B4-1", "Ascend910_9391", "910_9392", "910_9381", "910_9382",
        "910_9372", "910_9362", "910_9363", "Ascend910A", "910ProA", "910ProB", "910PremiumA", "Ascend310P1", "310P3", "310P5", "310P7",
    ]  # fmt: skip
    families = {soc: tables.chip(soc) for soc in socs}
    assert all(families.values())
    assert {row["family"] for row in families.values() if row} == {"A2", "A3", "910", "310P"}
    assert tables.chip("910B4")["memory_gib"] == "32"  # type: ignore[index]
    a3 = tables.chip("Snt9b23")
    assert a3 and (a3["per_server"], a3["smallest_unit"]) == ("16", "2")


def test_slips_of_the_sources_are_kept_with_a_note(tables: Tables) -> None:
    by_build = {row["torch_npu"]: row for row in tables.builds}
    assert by_build["1.5.0.post3"]["torch"] == "1.8.1" and "1.5.0" in by_build["1.5.0.post3"]["note_en"]
    assert "2.1.0.post3" in by_build["2.1.0.post4"]["note_en"]
    assert "2.10.0" not in by_build
    assert isinstance(read_text("torch-npu==2.10.0", "x"), Stack)
    assert tables.of_build("2.10.0")[0]["from"].startswith("vllm-ascend")


def test_bounds_are_those_of_the_tags(tables: Tables) -> None:
    stated = {(row["framework"], row["release"], row["package"]): row for row in tables.rows("framework_bounds")}
    for release, transformers, deepspeed in (
        ("0.9.1", "4.46.1", "0.14.4"), ("0.9.2", "4.49.0", "0.16.4"), ("0.9.3", "4.52.4", "0.16.9"), ("0.9.4", "4.57.1", "0.16.9"),
    ):  # fmt: skip
        assert stated["llamafactory", release, "transformers"]["at_most"] == transformers
        assert stated["llamafactory", release, "deepspeed"]["at_most"] == deepspeed
    assert stated["llamafactory", "0.9.4", "transformers"]["at_least"] == "4.51.0"
    assert stated["mindspeed-rl", "2.2.0", "transformers"]["exactly"] == "4.52.1"
    assert stated["verl", "0.7.0", "numpy"]["below"] == "2.0.0"
