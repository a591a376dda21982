"""YAML text as a tree with places: numbers, aliases, limits, refusals."""

from __future__ import annotations

from pathlib import Path

import pytest

from ascend_compat.jobs.interpolation import resolve
from ascend_compat.jobs.model import Unresolved
from ascend_compat.jobs.yaml_tree import MAX_VALUES, TreeError, leaves, parse, plain, plain_value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-5", 1e-5),
        ("1.0e-4", 1e-4),
        ("5e8", 5e8),
        (".5", 0.5),
        ("-3", -3),
        ("1_000", 1000),
        ("0x10", 16),
        ("010", 8),
        ("", None),
        ("~", None),
        ("null", None),
        ("Yes", True),
        ("off", False),
        ("1.2.3", "1.2.3"),
        ("12:30", "12:30"),
        ("2024-01-01", "2024-01-01"),
        ("none", "none"),
        (".", "."),
        ("-", "-"),
    ],
)
def test_plain_scalars_as_omegaconf_reads_them(text: str, value: object) -> None:
    read = plain(text)
    assert read == value
    assert type(read) is type(value)


def test_places_are_those_of_the_value_text() -> None:
    (document,) = parse("\ufeffa: 1\r\n模型: {b: [x, 'y']}\r\n", "job.yaml")
    found = {path: document.text.span(node) for path, node in leaves(document.root)}
    assert (found["a"].line, found["a"].column, found["a"].length, found["a"].text) == (1, 4, 1, "a: 1")
    assert (found["模型.b"].line, found["模型.b"].column) == (2, 9)
    assert found["模型.b"].text == "模型: {b: [x, 'y']}"


def test_quoted_words_stay_text_and_null_is_stated() -> None:
    (document,) = parse("a: '8'\nb: \"true\"\nc: null\nd:\n", "job.yaml")
    assert plain_value(document.root) == {"a": "8", "b": "true", "c": None, "d": None}


def test_repeated_key_is_reported_and_the_last_one_counts() -> None:
    (document,) = parse("stage: sft\nstage: dpo\n", "job.yaml")
    node = document.root.get("stage")
    assert node is not None
    assert node.scalar == "dpo"
    assert [(problem.code, problem.span.line) for problem in document.problems] == [("AC2026", 2)]


def test_merge_key_is_the_weaker_word() -> None:
    (document,) = parse("base: &b {x: 1, y: 2}\njob:\n  <<: *b\n  y: 3\n", "job.yaml")
    job = document.root.get("job")
    assert job is not None
    assert plain_value(job) == {"x": 1, "y": 3}


def test_several_documents() -> None:
    assert [plain_value(document.root) for document in parse("a: 1\n---\nb: 2\n", "job.yaml")] == [{"a": 1}, {"b": 2}]


def test_json_with_tabs_has_places() -> None:
    (document,) = parse('{\n\t"zero_optimization": {"stage": 3}\n}', "ds.json")
    node = dict(leaves(document.root))["zero_optimization.stage"]
    assert node.scalar == 3
    assert (document.text.span(node).line, document.text.span(node).column) == (2, 33)


def _bomb() -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a: [1, 2\nb: }", "AC2008"),
        ("a: &a [*a]", "AC2008"),
        ("a: *nobody", "AC2008"),
        ("a:\n\tb: 1", "AC2015"),
        ("a: " + "[" * 101 + "]" * 101, "AC2010"),
        ("[" * 5000, "AC2010"),
        (_bomb(), "AC2009"),
        ("a: !!python/object/apply:os.system ['touch pwned']", "AC2011"),
        ("a: !custom 1", "AC2011"),
        ("a: " + "x" * 5_000_001, "AC2006"),
    ],
)
def test_refused(text: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TreeError) as caught:
        parse(text, "job.yaml")
    assert caught.value.problem.code == code
    assert list(tmp_path.iterdir()) == []


def test_bomb_of_merge_keys_stays_small() -> None:
    lines = ["a0: &a0 {k0: 1}"]
    lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}], k{n}: 1}}" for n in range(1, 30)]
    (document,) = parse("\n".join(lines), "job.yaml")
    assert sum(1 for _ in leaves(document.root)) == sum(range(1, 31))


def test_limit_counts_what_is_really_there() -> None:
    text = "a: [" + "1, " * (MAX_VALUES - 10) + "1]"
    assert len(parse(text, "job.yaml")) == 1


def test_references() -> None:
    text = (
        "a:\n  b: 4\n  c: ${a.b}\n  d: ${.b}\n  e: x-${a.b}-y\n  f: ${oc.env:HOME}\n  g: ${oc.env:N,2}\n  h: ${a.h}\n"
        "i: ${oc.select:a.none,7}\nj: ${a.nothing}\nk: ${mul:2,3}\nl: ['${a.b}', 1]\n"
    )
    (document,) = parse(text, "job.yaml")
    value = {path: resolve(node, document.root, path) for path, node in leaves(document.root)}
    assert [value[f"a.{name}"] for name in "bcdeg"] == [4, 4, 4, "x-4-y", 2]
    assert value["i"] == 7
    assert value["l"] == [4, 1]
    reasons = {name: value[name] for name in ("a.f", "a.h", "j", "k")}
    assert all(isinstance(reason, Unresolved) for reason in reasons.values())
    home = reasons["a.f"]
    assert isinstance(home, Unresolved)
    assert "HOME" in home.en and "HOME" in home.zh
