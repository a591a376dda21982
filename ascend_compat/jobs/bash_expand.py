"""Expansions: ``$X``, ``${X…}``, ``$(( ))`` and ``$( )``, as far as the text of a script decides them."""

from __future__ import annotations

import fnmatch
import re

from ascend_compat.jobs.bash_arithmetic import Arithmetic, NotANumber
from ascend_compat.jobs.bash_state import State, Variable, scalar
from ascend_compat.jobs.bash_words import Assignment, Scanner, TooMuch
from ascend_compat.jobs.model import Unresolved
from ascend_compat.jobs.shell_text import BREAK, Piece, Source, Text, reason, text_of

_PARAMETER = re.compile(r"(#|!)?([A-Za-z_]\w*|[0-9]+|[@*#?$!-])(\[[^\]]*\])?")
_OPERATOR = re.compile(r":[-=+?]|[-=+?]|%%|%|##|#|//|/[#%]?|\^\^|\^|,,|,|:|@[A-Za-z]")
_COMMAND_LINE = Unresolved("given on the command line when the script is started", "由启动脚本时的命令行参数给出")
_UNLESS_GIVEN = Unresolved(
    "the default, unless the command line of the script gives another", "默认值，启动脚本时可由命令行参数改写"
)
_SPECIAL = Unresolved("known only while the script runs", "仅在脚本运行时才能确定")
_ASCEND = Unresolved("taken to run on an Ascend host", "按在昇腾主机上运行处理")
_PROBES_NPU = re.compile(r"torch_npu|npu-smi|/dev/davinci")
_ECHOES = re.compile(r"&&\s*echo\s+([\w.-]+)\s*(?:\|\||$)")
_DIRECTORY = re.compile(
    r"cd\s+(?:--?\w*\s+)?(.+?)\s*(?:&?1?>\s*/dev/null\s*)?(?:2>(?:&1|\s*/dev/null)\s*)?(?:&&|;)\s*pwd(?:\s+-P)?$"
)
_LONGEST = 8000
MAX_EXPANDED = 250_000


def from_environment(name: str) -> Unresolved:
    """Why a variable that the file never sets is not known."""
    return Unresolved(f"{name} is set from the environment at run time", f"{name} 在运行时由环境变量给出")


class Expander:
    """Expands over a state. ``script`` is what ``$0`` means."""

    def __init__(self, script: str) -> None:
        self.script = script
        self.steps = 0

    def assign(self, made: Assignment, state: State, export: bool = False) -> None:
        """Carries out an assignment."""
        value: Variable
        old = state.variables.get(made.name)
        if made.items is not None:
            value = [tuple(word) for word in made.items]
            if made.adds:
                value = [*(old if isinstance(old, list) else [old] if isinstance(old, tuple) else []), *value]
        elif made.index:
            value = self._element(made, old)
        elif made.adds:
            first = scalar(old) or ()
            value = (*first, *made.value)
            if isinstance(old, list):
                value = [value, *old[1:]]
        else:
            value = made.value
            if any(piece.unset == made.name for piece in value) and "/" not in text_of(value):
                value = tuple(piece for piece in value if piece.unset != made.name)
        state.set(made.name, value, export)

    def _element(self, made: Assignment, old: Variable | None) -> Variable:
        key = made.index.strip("'\"")
        if isinstance(old, list) or (_is_index(key) and not isinstance(old, dict)):
            items = list(old) if isinstance(old, list) else []
            if _is_index(key) and int(key) <= len(items) + 64:
                items += [()] * (int(key) + 1 - len(items))
                items[int(key)] = made.value
            return items
        return {**(old if isinstance(old, dict) else {}), key: made.value}

    def variable(self, source: Source, at: int, end: int, name: str, state: State, quoted: bool) -> list[Piece]:
        """``$NAME`` and the special parameters."""
        site = (source, at, end - at)
        if name in "@*":
            return self._all(state.positional or [], site, quoted and name == "@", quoted)
        return self._use(self._value(name, state, source, at, end), site, quoted)

    def _use(self, value: Text, site: tuple[Source, int, int], quoted: bool) -> list[Piece]:
        self.steps += len(value) + sum([len(piece.text) for piece in value]) // 64
        if self.steps > MAX_EXPANDED:
            raise TooMuch(site[1])
        if not value and quoted:
            return [Piece("", site[0], site[1], 0)]
        return [piece.used(site, not quoted) for piece in value]

    def _all(self, words: list[Text], site: tuple[Source, int, int], apart: bool, quoted: bool) -> list[Piece]:
        pieces: list[Piece] = []
        for index, word in enumerate(words):
            if index:
                pieces.append(Piece(" ", *site) if quoted and not apart else BREAK)
            used = self._use(word, site, quoted)
            pieces += used or []
        return pieces

    def _value(self, name: str, state: State, source: Source, at: int, end: int) -> Text:
        """The value of a scalar; one unknown piece where nothing in the file sets it."""
        shown = source.text[at:end]
        if name.isdigit():
            if name == "0":
                return (Piece(self.script, source, at, end - at),)
            if state.positional is not None:
                index = int(name) - 1 if len(name) < 4 else 1000
                return state.positional[index] if index < len(state.positional) else ()
            return (Piece(shown, source, at, end - at, why=_COMMAND_LINE),)
        if not (name[0].isalpha() or name[0] == "_"):
            if name == "#" and state.positional is not None:
                return (Piece(str(len(state.positional)), source, at, end - at),)
            return (Piece(shown, source, at, end - at, why=_COMMAND_LINE if name == "#" else _SPECIAL),)
        value = scalar(state.variables.get(name))
        if value is not None:
            return value
        if name == "BASH_SOURCE":
            return (Piece(source.file or self.script, source, at, end - at),)
        return (Piece(f"${name}", source, at, end - at, why=from_environment(name), unset=name),)

    def parameter(self, scan: Scanner, at: int, start: int, end: int, state: State, quoted: bool) -> list[Piece]:
        """``${ … }``; ``start`` to ``end`` is what stands between the braces."""
        source, text = scan.source, scan.text
        site = (source, at, end + 1 - at)
        match = _PARAMETER.match(text, start, end)
        if match is None or (match.group(1) == "#" and match.end() != end and match.group(2) == "#"):
            return [Piece(text[at : end + 1], source, at, site[2], why=_SPECIAL)]
        mark, name, index = match.group(1), match.group(2), (match.group(3) or "")[1:-1]
        if mark == "!":
            return self._indirect(name, index, site, state, quoted)
        if index in ("@", "*") or name in ("@", "*"):
            words = self._words(name, state)
            if mark == "#":
                return [Piece(str(len(words)), *site)]
            operator = text[match.end() : end]
            unset = name not in state.variables and index and name != "BASH_SOURCE"
            if operator.startswith(":") and operator[1:2] not in "-+=?":
                words = self._slice(words, operator[1:])
            elif operator.startswith((":-", "-")) and not words:
                return scan.word(match.end() + len(operator) - len(operator.lstrip(":-")), end, state)[0]
            elif operator.startswith(("+", ":+")):
                return scan.word(match.end() + operator.index("+") + 1, end, state)[0] if words else []
            if unset or not words:
                return []
            return self._all(words, site, quoted and "@" in (index, name), quoted)
        value = self._indexed(name, index, state, source, at, end + 1) if index else None
        if value is None:
            value = self._value(name, state, source, at, end + 1)
        if mark == "#":
            why = reason(value)
            return [Piece(text[at : end + 1] if why else str(len(text_of(value))), *site, why=why)]
        operator_match = _OPERATOR.match(text, match.end(), end)
        if operator_match is None:
            return self._use(value, site, quoted)
        return self._operate(scan, operator_match, end, name, value, site, state, quoted)

    def _words(self, name: str, state: State) -> list[Text]:
        if name in ("@", "*"):
            return state.positional or []
        value = state.variables.get(name)
        if isinstance(value, dict):
            return list(value.values())
        return value if isinstance(value, list) else [value] if value else []

    def _indexed(self, name: str, index: str, state: State, source: Source, at: int, end: int) -> Text | None:
        value = state.variables.get(name)
        index = index.strip("'\"")
        if isinstance(value, dict):
            return value.get(index, ())
        if not isinstance(value, list):
            return None
        try:
            return value[self._number(index, state)] if value else ()
        except IndexError:
            return ()
        except NotANumber:
            return (Piece(source.text[at:end], source, at, end - at, why=_SPECIAL),)

    @staticmethod
    def _slice(words: list[Text], bounds: str) -> list[Text]:
        first, _, count = bounds.partition(":")
        if not _is_index(first.strip().removeprefix("-")) or not (_is_index(count.strip()) or not count):
            return words
        start = int(first)
        return words[start : start + int(count)] if count else words[start:]

    def _indirect(
        self, name: str, index: str, site: tuple[Source, int, int], state: State, quoted: bool
    ) -> list[Piece]:
        value = state.variables.get(name)
        if index in ("@", "*"):
            count = len(value) if isinstance(value, list) else 0
            keys = list(value) if isinstance(value, dict) else [str(number) for number in range(count)]
            return self._all([(Piece(key, *site),) for key in keys], site, quoted, quoted)
        target = text_of(scalar(value) or ())
        if not target.isidentifier():
            return [Piece(site[0].text[site[1] : site[1] + site[2]], *site, why=_SPECIAL)]
        return self._use(self._value(target, state, site[0], site[1], site[1] + site[2]), site, quoted)

    def _operate(
        self,
        scan: Scanner,
        match: re.Match[str],
        end: int,
        name: str,
        value: Text,
        site: tuple[Source, int, int],
        state: State,
        quoted: bool,
    ) -> list[Piece]:
        operator = match.group()
        given = len(value) == 1 and value[0].why is _COMMAND_LINE
        absent = given or (len(value) == 1 and bool(value[0].unset))
        empty = absent or (not text_of(value) and (operator[0] == ":" or (name not in state.variables)))
        if operator[-1] == "+":
            return [] if empty else self._argument(scan, match.end(), end, state, quoted)
        if operator[-1] in "-=" and empty:
            return self._default(scan, match, end, name, given, state, quoted)
        if operator[-1] in "-=?":
            return self._use(value, site, quoted)
        why = reason(value)
        if why is not None:
            if operator in ("##", "#", "%", "%%", "/", "//") and len(value) > 1 and not value[-1].why:
                return self._use(value, site, quoted)
            return [Piece(scan.text[site[1] : site[1] + site[2]], *site, why=why)]
        argument = self._argument(scan, match.end(), end, state, quoted=True) if operator != ":" else []
        if reason(argument):
            return [Piece(scan.text[site[1] : site[1] + site[2]], *site, why=reason(argument))]
        whole = text_of(value)
        changed = self._changed(whole, operator, text_of(argument), scan.text[match.end() : end], state)
        if changed is None:
            return [Piece(scan.text[site[1] : site[1] + site[2]], *site, why=_SPECIAL)]
        origin = value[0] if len(value) == 1 else Piece("", *site)
        made = Piece(changed, origin.source, origin.at, origin.size, chain=origin.chain, note=origin.note)
        if made.exact and changed != whole:
            made = Piece(changed, *site)
        return self._use((made,), site, quoted)

    def _default(
        self, scan: Scanner, match: re.Match[str], end: int, name: str, given: bool, state: State, quoted: bool
    ) -> list[Piece]:
        pieces = self._argument(scan, match.end(), end, state, quoted)
        if match.group()[-1] == "=":
            state.set(name, tuple(pieces))
        if given:
            for piece in pieces:
                piece.note = piece.note or _UNLESS_GIVEN
        return pieces

    @staticmethod
    def _argument(scan: Scanner, at: int, end: int, state: State, quoted: bool) -> list[Piece]:
        if quoted:
            return scan.quoted(at, end, state, here=True, inner=True)[0] or [Piece("", scan.source, at, 0)]
        pieces: list[Piece] = []
        while at < end:
            more, after = scan.word(at, end, state)
            if after == at:
                more, after = [Piece(scan.text[at], scan.source, at, 1, split=True)], at + 1
            pieces += more
            at = after
        return pieces

    def _changed(self, text: str, operator: str, argument: str, raw: str, state: State) -> str | None:
        if len(text) > _LONGEST or len(argument) > 200:
            return None
        if operator in ("#", "##"):
            ends = range(len(text) + 1) if operator == "#" else range(len(text), -1, -1)
            return next((text[end:] for end in ends if fnmatch.fnmatchcase(text[:end], argument)), text)
        if operator in ("%", "%%"):
            starts = range(len(text), -1, -1) if operator == "%" else range(len(text) + 1)
            return next((text[:start] for start in starts if fnmatch.fnmatchcase(text[start:], argument)), text)
        if operator[0] == "/":
            pattern, _, new = argument.partition("/")
            if any(letter in pattern for letter in "*?["):
                return None
            if operator == "//":
                return text.replace(pattern, new) if pattern else text
            return text.replace(pattern, new, 1) if operator == "/" and pattern else None
        if operator in ("^^", ",,"):
            return text.upper() if operator == "^^" else text.lower()
        if operator in ("^", ","):
            return (text[:1].upper() if operator == "^" else text[:1].lower()) + text[1:]
        if operator == ":":
            try:
                first, _, count = raw.partition(":")
                start = self._number(first, state)
                length = self._number(count, state) if count else len(text)
            except NotANumber:
                return None
            rest = text[start:]
            return rest[:length]
        return None

    def arithmetic(
        self, scan: Scanner, at: int, start: int, stop: int, end: int, state: State, quoted: bool
    ) -> list[Piece]:
        """``$(( … ))``."""
        site = (scan.source, at, end - at)
        inner, _ = scan.quoted(start, stop, state, here=True)
        why = reason(inner)
        if why is None:
            try:
                return [Piece(str(self._number(text_of(inner), state, site)), *site)]
            except NotANumber as error:
                why = error.args[0] if error.args else _SPECIAL
        return [Piece(scan.text[at:end], *site, why=why)]

    def calculate(self, text: str, state: State, site: tuple[Source, int, int]) -> int:
        """Works out an arithmetic expression with its assignments. Raises :class:`NotANumber`."""
        return self._number(text.replace("$", ""), state, site)

    def _number(self, text: str, state: State, site: tuple[Source, int, int] | None = None, depth: int = 0) -> int:
        def read(name: str) -> int:
            value = scalar(state.variables.get(name))
            if value is None:
                raise NotANumber(from_environment(name))
            why = reason(value)
            if why is not None or depth > 8:
                raise NotANumber(why or _SPECIAL)
            return self._number(text_of(value), state, site, depth + 1)

        def write(name: str, number: int) -> None:
            if site is not None:
                state.set(name, (Piece(str(number), *site),))

        return Arithmetic(text, read, write).value()

    def output(self, source: Source, at: int, end: int) -> Piece:
        """What a command would print: not known."""
        shown = source.text[at:end]
        brief = re.sub(r"\s+", " ", shown)
        brief = brief if len(brief) <= 60 else brief[:57] + "..."
        why = Unresolved(f"the output of {brief} is known only at run time", f"{brief} 的输出在运行时才能确定")
        return Piece(shown, source, at, end - at, why=why)

    def command(
        self, scan: Scanner, at: int, start: int, stop: int, end: int, state: State, quoted: bool
    ) -> list[Piece]:
        """``$( … )``: a few commands that only rearrange text are followed, the rest is unknown."""
        source, inside = scan.source, scan.text[start:stop]
        site = (source, at, end - at)
        if _PROBES_NPU.search(inside):
            echoed = _ECHOES.search(inside)
            if echoed is not None:
                return [Piece(echoed.group(1), source, start + echoed.start(1), len(echoed.group(1)), note=_ASCEND)]
        directory = _DIRECTORY.match(inside.strip())
        if directory is not None:
            offset = start + len(inside) - len(inside.lstrip()) + directory.start(1)
            pieces, after = scan.word(offset, stop, state)
            if after - offset == len(directory.group(1)):
                return [Piece(text_of(pieces) or ".", *site, why=reason(pieces))]
        name = inside.split(None, 1)[:1]
        if name and name[0] in _TEXTUAL and "`" not in inside:
            made = self._textual(scan, start, stop, state, site, quoted)
            if made is not None:
                return made
        return [self.output(source, at, end)]

    def _textual(
        self, scan: Scanner, start: int, stop: int, state: State, site: tuple[Source, int, int], quoted: bool
    ) -> list[Piece] | None:
        command = scan.simple(start, state, stop)
        if command.end < stop and scan.text[command.end : stop].strip():
            return None
        words = [word for word in command.words[1:] if not text_of(word).startswith("-")]
        name = text_of(command.words[0]) if command.words else ""
        if name == "echo":
            pieces: list[Piece] = []
            for index, word in enumerate(words):
                pieces += [Piece(" ", *site)] if index else []
                pieces += word
            return self._use(tuple(pieces), site, quoted)
        if name == "expr":
            why = next((found for word in words if (found := reason(word)) is not None), None)
            try:
                return [Piece(str(self._number(" ".join(map(text_of, words)), state)), *site, why=why)]
            except NotANumber:
                return None
        if not words:
            return None
        text = text_of(words[0])
        if name == "dirname":
            head, slash, _ = text.rstrip("/").rpartition("/")
            text = head or ("/" if slash else ".")
        elif name == "basename":
            text = text.rstrip("/").rpartition("/")[2]
            if len(words) > 1:
                text = text.removesuffix(text_of(words[1]))
        elif name == "seq":
            return self._sequence(words, site)
        return [Piece(text, *site, why=reason(words[0]) if name != "basename" else reason(words[0][-1:]))]

    @staticmethod
    def _sequence(words: list[list[Piece]], site: tuple[Source, int, int]) -> list[Piece] | None:
        numbers = [text_of(word) for word in words]
        if not all(re.fullmatch(r"-?\d{1,6}", number) for number in numbers) or not 1 <= len(numbers) <= 3:
            return None
        bounds = [int(number) for number in numbers]
        first, last = (1, bounds[0]) if len(bounds) == 1 else (bounds[0], bounds[-1])
        step = bounds[1] if len(bounds) == 3 else 1
        if step == 0 or abs(last - first) // abs(step) > 256:
            return None
        values = range(first, last + (1 if step > 0 else -1), step)
        return [Piece(" ".join(map(str, values)), *site, split=True)]


_TEXTUAL = frozenset(("dirname", "basename", "echo", "realpath", "readlink", "expr", "seq"))


def _is_index(text: str) -> bool:
    """Whether a text is a number that can count things (``²`` is a digit to Python, too)."""
    return text.isascii() and text.isdigit() and len(text) < 10
