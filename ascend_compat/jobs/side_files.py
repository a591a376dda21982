"""Files that a job names and that stand beside it: DeepSpeed JSON, accelerate YAML, included model files.

A job may come from a stranger, so none is read from outside the job's own project, wherever its path or a link leads.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from ascend_compat.jobs.access import closed
from ascend_compat.jobs.interpolation import resolve
from ascend_compat.jobs.model import Problem, Setting, Span, Unresolved
from ascend_compat.jobs.yaml_tree import Document, Node, TreeError, leaves, parse

MAX_BYTES = 1_000_000
_ANCESTORS = 6
_PROJECT_MARKS = (".git", "pyproject.toml", "setup.py")
_STAGE = re.compile(r"(?:z|zero|stage)[-_]?([0-3])(?![0-9])")


def find(name: str, beside: Path | None, folders: tuple[str, ...] = ()) -> Path | None:
    """The regular file that ``name`` means: as given, beside the job, in a folder above it, or in one of ``folders`` there.

    It lies in the project of the job (see :func:`roots`), or it is not found.
    """
    if not name or "\0" in name or len(name) > 1000:
        return None
    path = Path(name)
    inside: tuple[Path, ...] = ()
    for candidate in (path,) if path.is_absolute() else _candidates(path, beside, folders):
        if regular(candidate):
            inside = inside or roots(beside)
            with contextlib.suppress(OSError, RuntimeError):
                real = candidate.resolve()
                if any(real.is_relative_to(root) for root in inside):
                    return candidate
    return None


def roots(beside: Path | None) -> tuple[Path, ...]:
    """The folders whose files a job may name: its project, its own folder where no project is seen, the working directory.

    A project is the nearest folder at or above the job that is a git checkout or a Python project. ``/`` is none.
    """
    here = Path.cwd()
    start = (here / beside).resolve() if beside is not None else here
    above = [start, *start.parents][: _ANCESTORS + 1]
    project = next((folder for folder in above if any((folder / mark).exists() for mark in _PROJECT_MARKS)), start)
    return tuple(folder for folder in dict.fromkeys((project, start, here)) if folder != folder.parent)


def _candidates(path: Path, beside: Path | None, folders: tuple[str, ...]) -> Iterator[Path]:
    start = beside if beside is not None else Path()
    yield start / path
    yield start / path.name
    above = Path(os.path.normpath(Path.cwd() / start))
    for parent in [above, *above.parents][: _ANCESTORS + 1]:
        shown = Path(os.path.relpath(parent)) if not start.is_absolute() else parent
        yield shown / path
        for folder in folders:
            yield shown / folder / path.name
    yield path


def regular(path: Path) -> bool:
    """Whether ``path`` leads to a regular file (no FIFO, device or folder) of a size worth reading."""
    if closed():
        return False
    try:
        status = path.stat()
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size <= MAX_BYTES


def document(path: Path) -> Document:
    """The first document of a side file. Raises :class:`TreeError`."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise TreeError(Problem("AC2003", Span(str(path), 1), {"reason": type(error).__name__})) from None
    documents = parse(text, str(path))
    if not documents or documents[0].root.pairs is None:
        raise TreeError(Problem("AC2008", Span(str(path), 1), {"reason": "not a mapping"}))
    return documents[0]


def prefixed(source: Document, root: Node, prefix: str, chain: tuple[Span, ...] = ()) -> list[Setting]:
    """Every value below ``root`` as a setting ``prefix:dotted.key``; DeepSpeed's ``auto`` states nothing and is left out."""
    return [
        Setting(f"{prefix}:{path}", value, source.text.span(node), chain)
        for path, node in leaves(root)
        if path and path.rpartition(".")[2] != "_comment" and (value := resolve(node, source.root, path)) != "auto"
    ]


def deepspeed(name: str, span: Span, beside: Path | None) -> tuple[list[Setting], list[Problem]]:
    """Settings of the DeepSpeed JSON called ``name`` in the job; guessed from the name where the file is not there."""
    return _side_file(name, span, beside, "deepspeed-json", ("examples/deepspeed", "deepspeed"))


def accelerate(name: str, span: Span, beside: Path | None) -> tuple[list[Setting], list[Problem]]:
    """Settings of the accelerate configuration called ``name`` in the job or on its command line."""
    settings, problems = _side_file(name, span, beside, "accelerate-yaml", ("examples/accelerate", "accelerate"))
    inner = [s for s in settings if s.key == "accelerate-yaml:deepspeed_config.deepspeed_config_file"]
    for setting in inner:
        if isinstance(setting.value, str):
            more, wrong = deepspeed(setting.value, setting.span, beside)
            settings += more
            problems += wrong
    return settings, problems


def _side_file(
    name: str, span: Span, beside: Path | None, prefix: str, folders: tuple[str, ...]
) -> tuple[list[Setting], list[Problem]]:
    path = find(name, beside, folders)
    if path is None:
        guesses = list(_guess(name, span)) if prefix == "deepspeed-json" else []
        return guesses, [Problem("AC2027" if guesses else "AC2031", span, {"file": name})]
    try:
        source = document(path)
    except TreeError as error:
        return list(_guess(name, span)), [error.problem]
    return prefixed(source, source.root, prefix, (span,)), source.problems


def _guess(name: str, span: Span) -> Iterator[Setting]:
    base = name.replace("\\", "/").rpartition("/")[2].lower()
    match = _STAGE.search(base)
    if match is None:
        return
    why = Unresolved(
        f"guessed from the file name {base}; the file is not here", f"根据文件名 {base} 推测，该文件不在此处"
    )
    stage = int(match.group(1))
    yield Setting("deepspeed-json:zero_optimization.stage", stage, span, guess=why)
    if "offload" in base:
        yield Setting("deepspeed-json:zero_optimization.offload_optimizer.device", "cpu", span, guess=why)
        if stage == 3:
            yield Setting("deepspeed-json:zero_optimization.offload_param.device", "cpu", span, guess=why)
