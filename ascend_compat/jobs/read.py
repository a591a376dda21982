"""Job files, directories and standard input -> launches. Every file is read by what it holds; none can stop the others."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from ascend_compat.jobs import ascendfactory, detect, llamafactory, mindspeed_rl, verl_yaml
from ascend_compat.jobs.model import Launch, Problem, Span
from ascend_compat.jobs.yaml_tree import Document, TreeError, parse

MAX_BYTES = 8_000_000
MAX_LAUNCHES = 200
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a]")
_MAYBE = re.compile(
    rb"af_output_dir|backend_config|model_name_or_path|finetuning_type|megatron_training|rl_config|actor_rollout_ref"
    rb"|torchrun|torch\.distributed|train_\w*\.py|verl\.|llamafactory-cli|ascendfactory-cli|accelerate|dist_config|train_dataset"
)
_PROSE = re.compile(r"^(?:```|(?:import|from|def|class) \w|<\w)", re.MULTILINE)
_WIDE = (b"\xff\xfe", b"\xfe\xff")
_QUIET = frozenset(("AC2004", "AC2005", "AC2007", "AC2012"))


@dataclass(slots=True)
class FileRead:
    """One file: the launches in it, or the problem that kept it from being read."""

    file: str
    launches: list[Launch] = field(default_factory=list)
    error: Problem | None = None


def read_paths(paths: Iterable[str], *, framework: str | None = None, recursive: bool = False) -> Iterator[FileRead]:
    """Reads files, ``-`` (standard input) and, with ``recursive``, directories, in the order given.

    ``framework`` reads a YAML or JSON file as that framework's, whatever it looks like.
    """
    for path in paths:
        if path == "-":
            yield _take("-", sys.stdin.buffer.read(MAX_BYTES + 1), None, framework)
        elif Path(path).is_dir():
            yield from _directory(path, framework) if recursive else [_failed(path, "AC2002")]
        else:
            yield read_file(path, framework=framework)


def read_file(path: str, *, framework: str | None = None) -> FileRead:
    """Reads one file."""
    try:
        status = Path(path).stat()
    except FileNotFoundError:
        return _failed(path, "AC2001")
    except (OSError, ValueError) as error:
        return _failed(path, "AC2003", reason=_why(error))
    if not stat.S_ISREG(status.st_mode):
        return _failed(path, "AC2016")
    if status.st_size > MAX_BYTES:
        return _failed(path, "AC2006", limit=f"{MAX_BYTES // 1_000_000} MB")
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        return _failed(path, "AC2003", reason=_why(error))
    return _take(path, data, Path(path).parent, framework)


def read_data(name: str, data: bytes, *, framework: str | None = None) -> FileRead:
    """Reads the bytes of a job that is called ``name``; files it names are looked for in the current folder."""
    return _take(name, data, Path(), framework)


def _why(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error)).lower()


def _failed(path: str, code: str, **words: str) -> FileRead:
    return FileRead(path, error=Problem(code, Span(path, 1), words))


def files_below(path: str) -> Iterator[str]:
    """Every file below a directory, in order; hidden folders and links to folders are left out."""
    for folder, folders, files in os.walk(path, followlinks=False):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "__pycache__")
        yield from (str(Path(folder) / name) for name in sorted(files))


def _directory(path: str, framework: str | None) -> Iterator[FileRead]:
    found = False
    for name in files_below(path):
        read = read_found(name, framework)
        if read is not None:
            found = True
            yield read
    if not found:
        yield _failed(path, "AC2014", looked_for=detect.LOOKED_FOR)


def holds_job(path: str, framework: str | None = None) -> bool:
    """Whether a file would be taken for a job where it is found in a folder: one that is read, or a broken one."""
    return read_found(path, framework) is not None


def read_found(path: str, framework: str | None) -> FileRead | None:
    """A file found in a directory; None where it is no job."""
    try:
        status = Path(path).stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
            return None
        data = Path(path).read_bytes()
    except (OSError, ValueError):
        return None
    if not _MAYBE.search(data) or _CONTROL.search(data):
        return None
    text = decode(data)
    if text is None or (_PROSE.search(text) and not text.startswith("#!")):
        return None
    read = _take(path, data, Path(path).parent, framework)
    if read.launches or (
        read.error and read.error.code not in _QUIET and path.endswith((".yaml", ".yml", ".json", ".sh"))
    ):
        return read
    return None


def decode(data: bytes) -> str | None:
    """Text of UTF-8, UTF-16 with a mark, or GBK bytes; None for anything else."""
    encodings = ["utf-16"] if data[:2] in _WIDE else ["utf-8-sig", "gb18030"]
    for encoding in encodings:
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    return None


def _take(path: str, data: bytes, beside: Path | None, framework: str | None) -> FileRead:
    if len(data) > MAX_BYTES:
        return _failed(path, "AC2006", limit=f"{MAX_BYTES // 1_000_000} MB")
    if not data.strip():
        return _failed(path, "AC2004")
    if data[:2] not in _WIDE and _CONTROL.search(data):
        return _failed(path, "AC2005")
    text = decode(data)
    if text is None:
        return _failed(path, "AC2007")
    if not text.strip():
        return _failed(path, "AC2004")
    try:
        read = _read_text(path, text, beside, framework)
    except TreeError as error:
        return FileRead(path, error=error.problem)
    if len(read.launches) > MAX_LAUNCHES:
        return _failed(path, "AC2042", limit=str(MAX_LAUNCHES))
    return read


def _read_text(path: str, text: str, beside: Path | None, framework: str | None) -> FileRead:
    wrong: TreeError | None = None
    if not detect.starts_like_shell(text):
        try:
            documents = parse(text, path)
        except TreeError as error:
            if error.problem.code != "AC2008" or not (detect.is_shell(text) or path.endswith(".sh")):
                raise
            wrong = error
        else:
            found = (launch for document in documents for launch in _document(document, text, beside, framework))
            launches = list(islice(found, MAX_LAUNCHES + 1))
            if launches:
                return FileRead(path, launches)
            if documents and documents[0].root.pairs is not None:
                return _failed(path, "AC2012", looked_for=detect.LOOKED_FOR)
    if detect.is_shell(text):
        launches = _shell(path, text, beside)
        matching = [launch for launch in launches if framework in (None, launch.framework)]
        if launches and not matching:
            return _failed(path, "AC2013", framework=str(framework), found=launches[0].framework)
        if matching:
            return FileRead(path, matching)
    if wrong is not None and not path.endswith(".sh"):
        raise wrong
    return _failed(path, "AC2012", looked_for=detect.LOOKED_FOR)


def _document(document: Document, text: str, beside: Path | None, framework: str | None) -> list[Launch]:
    form = detect.tree_format(document)
    if form == "manifest":
        from ascend_compat.jobs.expand import expand
        from ascend_compat.jobs.kubernetes import read_manifest

        return [expand(launch, beside or Path()) for launch in read_manifest(document, beside)]
    if form == "ascendfactory-yaml":
        launch = ascendfactory.read(document, beside)
        if not launch.framework:
            raise TreeError(launch.problems[-1])
        return [launch]
    wanted = framework or (detect.FORMATS[form] if form else None)
    if wanted is None or document.root.pairs is None:
        return []
    if wanted == "llamafactory":
        return [llamafactory.read(document, beside)]
    if wanted == "mindspeed-rl":
        return [mindspeed_rl.read(document, beside)]
    return [verl_yaml.read(document)] if wanted == "verl" else []


def _shell(path: str, text: str, beside: Path | None) -> list[Launch]:
    from ascend_compat.jobs.bash import read_shell
    from ascend_compat.jobs.expand import expand

    root = beside if beside is not None else Path()
    return [expand(launch, root) for launch in read_shell(text, path, root=root)]
