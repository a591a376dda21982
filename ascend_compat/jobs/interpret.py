"""Settings -> facts: what a launch means under the keys of its framework at a version."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from ascend_compat.jobs.architecture import Architecture, name_model
from ascend_compat.jobs.model import Fact, Job, Launch, Origin, Problem, Setting, Span, Unresolved
from ascend_compat.jobs.spec import NO_BASE, Base, Default, Key, Spec, Window
from ascend_compat.jobs.values import SKIP, FactValue, WrongType, as_words, hydra_value, typed, unresolved_in

if TYPE_CHECKING:
    import duckdb

    from ascend_compat.matrix.names import Names

_BUNDLE = "ascendfactory"
_DEVICES = Unresolved(
    "the file does not say on how many devices it runs; the command line or the environment does",
    "文件未写明运行卡数，由命令行或环境变量决定",
)
_PATCHED = Unresolved(
    "the packaged copy may know keys that the plain framework does not", "套件内置的框架副本可能支持原版没有的参数"
)
_OPEN_CONFIG = Unresolved(
    "the job brings its own configuration, whose names are not listed", "作业自带配置，其参数名不在清单中"
)
_ON_START = Unresolved("a config leaves it to the command that starts the job", "配置文件将其留给启动命令给出")
# what the bundle may set by itself: its pages show no place for the algorithm in a job file
_PRESET = frozenset(("algorithm.adv_estimator",))
_BY_BUNDLE = Unresolved("the bundle may set it; its pages do not say", "套件可能自行设置，其页面未说明")
# hydra's mark for a value that has to be given
_MANDATORY = "???"
_SCRIPTS = ("bash", "manifest")
_GUESSED = ("deepspeed-json:", "launch:")
# Engines whose keys carry a prefix; the defaults of the framework's other keys are not theirs.
_ENGINES = frozenset(("v1", "fsdp2"))
_UNKNOWN_KEYS = "unknown_key_count"
# a file with more unknown names than this is another program's; looking for what each may mean takes time
_MAX_SUGGESTED = 50


def interpret(
    launch: Launch,
    spec: Spec,
    version: str,
    basis: str = "option",
    *,
    names: Names | None = None,
    con: duckdb.DuckDBPyConnection | None = None,
    architecture: Architecture | None = None,
) -> Job:
    """The job that ``launch`` describes when framework ``version`` reads it.

    ``names`` finds the model a job names; ``architecture`` (or the database behind ``con``) gives that model's facts.
    """
    job = Job(launch, version, basis)
    reader = _Reader(job, spec)
    if launch.entry and not reader.bundled and "launch:entry" in spec.keys:
        reader.take(Setting("launch:entry", launch.entry, Span(launch.file, launch.line)))
    for setting in launch.settings:
        reader.take(setting)
    reader.add_sections()
    _add_defaults(job, spec, reader.base)
    if spec.configs and launch.format not in _SCRIPTS:
        _open_left_unset(job, spec)
    reader.add_counts()
    if architecture is None and con is not None:
        architecture = Architecture.of(con)
    name_model(job, spec, names, architecture)
    return job


class _Reader:
    """Takes one setting after the other; a later one wins over an earlier one of the same fact."""

    def __init__(self, job: Job, spec: Spec) -> None:
        self.job, self.spec = job, spec
        self.base = spec.base(job.launch)
        self.bundled = job.launch.product == _BUNDLE
        self.hydra = spec.framework in ("verl", "mindspeed-rl")
        self.unknown = self.appended = self.unmatched = 0
        self.below_closed: dict[str, int] = {}
        searched = any(setting.key == "hydra.searchpath" for setting in job.launch.settings)
        self.elsewhere = searched or self.base.foreign
        self.groups = _groups(job.launch, spec) if spec.strict else frozenset()

    def take(self, setting: Setting) -> None:
        """Turns a setting into its fact, or into a problem that says why not."""
        key = self.spec.find(setting.key, loose=self.bundled)
        if key is None and self.bundled and self.spec.bundle is not None:
            key = self.spec.bundle.find(setting.key, loose=True)
            if key is not None:
                self._value(setting, key)
                return
        if key is None:
            self._unknown(setting)
            return
        if setting.prefix == "~":
            if key.fact:
                self._state(Fact(key.fact, None, "stated", setting.span, setting.key, None, setting.chain))
            return
        self._window(setting, key)
        self._value(setting, key)

    def _value(self, setting: Setting, key: Key) -> None:
        value = setting.value
        if self.hydra and isinstance(value, str):
            value = _ON_START if value == _MANDATORY else hydra_value(value)
        reason = unresolved_in(value)
        if reason is not None:
            if key.fact:
                self._state(Fact(key.fact, None, "unknown", setting.span, setting.key, reason, setting.chain))
            return
        try:
            meant = typed(value, key)
        except WrongType:
            words = {"key": setting.key, "value": as_words(value)[:80], "type": key.type}
            self._problem("AC2024", setting, words)
            if key.fact:
                why = Unresolved(f"{words['value']} is no {key.type}", f"{words['value']} 不是 {key.type} 类型的值")
                self._state(Fact(key.fact, None, "unknown", setting.span, setting.key, why, setting.chain))
            return
        if meant is SKIP:
            return
        choices = key.raw.get("choices")
        if choices and setting.key.startswith("--") and meant is not None and not _allowed(meant, value, choices):
            words = {"key": setting.key, "value": as_words(value)[:80], "choices": ", ".join(map(str, choices))}
            self._problem("AC2025", setting, words)
        if key.fact:
            origin: Origin = "derived" if self._inferred(setting) else "stated"
            fact = cast("FactValue", meant)
            self._state(Fact(key.fact, fact, origin, setting.span, setting.key, setting.guess, setting.chain))

    def _inferred(self, setting: Setting) -> bool:
        """Whether a value is a guess; the fallback of a shell variable is written in the script and is none."""
        written = self.job.launch.format in _SCRIPTS and not setting.key.startswith(_GUESSED)
        return setting.guess is not None and not written

    def _state(self, fact: Fact) -> None:
        before = self.job.facts.get(fact.name)
        if before is not None and before.key != fact.key and fact.value is None and fact.origin == "stated":
            return
        self.job.facts[fact.name] = fact

    def _window(self, setting: Setting, key: Key) -> None:
        if setting.key.startswith("launch:") or self.base.foreign:
            return
        words = {"key": setting.key, "framework": self.spec.framework, "version": self.job.version}
        at = self.spec.place(self.job.version)
        if not any(window.holds(at, self.base) for window in key.windows):
            if setting.prefix:
                return
            self._outside(setting, key, at, words)
            return
        if key.raw.get("appended") and not setting.prefix and self._struct():
            self._problem("AC2040", setting, words)
            self.unknown += 1
            return
        late = key.deprecated_at is None or at is None or at >= key.deprecated_at
        if key.deprecated and late:
            if setting.value is None or setting.value == self.spec.default(key, self.job.version, self.base)[1]:
                return
            self._problem("AC2023", setting, {**words, "new": key.deprecated})
        elif setting.prefix == "+" and not self.spec.is_open(setting.key) and not _takes_append(key, setting.value):
            self._problem("AC2034", setting, words)
            self.appended += 1

    def _outside(self, setting: Setting, key: Key, at: int | None, words: dict[str, str]) -> None:
        in_time = [w for w in key.windows if Window(w.first, w.last).holds(at, NO_BASE)]
        if in_time and not self._struct():
            return
        if in_time:
            owners = sorted(set().union(*(window.configs or frozenset() for window in in_time)))
            base = ", ".join(sorted(self.base.names))
            self._problem("AC2039", setting, {**words, "config": base, "owners": ", ".join(owners)})
        elif at is not None and all(window.first is not None and at < window.first for window in key.windows):
            first = min(window.first for window in key.windows if window.first is not None)
            self._problem("AC2021", setting, {**words, "since": self.spec.releases[first]})
        else:
            lasts = [window.last for window in key.windows if window.last is not None]
            until = self.spec.releases[max(lasts)] if lasts else "?"
            if key.deprecated:
                self._problem("AC2036", setting, {**words, "until": until, "new": key.deprecated})
            else:
                self._problem("AC2022", setting, {**words, "until": until})
        self.unknown += 1

    def _struct(self) -> bool:
        """Whether names are checked: overrides on a command line are, a whole file only where the key list says so."""
        strict = self.spec.strict
        return "unknown" in strict and (bool(strict.get("files")) or not self.job.launch.format.endswith("yaml"))

    def _unknown(self, setting: Setting) -> None:
        if ":" in setting.key or "@" in setting.key or not self.spec.keys:
            return
        if (
            self.elsewhere
            or setting.key.partition(".")[0] in self.groups
            or (self.hydra and setting.key.startswith("-"))
        ):
            return
        closed = self.spec.closed_fact(setting.key)
        if closed is not None:
            self.below_closed[closed] = self.below_closed.get(closed, 0) + 1
        elif self.spec.is_open(setting.key) or setting.prefix:
            return
        else:
            self.unknown += 1
        words = {"key": setting.key, "framework": self.spec.framework, "version": self.job.version}
        self.unmatched += 1
        near = self.spec.nearest(setting.key) if self.unmatched <= _MAX_SUGGESTED else None
        if near:
            self._problem("AC2033" if self.bundled else "AC2020", setting, {**words, "nearest": near})
        else:
            self._problem("AC2038" if self.bundled else "AC2037", setting, words)

    def _problem(self, code: str, setting: Setting, words: dict[str, str]) -> None:
        self.job.problems.append(Problem(code, setting.span, words))

    def add_sections(self) -> None:
        """Which sections a file writes at all (keys with ``present``), and which shipped configs the launch starts from."""
        said = [setting.key for setting in self.job.launch.settings]
        for key, fact in self.spec.sections:
            there = any(name == key or name.startswith(f"{key}.") for name in said)
            self.job.facts[fact] = Fact(fact, there, "stated" if there else "default", None, key)
        if self.base.names and "shipped_configs" in self.spec.types:
            name = "shipped_configs"
            if self.job.launch.format in _SCRIPTS:
                self.job.facts[name] = Fact(name, sorted(self.base.names), "derived")
            else:
                self.job.facts[name] = Fact(name, None, "unknown", None, None, _ON_START)

    def add_counts(self) -> None:
        """How many names the framework will refuse, as facts that rules can ask for."""
        allowed = self.job.facts.get("allow_extra_args")
        counts = {self.spec.strict.get("unknown", _UNKNOWN_KEYS): self.unknown, **self.below_closed}
        if "appended" in self.spec.strict:
            counts[self.spec.strict["appended"]] = self.appended
        for fact in (fact for _, fact in self.spec.closed):
            counts.setdefault(fact, 0)
        for name, count in counts.items():
            if name not in self.spec.types:
                continue
            if self.bundled or self.elsewhere or ("unknown" in self.spec.strict and not self._struct()):
                why = _PATCHED if self.bundled else _OPEN_CONFIG
                self.job.facts[name] = Fact(name, None, "unknown", None, None, why)
            else:
                value = 0 if allowed is not None and allowed.value is True else count
                self.job.facts[name] = Fact(name, value, "derived")


def _groups(launch: Launch, spec: Spec) -> frozenset[str]:
    """Hydra groups that an override such as ``engine=megatron`` exchanges, and hydra's own; their keys are not listed."""
    names = {setting.key for setting in launch.settings if "." not in setting.key and setting.key not in spec.keys}
    sections = {key.partition(".")[0] for key in spec.keys if "." in key}
    return frozenset(names & sections | {"hydra"})


def _takes_append(key: Key, value: object) -> bool:
    """Whether hydra lets ``+`` set this key: it lacks one, its shipped value is null, or a list or mapping is merged in."""
    whole = isinstance(value, (list, dict)) or (isinstance(value, str) and value.lstrip("'\"").startswith(("[", "{")))
    return bool(key.raw.get("appended") or key.raw.get("unset")) or whole


def _allowed(meant: object, value: object, choices: list[object]) -> bool:
    words = {str(choice) for choice in choices}
    if isinstance(meant, list):
        return all(str(item) in words for item in meant)
    return str(meant) in words or str(value) in words or as_words(cast("str", value)) in words


def _add_defaults(job: Job, spec: Spec, base: Base) -> None:
    launch = job.launch
    missing = next((s for s in launch.settings if s.key == "file:config" and isinstance(s.value, Unresolved)), None)
    for default in _applying(launch, spec, job.version, base):
        if default.fact in job.facts:
            continue
        if missing is not None:
            why = cast("Unresolved", missing.value)
            job.facts[default.fact] = Fact(default.fact, None, "unknown", missing.span, missing.key, why)
        elif base.foreign:
            job.facts[default.fact] = Fact(default.fact, None, "unknown", None, default.key, _OPEN_CONFIG)
        elif launch.product == _BUNDLE and default.key in _PRESET:
            job.facts[default.fact] = Fact(default.fact, None, "unknown", None, default.key, _BY_BUNDLE)
        else:
            job.facts[default.fact] = Fact(default.fact, default.value, "default", None, default.key)
    if missing is not None or base.foreign:
        why = cast("Unresolved", missing.value) if missing is not None else _OPEN_CONFIG
        for name, raw in spec.keys.raw.items():
            fact = raw.get("fact")
            if fact and ":" not in name and fact not in job.facts:
                job.facts[fact] = Fact(fact, None, "unknown", missing.span if missing else None, name, why)
    if launch.product == _BUNDLE and spec.framework in ("llamafactory", "mindspeed-llm"):
        names = ["nnodes"] if "visible_devices" in job.facts else ["nnodes", "devices_per_node"]
        for name in names:
            if name in spec.types:
                job.facts.setdefault(name, Fact(name, None, "unknown", None, None, _DEVICES))


def _open_left_unset(job: Job, spec: Spec) -> None:
    """In a config of its own, what it leaves null is given by the command that starts it."""
    for name, raw in spec.keys.raw.items():
        fact = raw.get("fact") if raw.get("unset") else None
        if fact and (fact not in job.facts or job.facts[fact].value is None):
            known = job.facts.get(fact)
            job.facts[fact] = Fact(fact, None, "unknown", known.span if known else None, name, _ON_START)


def _applying(launch: Launch, spec: Spec, version: str, base: Base) -> Iterator[Default]:
    """Defaults of the keys that count for this launch: those of a launcher or side file only where it is used."""
    used = {setting.key.partition(":")[0] for setting in launch.settings if ":" in setting.key}
    other_engine = bool(_ENGINES & used)
    for default in spec.defaults(version, base).values():
        prefix, colon, _ = default.key.partition(":")
        if not colon:
            if not other_engine:
                yield default
        elif prefix in used or (prefix == "env" and launch.product != _BUNDLE):
            yield default
