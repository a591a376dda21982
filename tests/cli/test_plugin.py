"""The pytest plugin, as a user's repository meets it."""

from __future__ import annotations

import shutil
import subprocess
import sys

import duckdb  # noqa: F401
import pytest
import tree_sitter_bash  # noqa: F401
import yaml  # noqa: F401
from support import ROOT

# The extension modules imported above stay loaded from one inner run to the next; they cannot be loaded twice.
pytest_plugins = ["pytester"]
STATED = """\
jobs:
  - file: jobs/af-llamafactory-lora-qwen2.5-7b.yaml
    expect: supported
  - file: jobs/mindspeed-llm-qwen2.5-7b-tp8.sh
    expect: impossible
  - model: Qwen2-1.5B
    framework: llamafactory
    features: [lora]
    expect:
      "6.5.906": unsupported
      "6.5.902": [unverified, unsupported]
"""


@pytest.fixture
def place(pytester: pytest.Pytester, cache: object, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A repository with job files, where no other plugin is loaded."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    # Where the package is installed the outer run has loaded the plugin too, and pytest warns of a second rewriting.
    monkeypatch.delitem(sys.modules, "ascend_compat.pytest_plugin", raising=False)
    shutil.copytree(ROOT / "docs" / "examples", pytester.path / "jobs")
    pytester.syspathinsert(ROOT)
    pytester.makeini("[pytest]\nfilterwarnings = error\n")
    return pytester


def run(place: pytest.Pytester, *options: str) -> pytest.RunResult:
    return place.runpytest_inprocess("-p", "ascend_compat.pytest_plugin", "-p", "no:cacheprovider", *options)


def test_each_statement_is_a_test(place: pytest.Pytester) -> None:
    place.makefile(".yaml", compat=STATED)
    run(place, "-v").assert_outcomes(passed=4)
    listed = run(place, "--collect-only", "-q")
    listed.stdout.fnmatch_lines(["compat.yaml::Qwen2-1.5B/llamafactory[[]6.5.902]"])


def test_a_failure_reads_like_the_check(place: pytest.Pytester) -> None:
    place.makefile(".yaml", compat=STATED.replace("expect: impossible", "expect: [supported, unverified]"))
    result = run(place)
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(
        [
            "compat.yaml:4: expected supported or unverified, found impossible",
            "error[[]ML-PAR12 *",
            "  --> *mindspeed-llm-qwen2.5-7b-tp8.sh:*",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*pytest_plugin.py*")


def test_release_from_the_command_line(place: pytest.Pytester) -> None:
    place.makefile(".yaml", compat=STATED)
    run(place, "--compat-release", "6.5.906").assert_outcomes(passed=3)
    two = run(place, "--compat-release", "6.5.906", "--compat-release", "6.5.910", "-k", "Qwen2-1.5B")
    two.assert_outcomes(passed=1, skipped=1, deselected=4)
    unknown = run(place, "--compat-release", "9.9")
    unknown.assert_outcomes(failed=2, skipped=1)
    unknown.stdout.fnmatch_lines(["no release of ascendfactory is called '9.9'*"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("jobs:\n  - file: [\n", "compat.yaml:3: this is not valid YAML"),
        ("jobs: 5\n", "compat.yaml:1: expected a list under jobs"),
        ("jobs:\n  - file: a.sh\n", "compat.yaml:2: job 1: expect one of supported*"),
        ("jobs:\n  - file: a.sh\n    expect: fine\n", "compat.yaml:2: job 1: expect one of supported*"),
        ("jobs:\n  - file: a.sh\n    expect: {}\n", "compat.yaml:2: job 1: expect one of supported*"),
        ("jobs:\n  - {file: a, model: b, expect: supported}\n", "compat.yaml:2: job 1: give either a file*"),
        ("jobs:\n  - {model: b, expect: supported}\n", "compat.yaml:2: job 1: a question by names needs*"),
        ("jobs:\n\n  - {fiel: a, expect: supported}\n", "compat.yaml:3: job 1: unknown key 'fiel'*"),
        ("jobs:\n  - a\n", "compat.yaml:2: job 1: expected a mapping*"),
    ],
)
def test_what_is_wrong_is_told_by_line(place: pytest.Pytester, text: str, message: str) -> None:
    place.makefile(".yaml", compat=text)
    result = run(place)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([message])


def test_a_missing_file_and_an_unknown_model_fail(place: pytest.Pytester) -> None:
    text = "jobs:\n  - {file: gone.sh, expect: supported}\n  - {model: Nobody-7B, framework: verl, expect: supported}\n"
    place.makefile(".yaml", compat=text)
    result = run(place)
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*expected supported, found unreadable", "no model is called 'Nobody-7B'*"])


def test_files_of_others_are_left_alone(place: pytest.Pytester) -> None:
    place.makefile(".yaml", compat="services:\n  web: {image: x}\n")
    run(place).assert_outcomes()


def test_loading_the_plugin_loads_no_matrix() -> None:
    code = (
        "import sys, pytest; before = set(sys.modules); import ascend_compat.pytest_plugin; "
        "print(sorted(name for name in set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert eval(done.stdout) == ["ascend_compat", "ascend_compat._version", "ascend_compat.pytest_plugin"]
