"""Arguments of a started program -> settings: flags, hydra overrides, and job files with overrides."""

from __future__ import annotations

import re

from ascend_compat.jobs import hydra
from ascend_compat.jobs.model import Launch, Problem, Setting, Span, Unresolved, Value
from ascend_compat.jobs.shell_text import Piece, Word, doubt, place, reason, text_of
from ascend_compat.jobs.wrappers import tail, value_of

_FLAG = re.compile(r"--?[A-Za-z_]")
_GROUP = re.compile(
    r"(?:^|_)(?:ARGS?|OPTS?|OPTIONS?|FLAGS?|PARAMS?|EXTRAS?|CONFIGS?|OVERRIDES?)(?:_|$|\d)", re.IGNORECASE
)
_HYDRA_FLAGS = {
    "--config-name": "--config-name",
    "-cn": "--config-name",
    "--config-path": "--config-path",
    "-cp": "--config-path",
    "--config-dir": "--config-dir",
    "-cd": "--config-dir",
}
_HYDRA_BARE = frozenset(("--multirun", "-m", "--run", "-r", "--resolve", "--help", "-h", "--info", "--hydra-help"))
_FILE = re.compile(r".*\.(?:ya?ml|json)$", re.DOTALL)
_REFERENCE = re.compile(r"\$\{([A-Za-z_][\w.]*)\}")


def is_absent(word: Word) -> bool:
    """Whether a word is a bare variable that nothing sets: bash leaves nothing of it."""
    return len(word) == 1 and bool(word[0].unset) and word[0].split


def setting(key: str, word: Word, start: int = 0, prefix: str = "") -> Setting:
    """A setting whose value is the word from character ``start`` on."""
    value = tail(word, start) if start else word
    meant = doubt(word) or value_of(value)
    at, chain, note = place(value or word)
    return Setting(key, meant, at, chain, prefix, note)


def bare(key: str, word: Word) -> Setting:
    """A setting that is true by its presence."""
    at, chain, note = place(word)
    return Setting(key, doubt(word) or True, at, chain, guess=note)


def flags(words: list[Word], launch: Launch) -> list[Setting]:
    """``--flag``, ``--flag value``, ``--flag=value``, ``--flag value value``: all words up to the next flag are its value."""
    settings: list[Setting] = []
    flag: Word | None = None
    values: list[Word] = []
    leaked = False

    def close() -> None:
        if flag is None:
            return
        key = text_of(flag)
        if not values:
            settings.append(bare(key, flag))
        elif len(values) == 1:
            settings.append(_valued(key, flag, values[0]))
        else:
            settings.append(_several(key, flag, values))

    for word in words:
        text = text_of(word)
        if text.startswith("#") and not word[0].why:
            if not leaked:
                launch.problems.append(Problem("AC2113", place(word)[0], {"word": text}))
            leaked = True
            close()
            flag, values = None, []
        elif _FLAG.match(text):
            close()
            flag, values = None, []
            name, equals, _ = text.partition("=")
            if equals:
                settings.append(setting(name, word, len(name) + 1))
            else:
                flag = word
        elif flag is not None and text.strip():
            if is_absent(word) and (values or not _is_value(flag, word)):
                continue
            values.append(word)
    close()
    return settings


def _is_value(flag: Word, word: Word) -> bool:
    """Whether an unset bare variable after a flag stands for the flag's value, not for a group of arguments."""
    if _GROUP.search(word[0].unset):
        return False
    last, first = flag[-1], word[0]
    if last.source is not first.source:
        return True
    return "\n" not in first.source.text[min(last.at, first.at) : max(last.at, first.at)]


def _valued(key: str, flag: Word, word: Word) -> Setting:
    made = setting(key, word)
    maybe = doubt(flag)
    return made if maybe is None else Setting(key, maybe, made.span, made.chain)


def _several(key: str, flag: Word, values: list[Word]) -> Setting:
    at, chain, note = place(values[0])
    end, _, _ = place(values[-1])
    if end.file == at.file and end.line == at.line and end.column >= at.column:
        at = Span(at.file, at.line, at.column, end.column + end.length - at.column, at.text)
    meant: Value = doubt(flag) or [value_of(word) for word in values]
    return Setting(key, meant, at, chain, guess=note)


def overrides(words: list[Word], launch: Launch) -> list[Setting]:
    """Hydra's command line: overrides and its own flags."""
    settings: list[Setting] = []
    unknown: set[int] = set()
    index = 0
    while index < len(words):
        word = words[index]
        text = text_of(word)
        index += 1
        if is_absent(word) or not text.strip():
            continue
        name, equals, _ = text.partition("=")
        if name.startswith("-"):
            key = _HYDRA_FLAGS.get(name)
            if name in _HYDRA_BARE:
                settings.append(bare(name, word))
            elif equals:
                settings.append(setting(key or name, word, len(name) + 1))
            elif key is not None and index < len(words):
                settings.append(setting(key, words[index]))
                index += 1
            elif index < len(words) and "=" not in text_of(words[index]) and text_of(words[index])[:1] != "-":
                settings.append(setting(name, words[index]))
                index += 1
            else:
                settings.append(bare(name, word))
            continue
        made = _override(word, text, launch)
        if made is not None:
            if reason(word) is not None:
                unknown.add(len(settings))
            settings.append(made)
    return _referenced(settings, unknown)


def _override(word: Word, text: str, launch: Launch) -> Setting | None:
    known = "".join(piece.text if piece.why is None else "_" for piece in word)
    try:
        found = hydra.parse(known)
    except hydra.Malformed as error:
        if reason(word) is None or "=" not in known:
            span = _at(word, min(error.at, max(0, len(known) - 1)))
            if known.startswith("#"):
                launch.problems.append(Problem("AC2113", span, {"word": known[:60]}))
            elif reason(word) is None and not any(
                p.code == "AC2120" and p.span.line == span.line for p in launch.problems
            ):
                words = {"word": known[:80], "position": str(error.at + 1), "reason": error.en, "reason_zh": error.zh}
                launch.problems.append(Problem("AC2120", span, words))
            return None
        key, _, _ = text.partition("=")
        made = setting(key.lstrip("+~"), word, len(key) + 1)
        return Setting(made.key, made.value, made.span, made.chain, key[: len(key) - len(key.lstrip("+~"))], made.guess)
    if found.start < 0:
        at, chain, note = place(word)
        return Setting(found.key, doubt(word), at, chain, found.prefix, note)
    made = setting(found.key, word, found.start, found.prefix)
    if isinstance(made.value, Unresolved):
        return made
    value = found.value if reason(word) is None else made.value
    return Setting(made.key, value, made.span, made.chain, made.prefix, made.guess)


def _at(word: Word, position: int) -> Span:
    for piece in word:
        if position < len(piece.text):
            return piece.source.span(piece.at + position, 1) if piece.exact else piece.span()
        position -= len(piece.text)
    return _last(word).span()


def _last(word: Word) -> Piece:
    return word[-1]


def _referenced(settings: list[Setting], unknown: set[int]) -> list[Setting]:
    """``${a.b}`` that names another override takes its value; other references are left for the config they point into."""
    values = {made.key: made.value for made in settings}
    done: list[Setting] = []
    for index, made in enumerate(settings):
        text = made.value
        if isinstance(text, str) and "${" in text and index not in unknown:
            match = _REFERENCE.fullmatch(text)
            target = values.get(match.group(1), text) if match is not None and match.group(1) != made.key else text
            if isinstance(target, str) and "${" in target:
                target = Unresolved(f"{text} refers to another part of the config", f"{text} 引用了配置中的其他项")
            made = Setting(made.key, target, made.span, made.chain, made.prefix, made.guess)
        done.append(made)
    return done


def job_file(words: list[Word], launch: Launch, *, dotted: bool) -> list[Setting]:
    """``[train] x.yaml key=value --key value``: the file as ``file:config``, the rest under the names a job file uses."""
    settings: list[Setting] = []
    rest = words
    if rest and text_of(rest[0]).isalpha():
        rest = rest[1:]
    if rest and _FILE.match(text_of(rest[0])) and not text_of(rest[0]).startswith("-"):
        settings.append(setting("file:config", rest[0]))
        rest = rest[1:]
    flagged: list[Word] = []
    for word in rest:
        name, equals, _ = text_of(word).partition("=")
        if equals and re.fullmatch(r"[A-Za-z_][\w.]*", name):
            settings.append(setting(name, word, len(name) + 1))
        else:
            flagged.append(word)
    for made in flags(flagged, launch):
        key = made.key.lstrip("-")
        key = key if dotted else key.replace("-", "_")
        settings.append(Setting(key, made.value, made.span, made.chain, guess=made.guess))
    return settings
