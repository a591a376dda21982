"""Single commands of a script: what bash does itself is followed, programs are looked at for launches, none is run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from ascend_compat.jobs import launch as launches
from ascend_compat.jobs.access import closed
from ascend_compat.jobs.bash_state import State
from ascend_compat.jobs.bash_test import condition
from ascend_compat.jobs.bash_words import Scanner, Simple
from ascend_compat.jobs.model import Problem, Unresolved, Written
from ascend_compat.jobs.shell_text import Piece, Source, Word, doubt, place, reason, split, text_of
from ascend_compat.jobs.wrappers import unwrap

if TYPE_CHECKING:
    from ascend_compat.jobs.bash import Reader

_MAX_SOURCED = 10
_MAX_BYTES = 1_000_000
_DECLARING = frozenset(("export", "declare", "typeset", "local", "readonly"))
_SHELLS = frozenset(("bash", "sh", "zsh", "dash"))
_SPECIAL = re.compile(r"[;|&<>()$`'\"\\#\n]")
_CUTS = re.compile(r"\||\|\||&&|;|&|\d?>.*|&>.*|<.*")
_LOOKS_GIVEN = re.compile(r"--?[A-Za-z][\w.-]*(?:=.*)?|(?:\+\+?|~)?[A-Za-z_]\w*(?:\.\w+)+=.*", re.DOTALL)
_PYTHON_ARGUMENT = re.compile(r"-m|[\w./-]+\.py")
_NAME = re.compile(r"[A-Za-z_]\w*")


def run(reader: Reader, scan: Scanner, command: Simple, state: State) -> bool | None:
    """Follows one simple command; the answer is True where nothing is known (it is taken to succeed)."""
    if not command.words:
        return True
    name = text_of(command.words[0])
    if reason(command.words[0]) is not None:
        return _unknown(reader, scan, command, state)
    if name in _BUILTINS:
        return _BUILTINS[name](reader, scan, command, state)
    if name in _DECLARING:
        return _declare(reader, command, state, name)
    if name in reader.functions:
        return reader.call(name, command.words[1:], state)
    if name in ("cat", "tee"):
        _keep(reader, command, name)
    if _LOOKS_GIVEN.fullmatch(name) and reader.last is not None:
        _cut_off(reader, scan, command)
        return True
    return _program(reader, scan, command, state)


def _unknown(reader: Reader, scan: Scanner, command: Simple, state: State) -> bool | None:
    """A command whose program is in a variable that nothing sets: its arguments may tell what it starts."""
    if len(command.words) > 1 and _PYTHON_ARGUMENT.fullmatch(text_of(command.words[1])):
        at = command.words[0][0]
        command.words = [[Piece("python", at.source, at.at, at.size)], *command.words[1:]]
        return run(reader, scan, command, state)
    made = launches.by_arguments(command.words, scan.source.span(command.start), state)
    if made is not None:
        reader.launches.append(made)
        reader.last = (made, scan, command)
    elif len(command.words) > 1 and command.words[0][0].unset:
        command.words = command.words[1:]
        return run(reader, scan, command, state)
    return None


def _program(reader: Reader, scan: Scanner, command: Simple, state: State) -> bool | None:
    found = unwrap(command.words)
    if found.environment:
        state = state.copy()
        for name, value in found.environment.items():
            state.set(name, tuple(value), True)
    if found.script is not None:
        _text(reader, scan, command, state, [found.script])
        return True
    if not found.words:
        return True
    name = text_of(found.words[0]).rpartition("/")[2]
    if name in _SHELLS:
        _shell(reader, scan, command, state, found.words[1:])
        return True
    if found.words is not command.words and name in reader.functions:
        return reader.call(name, found.words[1:], state)
    if text_of(found.words[0]).endswith(".sh"):
        _script(reader, command, state, found.words)
        return True
    made = launches.recognise(found.words, scan.source.span(command.start), state)
    if made is not None:
        made.settings[:0] = found.settings
        made.written = {
            name: Written(text_of(body), place(body)[0] if body else scan.source.span(command.start))
            for name, body in reader.written.items()
        }
        reader.launches.append(made)
        reader.last = (made, scan, command)
        if text_of(command.words[0]) == "exec":
            state.flow = "exit"
    elif name not in ("echo", "sleep", "wait", "tee"):
        reader.last = None
    return True


def _cut_off(reader: Reader, scan: Scanner, command: Simple) -> None:
    """Words of a launch that bash runs as a command of their own, and what cut them off."""
    assert reader.last is not None
    launch, last_scan, before = reader.last
    span = scan.source.span(command.start, len(text_of(command.words[0])))
    between = scan.text[before.start : command.start] if last_scan is scan else ""
    blanks = re.search(r"\\[ \t]+(?:#[^\n]*)?\r?\n", between)
    comment = re.search(r"\\\r?\n[ \t]*(#[^\n]*)\n", between)
    word = text_of(command.words[0])
    if blanks is not None:
        at = before.start + blanks.start()
        launch.problems.append(Problem("AC2111", scan.source.span(at), {"word": word, "line": str(span.line)}))
    elif comment is not None:
        at = before.start + comment.start(1)
        place_ = scan.source.span(at, len(comment.group(1)))
        launch.problems.append(Problem("AC2110", place_, {"word": word, "line": str(span.line)}))
    else:
        launch.problems.append(Problem("AC2112", span, {"word": word}))
    reader.last = None


def _keep(reader: Reader, command: Simple, name: str) -> None:
    """Remembers a here-document that is written to a file."""
    body = next((redirect.body for redirect in command.redirects if redirect.body is not None), None)
    targets = [redirect.target for redirect in command.redirects if redirect.sign in (">", ">|", ">>")]
    if name == "tee":
        targets = [word for word in command.words[1:] if not text_of(word).startswith("-")]
    if body is None:
        return
    for target in targets[:1]:
        reader.written[text_of(target)] = body


def _declare(reader: Reader, command: Simple, state: State, name: str) -> bool:
    options = "".join(text_of(word) for word in command.words[1:] if text_of(word).startswith("-"))
    export = name == "export" or "x" in options
    for made in command.assignments:
        reader.expander.assign(made, state, export and "n" not in options)
    for word in command.words[1:]:
        text = text_of(word)
        if not _NAME.fullmatch(text):
            continue
        if "A" in options:
            state.set(text, {})
        elif "a" in options and text not in state.variables:
            state.set(text, [])
        elif export and text in state.variables:
            state.set(text, state.variables[text], True)
    return True


def _unset(reader: Reader, scan: Scanner, command: Simple, state: State) -> bool:
    for word in command.words[1:]:
        name = text_of(word)
        if name in state.variables:
            state.variables[name] = ()
            state.exported -= {name}
    return True


def _set(reader: Reader, scan: Scanner, command: Simple, state: State) -> bool:
    words = [text_of(word) for word in command.words]
    if "--" in words:
        state.positional = [tuple(word) for word in command.words[words.index("--") + 1 :]]
    for word in words[1:]:
        if word.startswith(("-", "+")) and "a" in word and not word.startswith("--") and "o" not in word:
            state.export_all = word[0] == "-"
    if "allexport" in words:
        state.export_all = "+o" not in words
    return True


def _shift(reader: Reader, scan: Scanner, command: Simple, state: State) -> bool:
    if state.positional is not None:
        count = text_of(command.words[1]) if len(command.words) > 1 else "1"
        state.positional = state.positional[
            int(count) if count.isascii() and count.isdigit() and len(count) < 4 else 1 :
        ]
    return True


def _exit(reader: Reader, scan: Scanner, command: Simple, state: State) -> bool:
    state.flow = text_of(command.words[0])
    return True


def _true(reader: Reader, scan: Scanner, command: Simple, state: State) -> bool:
    return True


def _false(reader: Reader, scan: Scanner, command: Simple, state: State) -> bool:
    return False


def _test(reader: Reader, scan: Scanner, command: Simple, state: State) -> bool | None:
    return condition(scan, command.start, command.end, state)


def _let(reader: Reader, scan: Scanner, command: Simple, state: State) -> bool | None:
    answer: bool | None = None
    for word in command.words[1:]:
        span = word[0]
        answer = reader.calculate(text_of(word), state, (span.source, span.at, span.size))
    for made in command.assignments:
        text = f"{made.name}={text_of(made.value)}"
        answer = reader.calculate(text, state, (scan.source, command.start, command.end - command.start))
    return answer


def _read(reader: Reader, scan: Scanner, command: Simple, state: State) -> bool:
    why = Unresolved("read from input at run time", "在运行时从输入读取")
    for word in command.words[1:]:
        name = text_of(word)
        if _NAME.fullmatch(name):
            state.set(name, (Piece(f"${name}", word[0].source, word[0].at, word[0].size, why=why),))
    return True


def _printf(reader: Reader, scan: Scanner, command: Simple, state: State) -> bool:
    words = command.words
    if len(words) > 2 and text_of(words[1]) == "-v":
        why = Unresolved("put together by printf", "由 printf 拼接生成")
        state.set(text_of(words[2]), (Piece("?", words[2][0].source, words[2][0].at, 1, why=why),))
    return True


def _eval(reader: Reader, scan: Scanner, command: Simple, state: State) -> bool | None:
    return _text(reader, scan, command, state, command.words[1:])


def _text(reader: Reader, scan: Scanner, command: Simple, state: State, words: list[Word]) -> bool | None:
    """A command handed on as text: split where it is plain, read as a script of its own where it is not."""
    pieces: Word = []
    for index, word in enumerate(words):
        if index:
            pieces.append(Piece(" ", word[0].source, word[0].at, 0))
        pieces += word
    text = "".join(piece.text for piece in pieces if piece.why is None)
    parts = split(piece if piece.why else _open(piece) for piece in pieces)
    plain = len(parts)
    for index, part in enumerate(parts):
        if _CUTS.fullmatch(text_of(part)):
            plain = index
            break
    if not _SPECIAL.search(" ".join(text_of(part) for part in parts[:plain] if not reason(part))) and not (
        re.search(r"(?:&&|;|\|\|)", text)
    ):
        return reader.words(scan, command, state, parts[:plain])
    if len(reader.calls) >= 20 or reader.depth > 40:
        return None
    reader.calls.append("")
    try:
        reader.script(Source.of([piece for piece in pieces if piece.text]), state)
    finally:
        reader.calls.pop()
    return True


def _open(piece: Piece) -> Piece:
    made = piece.cut(0, len(piece.text))
    made.split = True
    return made


def _shell(reader: Reader, scan: Scanner, command: Simple, state: State, words: list[Word]) -> None:
    """``bash -c "…"``, ``bash <<EOF`` and ``bash script.sh``."""
    index = 0
    while index < len(words) and text_of(words[index])[:1] in ("-", "+"):
        option = text_of(words[index])
        index += 1
        if not option.startswith("--") and "c" in option:
            inner = state.copy()
            inner.positional = [tuple(word) for word in words[index + 2 :]] or None
            if index < len(words):
                _text(reader, scan, command, inner, [words[index]])
            return
        if option in ("-o", "-O", "--rcfile", "--init-file"):
            index += 1
    if index < len(words):
        _script(reader, command, state, words[index:])
        return
    body = next((redirect.body for redirect in command.redirects if redirect.body), None)
    if body is not None:
        reader.script(Source.of(body), state.copy())


def _script(reader: Reader, command: Simple, state: State, words: list[Word]) -> None:
    """A script beside this one, in a shell of its own: it sees what was exported."""
    inner = State({name: state.variables[name] for name in state.exported if name in state.variables}, state.exported)
    inner.positional = [tuple(word) for word in words[1:]]
    _include(reader, words[0], inner)


def _source(reader: Reader, scan: Scanner, command: Simple, state: State) -> bool:
    if len(command.words) > 1:
        outer = state.positional
        if len(command.words) > 2:
            state.positional = [tuple(word) for word in command.words[2:]]
        _include(reader, command.words[1], state)
        state.positional = outer
        if state.flow == "return":
            state.flow = ""
    return True


def _include(reader: Reader, word: Word, state: State) -> None:
    """Reads a file beside the script, if it lies inside the root and is not being read already."""
    path = _beside(reader, word)
    if path is None:
        return
    name = str(path.resolve())
    span = place(word)[0]
    if name in (reader.including or [_resolved(reader.file)]):
        reader.problems.append(Problem("AC2104", span, {"file": text_of(word)}))
        return
    if len(reader.including) >= _MAX_SOURCED:
        reader.problems.append(Problem("AC2105", span, {"file": text_of(word), "limit": str(_MAX_SOURCED)}))
        return
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return
    if not reader.including:
        reader.including.append(_resolved(reader.file))
    reader.including.append(name)
    try:
        reader.script(Source(str(path), text), state)
    finally:
        reader.including.pop()


def _resolved(file: str) -> str:
    try:
        return str(Path(file).resolve())
    except (OSError, ValueError):
        return file


def _beside(reader: Reader, word: Word) -> Path | None:
    if reader.root is None or closed() or doubt(word) is not None:
        return None
    known = word
    if reason(word) is not None:
        known = [piece for index, piece in enumerate(word) if piece.why is None and index]
        if reason(known) is not None or not text_of(known).startswith("/"):
            return None
        known = [known[0].cut(1, len(known[0].text)), *known[1:]]
    name = text_of(known)
    if not name or "\0" in name or len(name) > 500:
        return None
    folder = Path(reader.file).parent if reader.file != "-" else reader.root
    named = Path(name)
    for candidate in (folder / named, reader.root / named, named, folder / named.name):
        try:
            if candidate.is_file() and candidate.stat().st_size <= _MAX_BYTES:
                candidate.resolve().relative_to(reader.root.resolve())
                return candidate
        except (OSError, ValueError):
            continue
    return None


_BUILTINS = {
    "source": _source,
    ".": _source,
    "eval": _eval,
    "set": _set,
    "shift": _shift,
    "unset": _unset,
    "exit": _exit,
    "return": _exit,
    "break": _exit,
    "continue": _exit,
    "true": _true,
    ":": _true,
    "false": _false,
    "let": _let,
    "read": _read,
    "mapfile": _read,
    "readarray": _read,
    "printf": _printf,
    "test": _test,
    "[": _test,
}
