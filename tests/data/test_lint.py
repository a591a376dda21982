"""The reviewed data is sound, and the lint finds what is put wrong in a copy of it."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest
import yaml

from ascend_compat.matrix.documents import document_files, load_documents
from ascend_compat.matrix.lint import WARNINGS, Result, lint
from ascend_compat.resources import matrix_dir, schema_dir

AF = "products/ascendfactory/"


@pytest.fixture(scope="module")
def result() -> Result:
    return lint()


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Models, features and AscendFactory alone: whole in itself, and quick to check."""
    root = tmp_path / "matrix"
    for name in ("models", "codes", "products/ascendfactory"):
        shutil.copytree(matrix_dir() / name, root / name)
    for name in ("frameworks/features.yaml", "frameworks/facts/common.yaml"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(matrix_dir() / name, root / name)
    return root


def broken(root: Path, name: str, old: str, new: str) -> list[str]:
    """The errors after one edit, as ``line:column: sentence``."""
    file = root / name
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")
    return [f"{p.line}:{p.column}: {p.code} {p.sentence}" for p in lint(root).errors]


def test_the_matrix_has_no_errors(result: Result) -> None:
    assert [str(problem) for problem in result.errors] == []
    assert result.documents == len(document_files())
    assert result.documents > 80


def test_every_kind_has_a_schema() -> None:
    kinds = {document.kind for document in load_documents()}
    assert len(kinds) >= 10
    assert {kind for kind in kinds if not (schema_dir() / f"{kind}.schema.json").is_file()} == set()


def test_schemas_are_schemas() -> None:
    from jsonschema import Draft202012Validator

    files = list(schema_dir().glob("*.schema.json"))
    assert len(files) >= 11
    for file in files:
        Draft202012Validator.check_schema(json.loads(file.read_text(encoding="utf-8")))


def test_oddities_of_the_source_are_warnings(result: Result) -> None:
    warnings = [p for p in result.problems if p.severity == "warning" and AF in p.shown]
    assert Counter(p.code for p in warnings) == {"AC0101": 4, "AC0102": 33, "AC0103": 12}
    denied = [p.sentence.split(":")[0] for p in warnings if p.code == "AC0101"]
    assert denied == ["Qwen3-0.6B", "Qwen3-1.7B", "Qwen3-4B", "Qwen3-14B"]
    assert {p.shown.rsplit("/", 1)[-1] for p in warnings if p.code == "AC0103"} == {
        "6.5.908.llamafactory.yaml",
        "6.5.910.llamafactory.yaml",
    }


def test_every_code_the_lint_uses_is_in_the_catalogue() -> None:
    import re

    import ascend_compat.matrix

    folder = Path(ascend_compat.matrix.__path__[0])
    used = {code for file in folder.glob("lint*.py") for code in re.findall(r"AC0\d{3}", file.read_text("utf-8"))}
    body = yaml.safe_load((matrix_dir() / "codes/data.yaml").read_text("utf-8"))
    catalogue = {entry["code"]: entry["severity"] for entry in body["codes"]}
    assert used == set(catalogue)
    assert {code for code, severity in catalogue.items() if severity == "warning"} == WARNINGS


def test_the_copy_is_sound(copy: Path) -> None:
    assert lint(copy).errors == []


@pytest.mark.parametrize(
    ("name", "old", "new", "expected"),
    [
        (AF + "6.5.906.yaml", "verl: unsupported, ", "", "AC0020 Row DeepSeek-R1-671B: verl grpo is not stated."),
        (AF + "6.5.906.yaml", "models: [qwen2-0.5b]", "models: [qwen2-5b]", "AC0010 Model qwen2-5b is not known."),
        (AF + "6.5.906.yaml", "models: [qwen2-0.5b]", "models: [qwen2-7b]", "AC0022 qwen2-7b is in two rows"),
        (AF + "6.5.906.yaml", "features: [lora]", "features: [loar]", "AC0010 Feature loar is not known."),
        (AF + "6.5.906.yaml", "features: [lora]", "features: [packing]", "AC0026 mindspeed-llm covers packing in two"),
        (AF + "6.5.906.yaml", "- {id: lora, ", "- {id: packing, ", "AC0011 Column packing of mindspeed-llm"),
        (AF + "6.5.906.yaml", "lora: unsupported,", "lora: unsuported,", "AC0023 Column mindspeed-llm lora does not"),
        (AF + "6.5.906.yaml", "lora: unsupported,", "lora: unsupported, lore: supported,", "AC0021 DeepSeek-V2-Lite"),
        (AF + "6.5.906.yaml", "lora: unsupported,", "lora: {status: partial},", "AC0024 Partial support needs"),
        (
            AF + "6.5.906.yaml",
            "lora: unsupported,",
            "lora: unsupported, lora: supported,",
            "AC0002 lora is stated twice",
        ),
        (AF + "6.5.906.yaml", "release: 6.5.906", "release: 6.5.956", "AC0010 ascendfactory has no release 6.5.956"),
        (AF + "6.5.906.yaml", "source: {", "sauce: {", "AC0003 'source' is a required property"),
        (AF + "6.5.906.yaml", "rows:", "rows: [", "AC0001 Not readable as YAML"),
        (AF + "6.5.910.verl.yaml", "{status: partial", "{statsu: partial", "AC0003"),
        (AF + "6.5.910.verl.yaml", "DAPO: {features: [dapo]}", "DAPO: {features: [dpo]}", "AC0025 'DAPO' means dpo"),
        (AF + "6.5.910.verl.yaml", "package: vllm, ", "", "AC0024 A condition on a package"),
        (AF + "product.yaml", "id: 6.5.905", "id: 6.5.902", "AC0011 Release 6.5.902 of ascendfactory"),
        (
            AF + "product.yaml",
            "mindspeed-mm: {table: none",
            "mindspeed-mm: {table: full",
            "AC0031 mindspeed-mm of 6.5.908",
        ),
        (AF + "product.yaml", "verl: {table: full", "verl: {table: absent", "AC0031 verl of 6.5.906 is absent here"),
        ("models/qwen2.yaml", "aliases: [", "aliases: [Qwen2.5-7B, ", "AC0012 'Qwen2.5-7B' is claimed by"),
        ("models/qwen2.yaml", "id: qwen2-1.5b", "id: qwen2-0.5b", "AC0011 Model qwen2-0.5b is declared twice."),
        ("models/deepseek-r1-distill.yaml", "variant_of: qwen2.5-7b", "variant_of: qwen-8b", "AC0010 Model qwen-8b"),
        ("frameworks/facts/common.yaml", "type: integer", "type: int", "AC0003 type: 'int' is not one of"),
        ("codes/data.yaml", "code: AC0002", "code: AC0001", "AC0011 AC0001 is declared twice."),
        ("codes/data.yaml", "kind: codes", "kind: cods", "AC0004 No schema of kind cods."),
    ],
)
def test_a_slip_is_found(copy: Path, name: str, old: str, new: str, expected: str) -> None:
    found = broken(copy, name, old, new)
    assert [line for line in found if expected in line], found


def test_place_is_the_line_and_column_of_the_value(copy: Path) -> None:
    file = copy / AF / "6.5.906.yaml"
    lines = file.read_text(encoding="utf-8").splitlines()
    number = next(n for n, line in enumerate(lines, 1) if "models: [qwen3-8b]" in line)
    column = lines[number - 1].index("qwen3-8b") + 1
    found = broken(copy, AF + "6.5.906.yaml", "[qwen3-8b]", "[qwen3-88b]")
    assert found == [f"{number}:{column}: AC0010 Model qwen3-88b is not known."]


def test_all_slips_are_found_at_once(copy: Path) -> None:
    broken(copy, AF + "6.5.906.yaml", "[qwen3-8b]", "[qwen3-88b]")
    broken(copy, "models/qwen2.yaml", "aliases: [", "aliases: [Qwen2.5-7B, ")
    found = broken(copy, AF + "6.5.910.verl.yaml", "[qwen3-8b]", "[qwen3-99b]")
    assert len(found) == 3


RULES = """\
kind: rules
framework: verl
rules:
  - id: VE-X1
    topic: layout
    severity: impossible
    when: {when}
    requires: {requires}
    message: {{en: "{message}", zh: "张量并行"}}
    source: {{repo: verl-project/verl, path: a.py, commit: abcdef1}}
    rests_on: reading
    examples: {{pass: [{{facts: {{tensor_parallel: 2}}}}], fail: [{{facts: {{tensor_parallel: 3}}}}]}}
"""


@pytest.mark.parametrize(
    ("when", "requires", "message", "expected"),
    [
        ("tensor_parallel > 1", "num_attention_heads % tensor_parallel = 0", "{tensor_parallel} heads", None),
        ("tensor_parallel > 1", "world_size % tensor_paralel = 0", "x", "AC0051 Fact tensor_paralel is not declared."),
        ("tensor_parallel >", "tensor_parallel = 1", "x", "AC0050 DuckDB does not take this"),
        ("true", "tensor_parallel + 1", "x", "AC0050 The expression gives BIGINT"),
        ("true", "(select 1) = 1", "x", "AC0050 SQL in the data may not use 'select'."),
        ("true", "read_text('/etc/hosts') IS NULL", "x", "AC0050 SQL in the data may not use 'read_text'."),
        ("tensor_parallel IS DISTINCT FROM 2", "tensor_parallel = 1", "{tp}", "AC0051 The message names {tp}"),
    ],
)
def test_rules_compile_over_declared_facts(
    copy: Path, when: str, requires: str, message: str, expected: str | None
) -> None:
    (copy / "rules").mkdir()
    text = RULES.format(when=json.dumps(when), requires=json.dumps(requires), message=message)
    (copy / "rules/x.yaml").write_text(text, encoding="utf-8")
    found = [f"{p.code} {p.sentence}" for p in lint(copy).errors]
    if expected is None:
        assert found == []
    else:
        assert [line for line in found if line.startswith(expected)], found
