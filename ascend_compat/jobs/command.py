"""A command line that starts or submits a job -> the launches of that job. The command is read, never run."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ascend_compat.jobs.model import Setting
from ascend_compat.jobs.read import decode, read_file
from ascend_compat.jobs.shell_text import Piece, Source, Word
from ascend_compat.jobs.slurm import long_name, settings, slurm
from ascend_compat.jobs.yaml_tree import TreeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ascend_compat.jobs.bash_state import Variable
    from ascend_compat.jobs.model import Launch, Problem

# where findings point whose line is the command itself
NAME = "(command)"
MAX_BYTES = 1_000_000
_MAX_FILES = 64
# problems that say "this is no job", as opposed to "this job cannot be read"
_NO_JOB = frozenset(("AC2002", "AC2004", "AC2005", "AC2007", "AC2012", "AC2014", "AC2016"))
# options of sbatch that stand alone; every other one takes the word after it as its value
_SBATCH_FLAGS = frozenset(
    (
        *("--contiguous", "--exclusive", "--get-user-env", "--help", "--hold", "--ignore-pbs", "--no-requeue"),
        *("--overcommit", "--oversubscribe", "--parsable", "--quiet", "--requeue", "--spread-job", "--test-only"),
        *(
            "--usage",
            "--use-min-nodes",
            "--verbose",
            "--version",
            "--wait",
            "-H",
            "-O",
            "-Q",
            "-V",
            "-W",
            "-h",
            "-s",
            "-v",
        ),
        *("--kill-on-invalid-dep", "--propagate", "--reboot", "--nice"),
    )
)
_KUBECTL_VERBS = frozenset(("apply", "create", "replace"))
_FILE_LIKE = re.compile(r"\.(?:sh|bash|slurm|sbatch|ya?ml|json)$")


@dataclass(slots=True)
class Command:
    """What a command starts: its launches, and the files named in it that hold a job nobody can read."""

    launches: list[Launch] = field(default_factory=list)
    errors: list[tuple[str, Problem]] = field(default_factory=list)


def read_command(words: Sequence[str], environment: Mapping[str, str]) -> Command:
    """The launches that a command would start from here, with ``environment`` as its variables.

    ``sbatch``, ``kubectl apply -f`` and whatever the shell reader follows (``bash``, ``srun``, ``torchrun``, the frameworks' own
    programs) are understood; of any other command, the arguments that are job files.
    """
    found = Command()
    name = Path(words[0]).name
    if name == "sbatch":
        _sbatch(words, environment, found)
    elif name == "kubectl":
        _kubectl(words, found)
        return found
    else:
        _shell(list(words), environment, found)
    if not found.launches and not found.errors:
        named = [word for word in words[1:] if _FILE_LIKE.search(word) and Path(word).is_file()]
        _files(named, found)
    return found


def _shell(words: list[str], environment: Mapping[str, str], found: Command) -> None:
    from ascend_compat.jobs.bash import read_words
    from ascend_compat.jobs.expand import expand

    here = Path.cwd()
    source, pieces = _source(words)
    variables = {name: _variable(name, value) for name, value in environment.items()}
    try:
        launches = read_words(pieces, source, root=_root(words, here), variables=variables)
        found.launches += [expand(launch, _beside(launch, here)) for launch in launches]
    except TreeError as error:
        if error.problem.code not in _NO_JOB:
            found.errors.append((error.problem.span.file, error.problem))


def _source(words: Iterable[str]) -> tuple[Source, list[Word]]:
    quoted = [shlex.quote(word) for word in words]
    source = Source(NAME, " ".join(quoted))
    pieces: list[Word] = []
    at = 0
    for word, shown in zip(words, quoted):
        pieces.append([Piece(word, source, at, len(shown))])
        at += len(shown) + 1
    return source, pieces


def _variable(name: str, value: str) -> Variable:
    return (Piece(value, Source("(environment)", f"{name}={value}"), len(name) + 1, max(1, len(value))),)


def _root(words: Iterable[str], here: Path) -> Path:
    """The folder that holds the current one and every script the command names."""
    folders = [str(here.resolve())]
    folders += [str(Path(word).resolve().parent) for word in words if _FILE_LIKE.search(word) and Path(word).is_file()]
    return Path(os.path.commonpath(folders))


def _beside(launch: Launch, here: Path) -> Path:
    return here if launch.file == NAME else Path(launch.file).parent


def _sbatch(words: Sequence[str], environment: Mapping[str, str], found: Command) -> None:
    source, pieces = _source(words)
    asked: list[Setting] = []
    index = 1
    while index < len(words) and words[index].startswith("-") and words[index] != "-":
        option, equals, value = words[index].partition("=")
        piece = pieces[index][0]
        if not equals and not option.startswith("--") and len(option) > 2:
            option, value, equals = option[:2], option[2:], "="
        if not equals and option not in _SBATCH_FLAGS and index + 1 < len(words):
            index += 1
            value, piece = words[index], pieces[index][0]
        index += 1
        if option == "--wrap":
            _shell(["bash", "-c", value], environment, found)
        asked += settings(long_name(option), value or True, source.span(piece.at, piece.size))
    script = words[index] if index < len(words) else None
    if script is not None:
        _script(script, list(words[index + 1 :]), environment, found)
    for launch in found.launches:
        head = next((at for at, one in enumerate(launch.settings) if not one.key.startswith("slurm:")), 0)
        launch.settings[head:head] = asked


def _script(script: str, arguments: list[str], environment: Mapping[str, str], found: Command) -> None:
    path = Path(script)
    if not path.is_file():
        read = read_file(script)
        assert read.error is not None
        found.errors.append((script, read.error))
        return
    text = decode(path.read_bytes()[:MAX_BYTES]) or ""
    header = slurm(Source(script, text))
    cluster = {
        name: "".join(piece.text for piece in value if isinstance(piece, Piece))
        for name, value in header.variables.items()
    }
    _shell(["bash", script, *arguments], {**environment, **cluster}, found)
    for launch in found.launches:
        launch.settings[:0] = header.settings


def _kubectl(words: Sequence[str], found: Command) -> None:
    if not _KUBECTL_VERBS & set(words):
        return
    named: list[str] = []
    for index, word in enumerate(words):
        option, equals, value = word.partition("=")
        if option in ("-f", "--filename"):
            named += (value if equals else words[index + 1] if index + 1 < len(words) else "").split(",")
        elif word.startswith("-f") and not word.startswith("--"):
            named += word[2:].lstrip("=").split(",")
    _files([name for name in named if name and name != "-" and "://" not in name], found)


def _files(paths: Iterable[str], found: Command) -> None:
    listed: list[str] = []
    for path in paths:
        folder = Path(path)
        inside = sorted(folder.iterdir()) if folder.is_dir() else [folder]
        listed += [str(file) for file in inside if file == folder or _FILE_LIKE.search(file.name)]
    for path in listed[:_MAX_FILES]:
        read = read_file(path)
        found.launches += read.launches
        if read.error is not None and read.error.code not in _NO_JOB:
            found.errors.append((path, read.error))
