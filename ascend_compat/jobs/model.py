"""What a reader hands on: a launch with its settings, and the job those settings mean."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Union

Origin = Literal["stated", "default", "derived", "model", "unknown"]


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a user's file: 1-based line and column, in characters; ``text`` is that whole line."""

    file: str
    line: int
    column: int = 1
    length: int = 1
    text: str = ""


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A value that cannot be known from the file, and why, in both languages."""

    en: str
    zh: str


Scalar = str | int | float | bool | None
Value = Union[Scalar, Unresolved, "list[Value]", "dict[str, Value]"]


@dataclass(frozen=True, slots=True)
class Setting:
    """One key as the file gives it.

    ``key`` is in the framework's own spelling (``--seq-length``, ``actor_rollout_ref.rollout.n``, ``env:NNODES``,
    ``torchrun:--nproc_per_node``). ``value`` is True for a bare flag; bash and hydra values stay text.
    ``span`` is the text a user would edit (the assignment, not the use); ``chain`` leads from the use to it.
    ``prefix`` is hydra's ``+``, ``++`` or ``~``. ``guess`` says why, where a reader infers the value instead of reading it.
    """

    key: str
    value: Value
    span: Span
    chain: tuple[Span, ...] = ()
    prefix: str = ""
    guess: Unresolved | None = None


@dataclass(slots=True)
class Problem:
    """Something in a file that a reader could not take, by its code in the catalogue, with the words of its message."""

    code: str
    span: Span
    words: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Written:
    """A file that a script writes before it starts its program: its text, and where that text begins in the script."""

    text: str
    span: Span


@dataclass(slots=True)
class Launch:
    """One started program found in a file. Later settings win over earlier ones of the same key."""

    file: str
    line: int
    format: str
    framework: str
    product: str
    entry: str
    settings: list[Setting] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    written: dict[str, Written] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fact:
    """What a job says of itself in the checker's words. ``value`` is None when unset or unknown; ``origin`` tells which."""

    name: str
    value: Scalar | list[int] | list[str]
    origin: Origin
    span: Span | None = None
    key: str | None = None
    why: Unresolved | None = None
    chain: tuple[Span, ...] = ()


@dataclass(slots=True)
class Job:
    """A launch, understood: facts by name, the framework version its keys were read under, and what was not understood."""

    launch: Launch
    version: str
    version_basis: str
    facts: dict[str, Fact] = field(default_factory=dict)
    model: str | None = None
    problems: list[Problem] = field(default_factory=list)
