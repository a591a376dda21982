"""A framework's keys, defaults and derivations at a version: a fast view of what the matrix holds of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ascend_compat.jobs.model import Unresolved

if TYPE_CHECKING:
    import duckdb

    from ascend_compat.jobs.model import Launch

_MEGATRON_SECTIONS = ("actor_config", "ref_config", "reward_config", "critic_config", "vit_config")
_BUILD = re.compile(r"(?:[.+_-]?(?:dev|rc|a|b|alpha|beta)\.?\d*|\+.*)$")
_BUNDLE = "ascendfactory"
_MAX_REMEMBERED = 4096
_MOVING = frozenset(("main", "master", "head", "dev"))


@dataclass(frozen=True, slots=True)
class Window:
    """Releases (by place in the order, both ends inclusive) and shipped configs in which something holds; None = no limit."""

    first: int | None = None
    last: int | None = None
    configs: frozenset[str] | None = None

    def holds(self, at: int | None, base: Base) -> bool:
        """Whether a release and the shipped config a launch starts from lie inside; an unlisted release lies in every one."""
        if self.configs is None:
            if base.apart:
                return False
        elif base.names and not self.configs & base.names:
            return False
        return at is None or ((self.first is None or self.first <= at) and (self.last is None or at <= self.last))


@dataclass(frozen=True, slots=True)
class Base:
    """The shipped configs a launch starts from; none where the framework has only one.

    ``foreign``: it starts from another config, which nobody listed or whose name is not known.
    """

    names: frozenset[str] = frozenset()
    apart: bool = False
    foreign: bool = False


NO_BASE = Base()


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a framework, with its entry of the key list."""

    name: str
    fact: str | None
    type: str
    raw: Mapping[str, Any]
    windows: tuple[Window, ...] = (Window(),)
    defaults: tuple[tuple[Window, Any], ...] = ()
    deprecated_at: int | None = None

    @property
    def deprecated(self) -> str | None:
        """The key to use instead, where the framework has one."""
        new = self.raw.get("deprecated")
        return new if isinstance(new, str) else None


@dataclass(frozen=True, slots=True)
class Default:
    """The value a framework gives a fact that a job leaves alone."""

    fact: str
    value: Any
    key: str


class Keys(Mapping[str, Key]):
    """Keys by name, each made when first asked for; ``raw`` are the entries of the key list."""

    def __init__(self, raw: Mapping[str, Mapping[str, Any]], make: Callable[[Mapping[str, Any]], Key]) -> None:
        self.raw = raw
        self._make = make
        self._made: dict[str, Key] = {}

    def __getitem__(self, name: str) -> Key:
        key = self._made.get(name)
        if key is None:
            key = self._made[name] = self._with_fact(name, self._make(self.raw[name]))
        return key

    def __contains__(self, name: object) -> bool:
        return name in self.raw

    def __iter__(self) -> Iterator[str]:
        return iter(self.raw)

    def __len__(self) -> int:
        return len(self.raw)

    def _with_fact(self, name: str, key: Key) -> Key:
        """An alias or an old name without a fact of its own has that of the key it stands for."""
        origin = self.raw.get(str(key.raw.get("alias_of") or key.deprecated or ""))
        if origin is None or key.fact is not None:
            return key
        kind = key.raw.get("type", origin.get("type", "text"))
        return Key(name, origin.get("fact"), kind, key.raw, key.windows, key.defaults, key.deprecated_at)


@dataclass
class Spec:
    """Everything one framework's document and key list say; ``releases`` are oldest first."""

    framework: str
    product: str
    releases: tuple[str, ...]
    derived: tuple[tuple[str, str], ...]
    features: tuple[tuple[str, str], ...]
    types: Mapping[str, str]
    newest: str
    aliases: Mapping[str, str] = field(default_factory=dict)
    keys: Keys = field(default_factory=lambda: Keys({}, _no_key))
    strict: Mapping[str, str] = field(default_factory=dict)
    configs: Sequence[Sequence[Mapping[str, Any]]] = ()
    trees: Mapping[str, Any] = field(default_factory=dict)
    load_bundle: Callable[[], Spec | None] = lambda: None
    _places: dict[str, int] = field(default_factory=dict)
    _folded: dict[str, str] = field(default_factory=dict)
    _defaults: dict[tuple[str, Base], dict[str, Default]] = field(default_factory=dict)
    _open: tuple[str, ...] = ()
    closed: tuple[tuple[str, str], ...] = ()
    sections: tuple[tuple[str, str], ...] = ()
    _keys_of: dict[str, str] = field(default_factory=dict)
    _nearest: dict[str, str | None] = field(default_factory=dict)

    @cached_property
    def bundle(self) -> Spec | None:
        """The spec of the bundle's own keys, around a job in the bundle's form."""
        return self.load_bundle()

    def find(self, name: str, loose: bool = False) -> Key | None:
        """The key a user's spelling means; None for one the framework never had. ``loose``: hyphen and underscore are one."""
        key = self.keys.get(name)
        if key is None and (loose or ":" in name or self.framework == "mindspeed-rl"):
            if not self._folded:
                self._folded = {fold(known): known for known in reversed(list(self.keys))}
            key = self.keys.get(self._folded.get(fold(name), ""))
        if key is None and self.framework == "mindspeed-rl":
            key = self._in_section(name)
        return key

    def _in_section(self, name: str) -> Key | None:
        section, _, rest = name.partition(".")
        if section == "model" and "." in rest:
            last = rest.rpartition(".")[2]
            return self.keys.get(f"model.<name>.{last}") or self.keys.get(f"model.{last}") or self._shared(last, True)
        if section == "megatron_training":
            return self._shared(rest, True)
        if section in _MEGATRON_SECTIONS:
            return self._shared(rest, section == "actor_config")
        return None

    def _shared(self, rest: str, with_fact: bool) -> Key | None:
        """The training section's key of the same name: every Megatron section takes it; only the actor's is the job's fact."""
        places = ("megatron_training", "model.<name>", "actor_config")
        key = next((self.keys[f"{place}.{rest}"] for place in places if f"{place}.{rest}" in self.keys), None)
        if key is None or with_fact:
            return key
        return Key(key.name, None, key.type, key.raw, key.windows)

    def is_open(self, name: str) -> bool:
        """Whether any key is accepted at this place."""
        return any(name.startswith(f"{prefix}.") for prefix in self._open)

    def closed_fact(self, name: str) -> str | None:
        """The fact that counts unknown names below a closed key; None where ``name`` is below none."""
        return next((fact for prefix, fact in self.closed if name.startswith(f"{prefix}.")), None)

    def place(self, version: str) -> int | None:
        """The place of a release in the order, by id or alias; None for one nobody listed.

        A development build (``0.9.3.dev0``) reads keys as the release it leads to.
        """
        for spelling in (version, _BUILD.sub("", version)):
            wanted = self.aliases.get(spelling, spelling)
            for name in (wanted, f"v{wanted}", wanted.removeprefix("v")):
                if name in self._places:
                    return self._places[name]
        return None

    def base(self, launch: Launch) -> Base:
        """The shipped configs a launch starts from: in each group the first that fits."""
        if not self.configs:
            return NO_BASE
        said = {"launch:entry": launch.entry}
        said.update((setting.key, str(setting.value)) for setting in launch.settings)
        names: set[str] = set()
        apart = False
        foreign = any(s.key == "--config-name" and isinstance(s.value, Unresolved) for s in launch.settings)
        for group in self.configs:
            for entry in group:
                key, like = entry.get("key"), entry.get("like", "*")
                if key is None or fnmatchcase(said.get(key, ""), like):
                    names.add(entry["config"])
                    apart = apart or bool(entry.get("apart"))
                    foreign = foreign or bool(entry.get("foreign"))
                    break
        return Base(frozenset(names), apart, foreign)

    def holds(self, key: Key, version: str, base: Base = NO_BASE) -> bool:
        """Whether the key exists at ``version`` in the config a launch starts from."""
        at = self.place(version)
        return any(window.holds(at, base) for window in key.windows)

    def defaults(self, version: str, base: Base = NO_BASE) -> dict[str, Default]:
        """Facts that have a default at ``version``; where several keys set one fact, the first that has one wins."""
        found = self._defaults.get((version, base))
        if found is None:
            found = self._defaults[version, base] = {}
            at = self.place(version)
            for name, raw in self.keys.raw.items():
                if not raw.get("fact") or raw["fact"] in found or not ("default" in raw or raw.get("defaults")):
                    continue
                key = self.keys[name]
                if key.fact is None or raw.get("alias_of") or key.deprecated in self.keys:
                    continue
                if not any(window.holds(at, base) for window in key.windows):
                    continue
                _, value = self._default(key, at, base)
                if value is not None:
                    found[key.fact] = Default(key.fact, value, key.name)
        return found

    def default(self, key: Key, version: str, base: Base = NO_BASE) -> tuple[bool, Any]:
        """Whether the key has a default at ``version``, and which."""
        return self._default(key, self.place(version), base)

    @staticmethod
    def _default(key: Key, at: int | None, base: Base) -> tuple[bool, Any]:
        for window, value in key.defaults:
            if at is None and window.last is not None:
                continue
            if (window.configs is None or not base.names or window.configs & base.names) and (
                at is None
                or ((window.first is None or window.first <= at) and (window.last is None or at <= window.last))
            ):
                return True, value
        return "default" in key.raw, key.raw.get("default")

    def nearest(self, name: str) -> str | None:
        """The known key a misspelt one most likely means."""
        if name not in self._nearest:
            from ascend_compat.jobs.suggest import nearest

            if len(self._nearest) >= _MAX_REMEMBERED:
                self._nearest.clear()
            self._nearest[name] = nearest(name, [key for key in self.keys if ":" not in key and "@" not in key])
        return self._nearest[name]

    def key_of(self, fact: str) -> str:
        """The key by which a user sets a fact; the fact's own name where no key does."""
        if not self._keys_of:
            for name, raw in self.keys.raw.items():
                if raw.get("fact") and not raw.get("alias_of") and not isinstance(raw.get("deprecated"), str):
                    self._keys_of.setdefault(raw["fact"], name)
        return self._keys_of.get(fact, fact)

    def switch_of(self, fact: str) -> tuple[str, bool]:
        """The key by which a user sets a fact, and whether giving that key turns the fact off."""
        name = self.key_of(fact)
        key = self.keys.get(name)
        return name, bool(key and key.raw.get("no"))

    def window_of(self, raw: Mapping[str, Any]) -> Window:
        """The window an entry of the key list states."""
        ends = [self.place(str(raw[name])) if raw.get(name) is not None else None for name in ("since", "until")]
        configs = raw.get("config")
        return Window(ends[0], ends[1], frozenset(configs) if configs else None)


def fold(name: str) -> str:
    """A spelling without the difference of hyphen and underscore."""
    return name.replace("-", "_")


def make_spec(
    body: Mapping[str, Any], releases: Iterable[str], types: Mapping[str, str], aliases: Mapping[str, str] | None = None
) -> Spec:
    """A :class:`Spec` from a framework document that carries its key list under ``keys``."""
    order = tuple(releases)
    numbered = [release for release in order if release.lower() not in _MOVING]
    spec = Spec(
        framework=body.get("id") or body["framework"],
        product=body.get("product") or body.get("id") or body["framework"],
        releases=order,
        derived=tuple((entry["fact"], entry["sql"]) for entry in body.get("derived") or ()),
        features=tuple((entry["feature"], entry["when"]) for entry in body.get("features") or ()),
        types=types,
        newest=(numbered or list(order) or ["unknown"])[-1],
        aliases=aliases or {},
        strict=body.get("strict") or {},
        configs=body.get("configs") or (),
        _places={release: place for place, release in enumerate(order)},
    )
    keys: dict[str, Mapping[str, Any]] = {}
    for raw in body.get("keys") or ():
        keys[raw["key"]] = raw
        for alias in raw.get("aliases") or ():
            keys.setdefault(alias, {**raw, "alias_of": raw["key"]})
    spec.keys = Keys(keys, lambda raw: _key(spec, raw))
    spec._open = tuple(name for name, raw in keys.items() if raw.get("open"))
    spec.closed = tuple((name, raw["closed"]) for name, raw in keys.items() if raw.get("closed"))
    spec.sections = tuple((name, raw["fact"]) for name, raw in keys.items() if raw.get("present") and raw.get("fact"))
    return spec


def _no_key(raw: Mapping[str, Any]) -> Key:
    raise KeyError(raw["key"])


def _key(spec: Spec, raw: Mapping[str, Any]) -> Key:
    own = spec.window_of(raw)
    windows = tuple(spec.window_of(entry) for entry in raw.get("windows") or ()) or (own,)
    defaults = tuple((spec.window_of(entry), entry.get("value")) for entry in raw.get("defaults") or ())
    since = raw.get("deprecated_since")
    at = spec.place(str(since)) if since is not None else None
    return Key(raw["key"], raw.get("fact"), raw.get("type", "text"), raw, windows, defaults, at)


def load_spec(con: duckdb.DuckDBPyConnection, framework: str) -> Spec | None:
    """The spec of ``framework``, without keys where the matrix only lists it; None for one it does not know."""
    row = con.execute("SELECT compact FROM framework_spec WHERE framework = ?", [framework]).fetchone()
    if row is None:
        listed = con.execute("SELECT product FROM framework WHERE id = ?", [framework]).fetchone()
        if listed is None or framework == _BUNDLE:
            return None
        body: dict[str, Any] = {"id": framework, "product": listed[0]}
        body["facts"] = dict(con.execute("SELECT name, type FROM fact").fetchall())
        names = con.execute("SELECT release, aliases FROM release WHERE product = ?", [listed[0]]).fetchall()
        body["aliases"] = {alias: release for release, listed_ in names for alias in listed_ or ()}
    else:
        body = json.loads(row[0])
    spec = make_spec(body, body.get("versions") or (), body["facts"], body["aliases"])
    spec.trees = body.get("trees") or {}
    if framework != _BUNDLE:
        spec.load_bundle = lambda: load_spec(con, _BUNDLE)
    return spec
