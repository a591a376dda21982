"""What the README and docs/ tell a reader to type: run where it can run, and every command exists with those options."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import click
import pytest

from ascend_compat.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"(?<!`)`((?:ascend-compat|make) [^`\n]+)`(?!`)")
# what only a cluster, an NPU or another program can run, what starts a training run or a service, what takes long and has tests of its own
ELSEWHERE = re.compile(
    r"^ascend-compat (run|bench|submit|serve|doctor|docs serve)\b|--engine|--budget|--plan|--unreached|^make "
)
PLACEHOLDER = re.compile(r"\b[A-Z]{2,}\b|…|/path/of|\bFILE\b")


def fences() -> Iterator[tuple[str, str, str]]:
    """Page, language and text of every fenced block."""
    for page in PAGES:
        for language, text in FENCE.findall(page.read_text(encoding="utf-8")):
            yield page.name, language, text


def sessions() -> list[tuple[str, str, list[str]]]:
    """Page, command and expected lines of every console example."""
    found = []
    for page, language, text in fences():
        if language == "console":
            for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                first, _, rest = part.partition("\n")
                found.append((page, first.strip(), rest.splitlines()))
    return found


def listed() -> list[tuple[str, str]]:
    """Page and command of every block that lists commands, remarks cut off."""
    found = []
    for page, language, text in fences():
        lines = [re.sub(r"\s+#.*$", "", line) for line in text.splitlines()]
        if language in ("", "sh", "bash") and all(
            re.match(r"(ascend-compat|make|pip|python) ", line) for line in lines if line
        ):
            found += [(page, line) for line in lines if line]
    return found


def mentioned() -> list[tuple[str, str]]:
    """Page and command of every command named in running text."""
    return [
        (page.name, said) for page in PAGES for said in INLINE.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
    ]


def agrees(shown: list[str], wanted: list[str]) -> bool:
    """Whether an output is the expected one, where a line of ``…`` stands for any lines."""
    pattern = "".join("(?:.*\n)*?" if line.strip() == "…" else re.escape(line) + "\n" for line in wanted)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in shown)) is not None


def test_there_are_examples() -> None:
    assert len(PAGES) >= 10
    assert len(sessions()) >= 1 and len(listed()) >= 15 and len(mentioned()) >= 20


@pytest.mark.parametrize(("page", "said", "wanted"), sessions())
def test_a_console_example_shows_what_it_says(
    command: Callable[..., CompletedProcess[str]], page: str, said: str, wanted: list[str]
) -> None:
    words = shlex.split(said)
    assert words[0] == "ascend-compat", page
    done = command(*words[1:])
    assert done.returncode in (0, 1), done.stderr
    assert agrees(done.stdout.splitlines(), wanted), f"{page}: {said}\n{done.stdout}"


def test_an_example_that_differs_is_seen() -> None:
    assert agrees(["one", "two", "three"], ["one", "…"])
    assert not agrees(["one", "two", "three"], ["one"])
    assert not agrees(["one", "two"], ["…", "one"])


def runnable() -> list[tuple[str, str]]:
    return [(page, said) for page, said in listed() if not ELSEWHERE.search(said) and not PLACEHOLDER.search(said)]


@pytest.mark.parametrize(("page", "said"), runnable())
def test_a_listed_command_runs(
    command: Callable[..., CompletedProcess[str]], tmp_path: Path, page: str, said: str
) -> None:
    done = command(
        *shlex.split(said)[1:], cwd=tmp_path, XDG_DATA_HOME=str(tmp_path), ASCEND_COMPAT_EVIDENCE=str(tmp_path)
    )
    assert done.returncode in (0, 1), f"{page}: {said}\n{done.stderr}"


def options(words: list[str]) -> None:
    """Resolve a command line by click's own parser: an unknown command or option raises."""
    command: click.Command = main
    context = click.Context(command)
    rest = words
    while isinstance(command, click.Group):
        if not rest:
            return
        name, inner, rest = command.resolve_command(context, rest)
        assert inner is not None, name
        command, context = inner, click.Context(inner, parent=context, info_name=name)
    command.make_parser(context).parse_args(list(rest))


def targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def named() -> list[Any]:
    return sorted({*listed(), *mentioned()})


@pytest.mark.parametrize(("page", "said"), named())
def test_every_command_named_exists(page: str, said: str) -> None:
    words = shlex.split(re.split(r"\\?\|", said)[0].replace("…", "").split(" -- ")[0])
    if words[0] == "make":
        assert set(words[1:]) <= targets(), page
    elif words[0] == "ascend-compat":
        options(words[1:])
