"""npu-smi output of single- and dual-chip cards: the right chip, count, memory and driver."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from ascend_compat.stack.read import read_stack, read_text

SAMPLES = Path(__file__).resolve().parent.parent / "samples" / "npu-smi"

EXPECTED = {
    "a2-8.txt": ("Ascend910B3", "A2", 8, 64.0, True, "24.1.0.6"),
    "a3-16.txt": ("Ascend910", "A3", 16, 64.0, True, "25.2.1"),
    "310p-duo.txt": ("Ascend310P3", "310P", 2, 43.2, False, "24.1.rc2.3"),
    "910a-8.txt": ("Ascend910A", "910", 8, 32.0, False, "23.0.3"),
    "910b4-2.txt": ("Ascend910B4", "A2", 2, 32.0, True, "24.1.rc2"),
}


def test_every_sample_is_expected_and_marked_as_written_by_us() -> None:
    assert sorted(path.name for path in SAMPLES.iterdir()) == sorted(EXPECTED)
    for path in SAMPLES.iterdir():
        assert path.read_text().startswith("# Written for these tests"), path.name


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_sample_reads_as_its_machine(name: str, con: duckdb.DuckDBPyConnection) -> None:
    chip, family, devices, memory, bf16, driver = EXPECTED[name]
    facts = read_stack(str(SAMPLES / name)).facts(con)
    assert facts["chip"] == chip
    assert facts["chip_family"] == family
    assert facts["host_devices"] == devices
    assert facts["device_memory_gib"] == memory
    assert facts["has_bf16"] is bf16
    assert facts["driver_version"] == driver


def test_a_bare_910_with_one_chip_a_card_and_no_memory_stays_unknown(con: duckdb.DuckDBPyConnection) -> None:
    facts = read_text("npu_type: Ascend910\ncann: 8.5.0\n", "x").facts(con)
    assert "chip_family" not in facts


def test_the_digit_of_a_grade_is_no_generation(con: duckdb.DuckDBPyConnection) -> None:
    for name, family in {
        "910B3": "A2", "Ascend910B2C": "A2", "910B": "A2", "Ascend910_9382": "A3", "910C": "A3", "ascend910_93": "A3",
        "910PremiumA": "910", "910 ProB": "910", "310P1": "310P", "310B4": "310B", "Ascend950PR_957c": "950", "Snt9b23": "A3",
    }.items():  # fmt: skip
        assert read_text(f"npu_type: {name}", "x").facts(con)["chip_family"] == family, name


def test_a_table_inside_other_lines_leaves_those_lines_to_the_reader(con: duckdb.DuckDBPyConnection) -> None:
    table = (SAMPLES / "a2-8.txt").read_text()
    facts = read_text(f"cann: 8.3.RC1\n{table}torch==2.7.1\n", "x").facts(con)
    assert (facts["cann_version"], facts["torch_version"], facts["host_devices"]) == ("8.3.RC1", "2.7.1", 8)
