"""Programs that start other programs: which words are theirs, and where the started command begins."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ascend_compat.jobs import slurm
from ascend_compat.jobs.kubernetes import read_manifest
from ascend_compat.jobs.model import Setting, Value
from ascend_compat.jobs.shell_text import Word, place, reason, text_of

__all__ = ["Unwrapped", "read_manifest", "unwrap", "value_of"]

_LAUNCHERS = re.compile(
    r"(?:.*/)?(?:torchrun|python[0-9.]*|accelerate|deepspeed|llamafactory-cli|lmf|vllm|ascendfactory-cli|msrun|bash|sh)"
)
_SEARCHED = frozenset(
    (
        "srun", "mpirun", "mpiexec", "docker", "podman", "nerdctl", "kubectl", "uv", "conda", "poetry", "numactl",
        "taskset", "timeout", "nice", "ionice", "stdbuf", "sudo", "chrt", "msprof", "pdsh", "pssh", "clush", "ssh",
        "sshpass", "py-spy", "unbuffer", "script", "watch", "xargs", "salloc", "prlimit", "rocprof", "nsys",
    )
)  # fmt: skip
_PLAIN = frozenset(("nohup", "time", "exec", "command", "builtin", "setsid", "then", "do", "!"))
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=")
_MAX = 12
_ROOTED = re.compile(r"[\w.-]*/")


@dataclass(slots=True)
class Unwrapped:
    """The started command, the settings its wrappers give, and the text of a command handed on as one string."""

    words: list[Word]
    settings: list[Setting] = field(default_factory=list)
    script: Word | None = None
    environment: dict[str, Word] = field(default_factory=dict)


def unwrap(words: list[Word]) -> Unwrapped:
    """Takes the wrappers off a command."""
    found = Unwrapped(words)
    for _ in range(_MAX):
        if not found.words:
            break
        name = text_of(found.words[0]).rpartition("/")[2]
        if name in _PLAIN:
            found.words = _after_options(found.words[1:])
        elif name == "env":
            found.words = _environment(_after_options(found.words[1:]), found)
        elif name == "ray" and [text_of(word) for word in found.words[1:3]] == ["job", "submit"]:
            found.words = _ray(found.words[3:], found)
        elif name in _SEARCHED:
            inner = _search(found, name)
            if inner is None:
                break
            found.words = inner
        else:
            break
    return found


def _after_options(words: list[Word]) -> list[Word]:
    index = 0
    while index < len(words) and text_of(words[index]).startswith("-"):
        index += 1
    return words[index:]


def _environment(words: list[Word], found: Unwrapped) -> list[Word]:
    for index, word in enumerate(words):
        match = _ASSIGNMENT.match(text_of(word))
        if match is None:
            return words[index:]
        found.environment[match.group(1)] = tail(word, match.end())
    return []


def _ray(words: list[Word], found: Unwrapped) -> list[Word]:
    for index, word in enumerate(words):
        if text_of(word) == "--":
            return words[index + 1 :]
    return _started(words, found)


def _search(found: Unwrapped, name: str) -> list[Word] | None:
    words = found.words[1:]
    for index, word in enumerate(words):
        text = text_of(word)
        if name in ("srun", "salloc") and text.startswith("-"):
            _slurm(words, index, found)
        if name in ("docker", "podman", "nerdctl") and text in ("-e", "--env") and index + 1 < len(words):
            match = _ASSIGNMENT.match(text_of(words[index + 1]))
            if match is not None:
                found.environment[match.group(1)] = tail(words[index + 1], match.end())
    return _started(words, found)


def _started(words: list[Word], found: Unwrapped) -> list[Word]:
    for index, word in enumerate(words):
        text = text_of(word)
        if index and text_of(words[index - 1]) in ("--extra", "--with", "-n", "--name"):
            continue
        if text == "vllm" and text_of(words[index + 1] if index + 1 < len(words) else []) != "serve":
            continue
        if _LAUNCHERS.fullmatch(text) or (text == "env" and index):
            return words[index:]
    for word in words:
        text = text_of(word)
        if " " in text and re.search(r"torchrun|python|llamafactory|deepspeed|accelerate|vllm|bash", text):
            found.script = word
    return []


def _slurm(words: list[Word], index: int, found: Unwrapped) -> None:
    option, equals, value = text_of(words[index]).partition("=")
    word = words[index]
    if not equals and not option.startswith("--") and len(option) > 2:
        option, value, equals = option[:2], option[2:], "="
    name = slurm.long_name(option)
    if not equals and index + 1 < len(words) and name in _WITH_VALUE:
        word = words[index + 1]
        value = text_of(word)
    why = reason(word)
    span = place(word)[0]
    found.settings += [Setting(f"slurm:{name}", why, span)] if why else slurm.settings(name, value or True, span)


_WITH_VALUE = frozenset(("--nodes", "--ntasks", "--gres", "--gpus-per-node", "--ntasks-per-node", "--gpus"))


def tail(word: Word, start: int) -> Word:
    """The word from its character ``start`` on."""
    rest: Word = []
    for piece in word:
        if start >= len(piece.text) and piece.text:
            start -= len(piece.text)
            continue
        rest.append(piece.cut(start, len(piece.text)) if start else piece)
        start = 0
    return rest


def value_of(word: Word) -> Value:
    """What a word says: its text, or why it is not known. A path keeps its known part, with the variable left in it."""
    why = reason(word)
    if why is None:
        return text_of(word)
    if all(piece.maybe is None for piece in word) and len(word) > 1:
        known = [piece.text for piece in word if piece.why is None]
        if any("/" in text for text in known):
            return text_of(word)
    return why
