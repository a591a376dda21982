"""What a hostile job, matrix, evidence document or name can reach: nothing. See docs/security.md, which names these tests."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from trust_targets import sound

from ascend_compat.check.engine import Engine, Options
from ascend_compat.check.rules import Row, Rule, Vocabulary, Worded, evaluate
from ascend_compat.errors import UsageError
from ascend_compat.jobs import side_files
from ascend_compat.jobs.model import Span, Unresolved
from ascend_compat.jobs.read import read_file
from ascend_compat.matrix.query import select
from ascend_compat.matrix.store import connect
from ascend_compat.report.formats import FORMATS, render

MARK = "a-secret-of-the-host"
SECRET = json.dumps({"zero_optimization": {"stage": 3}, MARK: MARK})
LLAMAFACTORY = "stage: sft\nmodel_name_or_path: Qwen/Qwen2-7B\ndo_train: true\nfinetuning_type: full\n"
ESCAPES = "\x1b]0;title\x07\x1b[2J\x9b31m\u202e\r\b"


@pytest.fixture(scope="module")
def engine(cache: Path) -> Engine:
    return Engine(connect())


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project folder that is the working directory, with what it must not reach beside it and what it may reach inside."""
    for name in ("secret.json", "secret.yaml", "secret.sh", "model/secret.yaml", "home/project/inside.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(SECRET, encoding="utf-8")
    (tmp_path / "secret.sh").write_text(f"export MODEL={MARK}\n", encoding="utf-8")
    folder = tmp_path / "home" / "project"
    (folder / "link.json").symlink_to(tmp_path / "secret.json")
    (folder / "link.sh").symlink_to(tmp_path / "secret.sh")
    (folder / "linked").symlink_to(tmp_path)
    os.mkfifo(folder / "fifo.json")
    (folder / "huge.json").write_bytes(b" " * (side_files.MAX_BYTES + 1) + SECRET.encode())
    (folder / "folder.json").mkdir()
    monkeypatch.chdir(folder)
    return folder


PLACES = (
    "../../secret.json", "../secret.json", "{root}/secret.json", "link.json", "linked/secret.json", "{project}/../../secret.json",
    "fifo.json", "huge.json", "folder.json", "/dev/zero", "/dev/stdin", "/proc/self/environ", "/etc/passwd", "etc/passwd", "~/secret.json",
    "$HOME/secret.json", "inside.json\0", "file:///etc/passwd", "x" * 5000,
)  # fmt: skip


def shown(engine: Engine, path: Path) -> str:
    """Everything that is said of a job file, in all formats, and all that was understood of it."""
    read = read_file(str(path))
    reports = engine.check(read.launches, Options())
    texts = [render(form, reports, language) for form in FORMATS for language in ("en", "zh")]
    return "\n".join([*texts, repr(read.launches), repr(read.error)])


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("key", ["deepspeed", "accelerate"])
def test_no_side_file_outside_the_project_is_read(project: Path, key: str, place: str) -> None:
    name = place.replace("{root}", str(project.parents[1])).replace("{project}", str(project))
    reader = side_files.deepspeed if key == "deepspeed" else side_files.accelerate
    settings, problems = reader(name, Span("job.yaml", 1), Path())
    assert [setting for setting in settings if setting.guess is None] == []
    assert [problem.code for problem in problems] == ["AC2031"]
    assert side_files.find(name, Path(), ("..", "../..")) is None


def test_a_side_file_inside_the_project_is_read(project: Path) -> None:
    for name in ("inside.json", "./inside.json", str(project / "inside.json"), "../project/inside.json"):
        settings, problems = side_files.deepspeed(name, Span("job.yaml", 1), Path())
        assert settings[0].key == "deepspeed-json:zero_optimization.stage"
        assert settings[0].value == 3
        assert problems == []


def test_the_project_reaches_up_to_its_checkout_and_no_further(project: Path, tmp_path: Path) -> None:
    job = project / "examples" / "train"
    job.mkdir(parents=True)
    os.chdir(job)
    assert side_files.find("inside.json", Path()) is None
    (project / ".git").mkdir()
    found = side_files.find("inside.json", Path())
    assert found is not None and found.resolve() == project / "inside.json"
    assert side_files.find("secret.json", Path()) is None
    os.chdir("/")
    assert Path("/") not in side_files.roots(Path())


JOBS = {
    "deepspeed": ("job.yaml", LLAMAFACTORY + "deepspeed: ../../secret.json\n"),
    "fsdp": ("job.yaml", LLAMAFACTORY + "fsdp_config: ../../secret.json\ndataset_dir: ../..\ndataset: secret\n"),
    "accelerate": ("job.sh", "accelerate launch --config_file ../../secret.yaml src/train.py --stage sft --model_name_or_path x\n"),
    "a config on the command line": ("job.sh", "llamafactory-cli train ../../secret.yaml\n"),
    "a config by a link": ("job.sh", "llamafactory-cli train linked/secret.yaml\n"),
    "hydra's path": ("job.sh", "python3 -m verl.trainer.main_ppo --config-path=../.. --config-name=secret\n"),
    "hydra's absolute path": ("job.sh", "python3 -m verl.trainer.main_ppo --config-path={root} --config-name=secret\n"),
    "a model of MindSpeed-RL": ("job.yaml", "defaults:\n  - model: ../../../secret\nmegatron_training:\n  model: ../../../secret\nrl_config: {}\n"),
    "source": ("job.sh", "source ../../secret.sh\ntorchrun pretrain_gpt.py --num-layers 2 --save $MODEL\n"),
    "source by a link": ("job.sh", "source link.sh\n. linked/secret.sh\ntorchrun pretrain_gpt.py --num-layers 2 --save $MODEL\n"),
    "source of a guessed folder": ("job.sh", "source $HERE/../../secret.sh\ntorchrun pretrain_gpt.py --num-layers 2 --save $MODEL\n"),
    "another script": ("job.sh", "bash ../../secret.sh\ntorchrun pretrain_gpt.py --num-layers 2 --save $MODEL\n"),
    "cat": ("job.sh", "torchrun pretrain_gpt.py --num-layers $(cat ../../secret.sh) --save \"$(< ../../secret.sh)\"\n"),
    "read": ("job.sh", "read MODEL < ../../secret.sh\ntorchrun pretrain_gpt.py --num-layers 2 --save $MODEL\n"),
    "an AscendFactory command": ("job.sh", "ascendfactory-cli train ../../secret.yaml\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", JOBS)
def test_nothing_of_a_file_outside_is_told(engine: Engine, project: Path, name: str) -> None:
    file, text = JOBS[name]
    (project / file).write_text(text.replace("{root}", str(project.parents[1])), encoding="utf-8")
    told = shown(engine, project / file)
    assert MARK not in told


def test_what_lies_inside_is_told(engine: Engine, project: Path) -> None:
    (project / "inside.sh").write_text(f"export MODEL={MARK}\n", encoding="utf-8")
    launch = "torchrun pretrain_gpt.py --num-layers 2 --save $MODEL\n"
    for file, text in (
        ("job.sh", f"source inside.sh\n{launch}"),
        ("job.sh", f"source $HERE/inside.sh\n{launch}"),
        ("job.yaml", f"{LLAMAFACTORY}deepspeed: inside.json\n"),
    ):
        (project / file).write_text(text, encoding="utf-8")
        assert MARK in shown(engine, project / file)


def test_the_environment_is_not_read(engine: Engine, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", MARK)
    (project / "job.yaml").write_text(LLAMAFACTORY + "output_dir: ${oc.env:SECRET_TOKEN}\n", encoding="utf-8")
    (project / "job.sh").write_text(
        "torchrun pretrain_gpt.py --num-layers 2 --save $SECRET_TOKEN --load ${SECRET_TOKEN:-x}\n"
        "python3 -m verl.trainer.main_ppo trainer.project_name='${oc.env:SECRET_TOKEN}' data.train_files=\"$SECRET_TOKEN\"\n",
        encoding="utf-8",
    )
    for file in ("job.yaml", "job.sh"):
        assert MARK not in shown(engine, project / file)
    save = next(s for s in read_file(str(project / "job.sh")).launches[0].settings if s.key == "--save")
    assert isinstance(save.value, Unresolved)


def test_tags_construct_nothing(project: Path) -> None:
    for tag in (
        "!!python/object/apply:os.system",
        "!!python/object/new:os.system",
        "!!python/module:os",
        "!!python/name:os.system",
        "!x",
    ):
        (project / "job.yaml").write_text(f"{LLAMAFACTORY}a: {tag} ['touch pwned']\n", encoding="utf-8")
        read = read_file(str(project / "job.yaml"))
        assert read.error is not None and read.error.code == "AC2011", tag
    assert not (project / "pwned").exists()


RULES = (
    "(SELECT count(*) FROM read_text('{file}')) = 0", "(SELECT count(*) FROM read_csv('{file}')) = 0", "(SELECT count(*) FROM '{file}') = 0",
    "(SELECT count(*) FROM glob('{file}')) = 0", "1); ATTACH '{new}' AS other; SELECT (1", "1); COPY (SELECT 1) TO '{new}'; SELECT (1",
    "1); INSTALL httpfs; SELECT (1", "1); LOAD '{new}'; SELECT (1", "1); SET enable_external_access = true; SELECT (1",
    "1); EXPORT DATABASE '{new}'; SELECT (1", "1); CREATE TABLE x (y INTEGER); SELECT (1", "1); DROP TABLE claim; SELECT (1",
    "getenv('HOME') = ''",
)  # fmt: skip


@pytest.mark.parametrize("sql", RULES)
def test_a_rule_of_a_strange_matrix_reaches_no_file(engine: Engine, tmp_path: Path, sql: str) -> None:
    (tmp_path / "file.csv").write_text("a\n1\n", encoding="utf-8")
    hostile = sql.format(file=tmp_path / "file.csv", new=tmp_path / "new")
    rule = Rule("X", "verl", "t", "impossible", None, hostile, (), (), Worded([]))
    with pytest.raises(duckdb.Error):
        evaluate(engine.con, [Row({})], [rule], Vocabulary({}, (), ()))
    assert [path.name for path in tmp_path.iterdir()] == ["file.csv"]
    assert engine.con.execute("SELECT count(*) > 0 FROM claim").fetchall() == [(True,)]


def test_the_connection_cannot_be_unlocked(engine: Engine) -> None:
    for statement in (
        "SET enable_external_access = true", "SET lock_configuration = false", "RESET lock_configuration", "SET autoload_known_extensions = true",
        "SET allow_community_extensions = true",
    ):  # fmt: skip
        with pytest.raises(duckdb.Error):
            engine.con.execute(statement)
            pytest.fail(statement)
    names = (
        "enable_external_access",
        "lock_configuration",
        "autoinstall_known_extensions",
        "autoload_known_extensions",
    )
    values = [engine.con.execute(f"SELECT current_setting('{name}')").fetchall()[0][0] for name in names]
    assert values == [False, True, False, False]


STATEMENTS = (
    "COPY claim TO 'new.csv'", "COPY (SELECT 1) TO 'new.parquet'", "ATTACH 'new.db'", "INSTALL httpfs", "LOAD httpfs", "EXPORT DATABASE 'new'",
    "IMPORT DATABASE 'new'", "CREATE TABLE x (y INTEGER)", "CREATE TEMP TABLE x (y INTEGER)", "CREATE MACRO x() AS 1", "DROP TABLE claim",
    "DELETE FROM claim", "UPDATE claim SET status = 'supported'", "INSERT INTO meta VALUES ('a', 'b')", "SET threads = 1",
    "CALL pragma_version()", "CHECKPOINT", "VACUUM", "BEGIN", "SELECT 1; SELECT 2", "DETACH matrix", "USE memory", "",
    "SELECT * FROM read_csv('file.csv')", "SELECT * FROM read_text('/etc/passwd')", "SELECT * FROM read_blob('file.csv')", "FROM 'file.csv'",
    "SELECT * FROM read_parquet('x')", "SELECT * FROM glob('*')", "FROM sniff_csv('file.csv')", "SELECT getenv('HOME')", "FROM duckdb_secrets()",
    "SELECT * FROM sqlite_scan('a', 'b')", "FROM read_json('file.csv')", "FROM parquet_metadata('x')", "SELECT * FROM 'https://example.invalid/x.csv'",
)  # fmt: skip


@pytest.mark.parametrize("statement", STATEMENTS)
def test_sql_only_reads_the_matrix(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    (tmp_path / "file.csv").write_text(f"a\n{MARK}\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as caught:
        select(engine.con, statement)
    assert "\n" not in str(caught.value)
    assert MARK not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["file.csv"]


INJECTIONS = (
    "'; DROP TABLE claim; --",
    "' OR '1'='1",
    '"',
    "x') UNION SELECT 1 --",
    "%",
    "_",
    "$model",
    "{l}",
    "\\",
    "''",
    "?",
)


@pytest.mark.parametrize("name", INJECTIONS)
def test_names_are_never_sql(command: Callable[..., object], engine: Engine, name: str) -> None:
    from ascend_compat.check.api import Names, check_names
    from ascend_compat.matrix import cards

    assert cards.card(engine.con, name, "en", None) is None
    for asked in (Names(name, "verl", ()), Names("qwen2-7b", name, ()), Names("qwen2-7b", "verl", (name,))):
        with pytest.raises(UsageError, match=r"is called|is not known|no "):
            check_names(engine.con, [asked], engine)
    assert engine.con.execute("SELECT count(*) > 0 FROM claim").fetchall() == [(True,)]


BAD = "x\n::error::injected\r\n%0A::warning::y<script>alert(1)</script>]]>&|`*[z](javascript:1)<!--" + ESCAPES


def test_names_steer_neither_terminal_nor_page_nor_workflow(engine: Engine, tmp_path: Path) -> None:
    folder = tmp_path / "a\x1b[2J\n::error::file<b>"
    folder.mkdir()
    quoted = json.dumps(BAD)
    file = folder / "job.yaml"
    text = f"{LLAMAFACTORY}{quoted}: 1\nflash_attn: {quoted}\ndeepspeed: {quoted}\ntemplate: {quoted}\nlora_target: {quoted}\n"
    file.write_text(text.replace("Qwen/Qwen2-7B", quoted).replace("full", "lora"), encoding="utf-8")
    read = read_file(str(file))
    reports = engine.check(read.launches, Options())
    assert len(reports) == 1
    assert any("injected" in finding.message.en for finding in reports[0].findings)
    for language in ("en", "zh"):
        for form in FORMATS:
            said = render(form, reports, language)
            sound(form, said)
            if form in ("text", "github", "markdown", "junit"):
                assert not re.search(r"^::error::", said, re.MULTILINE), form
            if form in ("markdown", "junit"):
                assert "<script>" not in said, form
            if form == "github":
                assert "%250A" in said
                assert len(said.splitlines()) == len(reports[0].findings)


def test_errors_steer_no_terminal(command: Callable[..., object], tmp_path: Path) -> None:
    for arguments in (
        ("show", ESCAPES), (ESCAPES,), ("check", f"--{ESCAPES}"), ("check", "--model", ESCAPES, "--framework", "verl"), ("history", ESCAPES),
        ("stack", "check", ESCAPES), ("sql", f"SELECT {ESCAPES}"), ("explain", ESCAPES), ("check", f"{ESCAPES}.yaml"), ("docs", "check", ESCAPES),
        ("evidence", "show", ESCAPES), ("plan", ESCAPES, "--framework", "verl", "--devices", "8"),
    ):  # fmt: skip
        run = command(*arguments, cwd=tmp_path)
        assert run.returncode == 2, (arguments, run.stderr)
        said = run.stdout + run.stderr
        assert said.strip()
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", said), arguments
        assert "Traceback" not in said


def test_evidence_goes_where_evidence_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ascend_compat.evidence.document import faults

    for wrong in (
        "../../x",
        "/etc/x",
        "20260105T100000Z-../x-0a1b2c3d",
        "20260105T100000Z-a/b-0a1b2c3d",
        "20260105T100000Z-a-0a1b2c3d\n",
    ):
        assert any(fault.startswith("id:") for fault in faults({"id": wrong})), wrong
    assert not any(fault.startswith("id:") for fault in faults({"id": "20260105T100000Z-a-0a1b2c3d"}))


@pytest.mark.skipif(sys.platform == "win32", reason="names of that kind cannot be made there")
def test_a_file_name_that_is_no_text_is_told_of(command: Callable[..., object], tmp_path: Path) -> None:
    name = os.fsdecode(b"job-\xff\xfe.yaml")
    (tmp_path / name).write_text(LLAMAFACTORY, encoding="utf-8")
    for form in FORMATS[1:]:
        run = command("check", ".", "--recursive", "--format", form, cwd=tmp_path)
        assert run.returncode in (0, 1), run.stderr
