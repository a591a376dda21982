"""Vendor pages into table documents: round trips, unknown words, and what a newer page changes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner, Result

from ascend_compat.errors import UsageError
from ascend_compat.matrix.importing_files import plan, write
from ascend_compat.matrix.importing_grid import read_grid
from ascend_compat.matrix.render import page
from ascend_compat.matrix.render_yaml import render
from ascend_compat.resources import data_root, matrix_dir

SEED = Path(__file__).parent / "seed" / "590603-zh.txt"
COMMITTED = "products/ascendfactory/6.5.906.yaml"
Edit = Callable[[str], str]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of AscendFactory, the models and the features that a test may write to."""
    shutil.copytree(data_root() / "schema", tmp_path / "schema")
    for name in ("models", "products/ascendfactory"):
        shutil.copytree(matrix_dir() / name, tmp_path / "matrix" / name)
    features = tmp_path / "matrix" / "frameworks" / "features.yaml"
    features.parent.mkdir()
    shutil.copy(matrix_dir() / "frameworks" / "features.yaml", features)
    monkeypatch.setenv("ASCEND_COMPAT_DATA", str(tmp_path))
    monkeypatch.setenv("ASCEND_COMPAT_CACHE", str(tmp_path / "cache"))
    return tmp_path


def edited(tmp_path: Path, *changes: tuple[str, str], name: str = "page.txt") -> Path:
    text = SEED.read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    return file


def command(*words: str) -> Result:
    from ascend_compat.cli.matrix import matrix

    return CliRunner().invoke(matrix, words)


def test_seed_is_the_committed_document(con: duckdb.DuckDBPyConnection) -> None:
    found = plan(SEED, "ascendfactory", "6.5.906")
    committed = matrix_dir() / COMMITTED
    assert found.path == committed
    assert render(found.imported.body) == committed.read_text(encoding="utf-8")
    assert (found.changes, found.against, found.imported.remarks) == ([], "6.5.906", [])


@pytest.mark.parametrize("form", ["tsv", "markdown", "html"])
@pytest.mark.parametrize("language", ["zh", "en"])
def test_rendered_page_comes_back(con: duckdb.DuckDBPyConnection, tmp_path: Path, form: str, language: str) -> None:
    body = plan(SEED, "ascendfactory", "6.5.906").imported.body
    file = tmp_path / f"page.{form}"
    file.write_text(page(body, language, form), encoding="utf-8")
    again = plan(file, "ascendfactory", "6.5.906")
    assert again.changes == []
    if language == "zh" and form != "html":
        assert again.imported.body == body
    else:
        assert again.imported.body["columns"] == body["columns"]
        assert [r["models"] for r in again.imported.body["rows"]] == [r["models"] for r in body["rows"]]


def test_footnote_digit_is_set_aside_and_said(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    text = SEED.read_text(encoding="utf-8").rstrip("\n")
    assert text.endswith("NA")
    file = tmp_path / "page.txt"
    file.write_text(text + "2\n", encoding="utf-8")
    found = plan(file, "ascendfactory", "6.5.906")
    last = found.imported.body["rows"][-1]["mindspeed-rl"]["long-sequence"]
    assert last == {"status": "not-applicable", "text": "NA2"}
    assert len(found.imported.remarks) == 1
    assert "'NA2' is read as NA" in found.imported.remarks[0]
    assert page(found.imported.body, "zh", "tsv") == text + "2"


def test_unknown_names_are_all_said_and_nothing_is_written(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    file = edited(
        tmp_path, ("\tQwen3-8B\t", "\tQwen9-8B\t"), ("多样本pack 微调", "多样本打包"), ("\t❌\t", "\tmaybe\t")
    )
    before = (matrix_dir() / COMMITTED).read_bytes()
    with pytest.raises(UsageError) as raised:
        plan(file, "ascendfactory", "6.5.906")
    lines = str(raised.value).splitlines()
    assert len(lines) == 4
    assert "heading '多样本打包' of mindspeed-llm is not known; the nearest known one is '多样本pack 微调'" in lines[0]
    assert f"{file}:24:2: model 'Qwen9-8B' is not known; the nearest known one is qwen3-8b" in lines[2]
    assert "'maybe' under pre-training Lora/Full微调 is not known; known are NA, ✅, ❌" in lines[1]
    assert "nothing was imported" in lines[3]
    assert (matrix_dir() / COMMITTED).read_bytes() == before


def test_an_unknown_model_that_starts_a_new_series_is_said(tmp_path: Path) -> None:
    file = tmp_path / "table.tsv"
    file.write_text("模型系列\t模型\tMindSpeed-LLM\tLLaMA-Factory\n全新系列\tNoSuch-1B\t√\t×\n", encoding="utf-8")
    with pytest.raises(UsageError, match="model 'NoSuch-1B' is not known"):
        plan(file, "ascendfactory", "6.5.906")


def test_unknown_word_of_a_cell_is_said(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    file = edited(tmp_path, ("\t❌\t", "\tmaybe\t"))
    with pytest.raises(UsageError, match=r"page\.txt:8:45: 'maybe' under pre-training Lora/Full微调 is not known"):
        plan(file, "ascendfactory", "6.5.906")


def test_newer_page_shows_changes_and_is_written_when_asked(data: Path) -> None:
    file = edited(data, ("Qwen3-14B\t✅\t✅", "Qwen3-14B\t✅\t❌"), ("Qwen2系列\tQwen2-0.5B", "Qwen2系列\tQwen2.5-3B"))
    words = ["import", str(file), "--product", "ascendfactory", "--release", "6.5.913"]
    shown = command(*words)
    assert shown.exit_code == 0, shown.output
    assert "gone row: qwen2-0.5b" in shown.output
    assert "new row: qwen2.5-3b" in shown.output
    assert "nothing written; --write does" in shown.output
    target = data / "matrix/products/ascendfactory/6.5.913.yaml"
    assert not target.exists()
    refused = command(*words, "--write")
    assert isinstance(refused.exception, UsageError)
    assert not target.exists()
    written = command(*words, "--write", "--source", "https://example.com/591303.html", "--date", "2026-05-01")
    assert written.exit_code == 0, written.output
    assert target.exists()
    from ascend_compat.matrix.lint import lint

    found = [problem for problem in lint(data / "matrix").errors if "ascendfactory" in problem.shown]
    assert found == []
    again = plan(file, "ascendfactory", "6.5.913")
    assert (again.changes, again.against, again.registered) == ([], "6.5.913", True)


def test_changes_of_cells_name_both_words(data: Path) -> None:
    file = edited(data, ("Qwen3-14B\t✅\t✅", "Qwen3-14B\t✅\t❌"))
    found = plan(file, "ascendfactory", "6.5.906")
    assert found.changes == ["qwen3-14b, mindspeed-llm, lora: supported -> unsupported"]
    write(found)
    assert plan(file, "ascendfactory", "6.5.906").changes == []
    assert plan(SEED, "ascendfactory", "6.5.906").changes == [
        "qwen3-14b, mindspeed-llm, lora: unsupported -> supported"
    ]


def test_set_cells_of_one_framework_table(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    file = tmp_path / "verl.md"
    file.write_text(
        "## VeRL\n\n"
        "| Model | Algorithms | Training backend | LoRA | Sequence length |\n"
        "|---|:---:|---|---|---|\n"
        "| Qwen3-8B | GRPO、PPO | FSDP, MindSpeed | Y (FSDP only) | 32k |\n"
        "| Qwen3-32B | GRPO, DAPO | FSDP | N | NA |\n",
        encoding="utf-8",
    )
    found = plan(file, "ascendfactory", "6.5.912", framework="verl")
    first, second = (row["verl"] for row in found.imported.body["rows"])
    assert first == {
        "algorithms": ["GRPO", "PPO"],
        "backend": ["FSDP", "MindSpeed"],
        "lora": "Y (FSDP only)",
        "length": "32k",
    }
    assert second == {"algorithms": ["GRPO", "DAPO"], "backend": ["FSDP"], "lora": "unsupported", "length": "NA"}
    assert found.against == "6.5.910"
    assert found.path.name == "6.5.912.verl.yaml"
    assert "qwen3-8b, verl, algorithms" not in "\n".join(found.changes)
    assert "qwen3-32b, verl, algorithms: supported (GRPO, DAPO, PPO) -> supported (GRPO, DAPO)" in found.changes


def test_html_spans_are_spread_out(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(
        "<h1>t</h1><table><tr><th rowspan=2>系列</th><th rowspan=2>模型</th><th colspan=2>VeRL</th></tr>"
        "<tr><th>GRPO</th><th><p>vllm推理后端</p></th></tr>"
        "<tr><td rowspan='2'>A</td><td>m1</td><td colspan=2>✅</td></tr><tr><td>m2</td><td>❌</td><td>NA</td></tr></table>",
        encoding="utf-8",
    )
    grid = read_grid(file)
    assert grid.header == 2
    assert grid.before == ["t"]
    assert [[cell.text for cell in row] for row in grid.rows[2:]] == [["A", "m1", "✅", "✅"], ["A", "m2", "❌", "NA"]]
    assert [grid.path(number) for number in grid.data_columns()] == [["VeRL", "GRPO"], ["VeRL", "vllm推理后端"]]
    assert grid.rows[3][0].merged


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"no table here\n", "no table"),
        (b"a\tb\nc\td\n", "no table with a column headed"),
        (b"<table><tr><td colspan=1000 rowspan=1000>x</td></tr></table>", "larger than"),
    ],
)
def test_bad_pages_are_refused_in_one_sentence(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "page"
    file.write_bytes(content)
    with pytest.raises(UsageError, match=message):
        read_grid(file)


@pytest.mark.parametrize("product", ["nosuch", "../models", ""])
def test_unknown_product(product: str) -> None:
    with pytest.raises(UsageError, match="is not known; known are ascendfactory"):
        plan(SEED, product, "6.5.906")


def test_missing_page(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_grid(tmp_path / "none")


def test_render_command_prints_the_page() -> None:
    shown = command("render", "--product", "ascendfactory", "--release", "6.5.906", "--lang", "zh")
    assert shown.output.rstrip("\n") == SEED.read_text(encoding="utf-8").rstrip("\n")
    several = command("render", "--product", "ascendfactory", "--release", "6.5.910")
    assert "give --framework, one of" in str(several.exception)
    one = command("render", "--product", "ascendfactory", "--release", "6.5.910", "--framework", "verl", "--lang", "en")
    assert "GRPO, DAPO, PPO" in one.output
