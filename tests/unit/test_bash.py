"""What bash makes of a script's words, followed without running it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ascend_compat.jobs.bash import read_shell
from ascend_compat.jobs.model import Launch, Setting, Unresolved

START = "torchrun --nproc_per_node 8 pretrain_gpt.py"


def launches(script: str, root: Path | None = None, file: str = "job.sh") -> list[Launch]:
    return read_shell(script, file, root=root)


def settings(script: str) -> dict[str, Setting]:
    found = launches(script)
    assert len(found) == 1
    return {setting.key: setting for setting in found[0].settings}


def values(script: str) -> dict[str, object]:
    """Flags of the only launch, without what its launcher and environment say."""
    return {key: setting.value for key, setting in settings(script).items() if key.startswith("--")}


EXPANSIONS = [
    ("A=4", "--x $A", "4"),
    ("A=4", "--x ${A}", "4"),
    ("A=4; B=$A", '--x "$B"', "4"),
    ("", "--x ${A:-4}", "4"),
    ("A=", "--x ${A:-4}", "4"),
    ("A=", "--x ${A-4}", True),
    ("A=2", "--x ${A:-4}", "2"),
    (": ${A:=4}", "--x $A", "4"),
    ("A=2", "--x ${A:+yes}", "yes"),
    ("", "--x ${A:+yes}", True),
    ("A=/m/Qwen3-8B.tar.gz", "--x ${A##*/}", "Qwen3-8B.tar.gz"),
    ("A=/m/q.tar.gz", "--x ${A%.*}", "/m/q.tar"),
    ("A=/m/q.tar.gz", "--x ${A%%.*}", "/m/q"),
    ("A=/m/q.tar.gz", "--x ${A#*/}", "m/q.tar.gz"),
    ("A=aXbXc", "--x ${A/X/-}", "a-bXc"),
    ("A=aXbXc", "--x ${A//X/-}", "a-b-c"),
    ("A=abcdef", "--x ${#A}", "6"),
    ("A=abcdef", "--x ${A:1:2}", "bc"),
    ("A=Qwen", "--x ${A,,}", "qwen"),
    ("A=Qwen", "--x ${A^^}", "QWEN"),
    ("A=3; B=4", "--x $((A*B))", "12"),
    ("A=3; B=4", "--x $(($A * $B + 1))", "13"),
    ("A=7", "--x $((A/2)),$((A%2)),$((-A/2))", "3,1,-3"),
    ("A=3; ((A++)); let B=A*2", "--x $B", "8"),
    ("A=3; ((A+=4))", "--x $A", "7"),
    ("A=x; A+=y", "--x $A", "xy"),
    ("A=(1 2); A+=(3)", '--x "${A[@]}"', ["1", "2", "3"]),
    ("A=(1 2 3)", "--x ${A[1]}", "2"),
    ("A=(1 2 3)", "--x ${#A[@]}", "3"),
    ("A=(1 2 3)", '--x "${A[*]}"', "1 2 3"),
    ("A=(1 2 3)", "--x ${A[@]:1:1}", "2"),
    ("declare -A A; A[k]=v", "--x ${A[k]}", "v"),
    ("A=B; B=5", "--x ${!A}", "5"),
    ('A="1 2"', "--x $A", ["1", "2"]),
    ('A="1 2"', '--x "$A"', "1 2"),
    ("A=1", "--x '$A'", "$A"),
    ("M=a/Qwen", '--x "${N:-$(basename "${M,,}")-run}"', "qwen-run"),
    ("", '--x "${N:-it\'s}"', "it's"),
    ("A=1", '--x "\\$A"', "$A"),
    ("", "--x a\\ b", "a b"),
    ("", "--x $'a\\tb'", "a\tb"),
    ("", "--x pre{1,2}", ["pre1", "pre2"]),
    ("", "--x {1..3}", ["1", "2", "3"]),
    ("", "--x $(dirname /a/b/c)", "/a/b"),
    ("", "--x $(basename /a/b.sh .sh)", "b"),
    ("A=3", "--x $(expr $A \\* 4)", "12"),
    ("", '--x "multi\nline"', "multi\nline"),
    ("set -- p q", "--x $2", "q"),
    ("set -- p q; shift", "--x $1", "q"),
    ("f() { local V=$1; W=$V; }; f 9", "--x $W", "9"),
    ("for i in 1 2 3; do A=$i; done", "--x $A", "3"),
    ("for ((i=0; i<3; i++)); do A=$i; done", "--x $A", "2"),
    ("i=0; while [ $i -lt 4 ]; do i=$((i+1)); done", "--x $i", "4"),
    ("if [ a = a ] && [[ 3 -gt 2 ]]; then A=1; else A=2; fi", "--x $A", "1"),
    ("M=qwen3; if [[ $M == qwen* ]]; then A=1; else A=2; fi", "--x $A", "1"),
    ("case qwen3 in llama*) A=1;; qwen*) A=2;; *) A=3;; esac", "--x $A", "2"),
    ("[ 1 -eq 2 ] && A=1 || A=2", "--x $A", "2"),
    ("A=1; (A=2)", "--x $A", "1"),
    ("A=1; A=2 true", "--x $A", "1"),
    ("D=${D:-$(python3 -c 'import torch_npu' && echo npu || echo gpu)}", "--x $D", "npu"),
]


@pytest.mark.parametrize(("before", "use", "expected"), EXPANSIONS)
def test_an_expansion_gives_what_bash_gives(before: str, use: str, expected: object) -> None:
    assert values(f"{before}\n{START} {use}")["--x"] == expected


def test_flags_take_one_value_several_or_none() -> None:
    found = values(f"{START} --a --b 1 --c=2 --d x y --e -1 --f=a=b --g")
    expected = {"--a": True, "--b": "1", "--c": "2", "--d": ["x", "y"], "--e": "-1", "--f": "a=b", "--g": True}
    assert found == expected


def test_the_last_of_a_repeated_flag_comes_last() -> None:
    (launch,) = launches(f"{START} --log-interval 1000 --log-interval 1")
    assert [s.value for s in launch.settings if s.key == "--log-interval"] == ["1000", "1"]


BLOCK = """TP=8
GPT_ARGS="
    --tensor-model-parallel-size ${TP} \\
    --num-layers 80 \\
    --bf16 \\
"
torchrun $GPT_ARGS
torchrun --nproc_per_node 8 pretrain_gpt.py $GPT_ARGS $MOE_ARGS --seq-length \\
    4096 | tee log 2>&1
"""


def test_a_setting_points_at_the_text_to_edit_and_the_way_there() -> None:
    launch = launches(BLOCK)[-1]
    found = {s.key: s for s in launch.settings}
    tp, layers, flag, seq = (
        found[key] for key in ("--tensor-model-parallel-size", "--num-layers", "--bf16", "--seq-length")
    )
    assert (tp.value, tp.span.line, tp.span.column, tp.span.length) == ("8", 1, 4, 1)
    assert [(use.line, use.column) for use in tp.chain] == [(8, 45), (3, 34)]
    assert (layers.value, layers.span.line, layers.span.column, layers.span.length) == ("80", 4, 18, 2)
    assert layers.span.text == "    --num-layers 80 \\"
    assert (flag.value, flag.span.line) == (True, 5)
    assert (seq.value, seq.span.line, seq.span.column, seq.chain) == ("4096", 9, 5, ())
    assert launch.line == 8
    assert set(found) == {
        "torchrun:--nproc_per_node",
        "--tensor-model-parallel-size",
        "--num-layers",
        "--bf16",
        "--seq-length",
    }


def test_columns_count_characters_where_the_line_holds_chinese() -> None:
    found = settings(f"说明=无 # 中文\n{START} --x 中文 --y 值7")
    assert (found["--y"].value, found["--y"].span.column) == ("值7", len(START) + len(" --x 中文 --y ") + 1)


def test_the_span_of_a_computed_value_is_its_expression() -> None:
    found = settings(f"A=4\nW=$((A * 2))\n{START} --x $W")["--x"]
    assert (found.value, found.span.line, found.span.column, found.span.length) == ("8", 2, 3, 10)


UNKNOWN = [
    ("", "--x $A", "A is set from the environment at run time", "环境变量"),
    ("", "--x $1", "given on the command line", "命令行参数"),
    ("A=$(nproc)", "--x $A", "the output of $(nproc)", "运行时"),
    ("A=`date`", "--x $A", "the output of `date`", "运行时"),
    ("read A", "--x $A", "read from input", "输入"),
    ("if [ -f x ]; then A=1; else A=2; fi", "--x $A", "1 or 2: it depends on the condition in line 1", "条件"),
    ("A=1; if [ -f x ]; then A=2; fi", "--x $A", "2 or 1: it depends", "条件"),
    ("", "--x $((A * 2))", "A is set from the environment", "环境变量"),
    ("for i in $(ls); do A=$i; done", "--x $A", "takes several values", "多个值"),
]


@pytest.mark.parametrize(("before", "use", "english", "chinese"), UNKNOWN)
def test_what_cannot_be_known_says_why(before: str, use: str, english: str, chinese: str) -> None:
    value = values(f"{before}\n{START} {use}")["--x"]
    assert isinstance(value, Unresolved)
    assert english in value.en
    assert chinese in value.zh


def test_a_value_that_both_branches_set_alike_is_known() -> None:
    assert values(f"if [ -f x ]; then A=1; B=2; else A=1; fi\n{START} --x $A")["--x"] == "1"


def test_a_branch_that_leaves_the_script_does_not_count() -> None:
    assert values(f'A=1\nif [ -z "$D" ]; then A=2; exit 1; fi\n{START} --x $A')["--x"] == "1"


def test_arguments_of_one_branch_keep_their_key() -> None:
    found = values(f"A=(--a 1)\nif [ -f x ]; then A+=(--b 2); fi\n{START} ${{A[@]}} --c 3")
    assert found["--a"] == "1"
    assert isinstance(found["--b"], Unresolved)
    assert found["--c"] == "3"


def test_a_launch_in_a_branch_is_found() -> None:
    found = launches(f"if [ -f x ]; then {START} --x 1; else {START} --x 2; fi")
    assert [launch.settings[-1].value for launch in found] == ["1", "2"]


def test_a_loop_starts_one_launch_a_value() -> None:
    assert [launch.settings[-1].value for launch in launches(f"for m in 1 2; do {START} --x $m; done")] == ["1", "2"]


def test_nothing_after_exit_is_started() -> None:
    assert launches(f"exit 1\n{START}") == []


@pytest.mark.parametrize("group", ["$MOE_ARGS", "${MOE_ARGS}", "$EXTRA_OPTS", '"$@"', "$@", "${ARGS[@]}", '"${A[@]}"'])
def test_an_unset_group_of_arguments_leaves_nothing(group: str) -> None:
    assert values(f"{START} --bf16 {group} --x 1") == {"--bf16": True, "--x": "1"}


def test_the_default_of_a_positional_parameter_is_marked() -> None:
    found = settings(f"N=${{1:-4}}\n{START} --x $N --y ${{Z:-5}}")
    assert found["--x"].value == "4"
    assert found["--x"].guess is not None
    assert "unless the command line" in found["--x"].guess.en
    assert found["--y"].guess is None


def test_a_path_keeps_its_known_part() -> None:
    assert values(f"{START} --load ${{HOME}}/Qwen3-8B --n ${{K}}000")["--load"] == "$HOME/Qwen3-8B"
    assert isinstance(values(f"{START} --n ${{K}}000")["--n"], Unresolved)


def test_environment_settings_are_what_the_script_exports() -> None:
    found = settings(f"export A=1\nB=2\nC=3; export C\nD=4 {START}")
    assert {k: s.value for k, s in found.items() if k.startswith("env:")} == {"env:A": "1", "env:C": "3", "env:D": "4"}
    assert found["env:C"].span.line == 3


PROBLEMS = [
    (f"{START} --a 1 \\\n  # --b 2 \\\n  --c 3\n", "AC2110", 2, "--c"),
    (f"{START} --a 1 \\  \n  --c 3\n", "AC2111", 1, "--c"),
    (f"{START} --a 1 \\  # note\n  --c 3\n", "AC2111", 1, "--c"),
    (f"{START} --a 1\n  --c 3\n", "AC2112", 2, "--c"),
    (f'A="--a 1 \\\n # note \\\n --b 2"\n{START} $A\n', "AC2113", 2, "#"),
    ("M='your master IP'\ntorchrun --master_addr $M --nnodes 2 pretrain_gpt.py --a 1", "AC2114", 1, "master"),
    (f'{START} --a 1\necho "open', "AC2106", 2, None),
]


@pytest.mark.parametrize(("script", "code", "line", "word"), PROBLEMS)
def test_a_trap_is_reported_where_it_stands(script: str, code: str, line: int, word: str | None) -> None:
    (launch,) = launches(script)
    assert [(problem.code, problem.span.line) for problem in launch.problems] == [(code, line)]
    assert launch.problems[0].words.get("word") == word
    assert any(setting.key == "--a" and setting.value == "1" for setting in launch.settings) or code == "AC2113"


def test_comments_that_harm_nothing_are_no_problem() -> None:
    script = f"A=( --a 1 # note\n  # --b 2\n --c 3 )\n{START} ${{A[@]}} --d 4 \\\n  # the end\n\\"
    (launch,) = launches(script)
    assert launch.problems == []
    assert values(script) == {"--a": "1", "--c": "3", "--d": "4"}


def test_a_lone_backslash_at_the_end_is_dropped() -> None:
    assert values(f"{START} --x 1 \\") == {"--x": "1"}
    assert values(f"{START} --x 1 \\\n") == {"--x": "1"}


def test_carriage_returns_do_not_stick_to_values() -> None:
    assert values(f"{START} \\\r\n --x 1 \\\r\n --y 2\r\n") == {"--x": "1", "--y": "2"}


def test_sourced_files_set_variables_and_take_their_own_place(tmp_path: Path) -> None:
    (tmp_path / "env.sh").write_text("export TP=4\n. ./more.sh\n", encoding="utf-8")
    (tmp_path / "more.sh").write_text("PP=2\n", encoding="utf-8")
    script = f'HERE=$(cd "$(dirname "${{BASH_SOURCE[0]}}")" && pwd)\nsource $HERE/env.sh\n{START} --tp $TP --pp $PP'
    file = str(tmp_path / "job.sh")
    (launch,) = launches(script, tmp_path, file)
    found = {setting.key: setting for setting in launch.settings}
    assert found["--tp"].value == "4"
    assert found["--tp"].span.file == str(tmp_path / "env.sh")
    assert found["--pp"].value == "2"


def test_files_outside_the_root_are_not_sourced(tmp_path: Path) -> None:
    (tmp_path / "env.sh").write_text("TP=4\n", encoding="utf-8")
    inner = tmp_path / "in"
    inner.mkdir()
    (launch,) = launches(f"source ../env.sh\n{START} --tp $TP", inner, str(inner / "job.sh"))
    assert isinstance(launch.settings[-1].value, Unresolved)


def test_a_script_beside_is_followed_with_its_arguments(tmp_path: Path) -> None:
    (tmp_path / "inner.sh").write_text(f"{START} --x $1 --y $Y --z $Z\n", encoding="utf-8")
    (launch,) = launches("export Y=2\nZ=3\nbash inner.sh 1", tmp_path, str(tmp_path / "job.sh"))
    found = {setting.key: setting.value for setting in launch.settings}
    assert (found["--x"], found["--y"]) == ("1", "2")
    assert isinstance(found["--z"], Unresolved)
    assert launch.file == str(tmp_path / "inner.sh")


def test_a_written_file_is_kept_with_its_place() -> None:
    script = "N=2\ncat > job.yaml <<EOF\nstage: sft\nnodes: $N\nEOF\nllamafactory-cli train job.yaml\n"
    (launch,) = launches(script)
    written = launch.written["job.yaml"]
    assert written.text == "stage: sft\nnodes: 2\n"
    assert (written.span.file, written.span.line) == ("job.sh", 3)


@pytest.mark.parametrize(
    "command",
    [
        f"eval {START} --x 1",
        f'eval "{START} --x 1"',
        f'bash -c "{START} --x 1"',
        f"bash -c '{START} --x 1 2>&1 | tee log'",
        f'CMD="{START} --x 1"; $CMD',
        f'CMD="{START} --x 1"; eval "$CMD 2>&1 | tee log"',
        f"run() {{ {START} --x 1; }}; run",
        f"bash <<EOF\n{START} --x 1\nEOF",
        f"( {START} --x 1 ) &",
        f"{{ {START} --x 1; }} > log",
        f"time {START} --x 1",
        f"exec {START} --x 1",
        f"cd /somewhere && {START} --x 1 || exit 1",
        f"mkdir -p logs; {START} --x 1 2>&1 | tee logs/a.log",
        f"{START} --x 1 > log 2>&1 &",
        f"if ! {START} --x 1; then echo failed; fi",
    ],
)
def test_a_launch_is_found_however_it_is_started(command: str) -> None:
    (launch,) = launches(command)
    assert launch.framework == "mindspeed-llm"
    assert {s.key: s.value for s in launch.settings}["--x"] == "1"


def test_the_flags_of_a_command_in_a_string_keep_their_line() -> None:
    found = settings(f'bash -c "{START} \\\n  --x 1 \\\n  --y 2"')
    assert [(found[key].span.line, found[key].span.column) for key in ("--x", "--y")] == [(2, 7), (3, 7)]
