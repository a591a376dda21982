"""A software stack and its machine: what is known, from where, and whether what is not listed is known to be absent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ascend_compat.jobs.model import Span

# fact names of the values a stack states directly
TEXT_VALUES = {
    "chip": "chip",
    "cann": "cann_version",
    "nnal": "nnal_version",
    "driver": "driver_version",
    "firmware": "firmware_version",
    "kernels": "kernels_chip",
    "python": "python_version",
    "architecture": "architecture",
    "container_image": "container_image",
    "ascendfactory": "ascendfactory_release",
}
NUMBER_VALUES = {"npu_count": "host_devices", "nodes": "host_nodes", "npu_memory_gib": "device_memory_gib"}

_NAME = re.compile(r"[-_.]+")


def package_name(name: str) -> str:
    """A distribution's name as the registry compares names: ``torch_npu`` and ``Torch-NPU`` are ``torch-npu``."""
    return _NAME.sub("-", name.strip()).lower()


@dataclass(frozen=True, slots=True)
class Stated:
    """A value and the line it came from; no line for what was found on this host."""

    value: str
    span: Span | None = None


@dataclass(slots=True)
class Stack:
    """What one stack file, listing, image reference or host says.

    ``pip_listing`` says that packages stand as pip lists them, though maybe not all of them.
    ``packages_complete`` and ``env_complete`` say that a package or variable that is not listed is absent.
    ``absent`` names values that were looked for and are not there.
    ``notes`` are things a user should know about the scan, as (English, Chinese).
    """

    source: str
    values: dict[str, Stated] = field(default_factory=dict)
    packages: dict[str, Stated] = field(default_factory=dict)
    env: dict[str, Stated] = field(default_factory=dict)
    pip_listing: bool = False
    packages_complete: bool = False
    env_complete: bool = False
    absent: set[str] = field(default_factory=set)
    notes: list[tuple[str, str]] = field(default_factory=list)

    def state(self, name: str, value: str, span: Span | None = None) -> None:
        """Set a value of :data:`TEXT_VALUES` or :data:`NUMBER_VALUES`; an empty or unknown one is no statement."""
        text = value.strip()
        if text.lower() in ("not installed", "absent"):
            self.absent.add(name)
        elif text and text.lower() not in ("unknown", "none", "n/a", "na", "-", "?"):
            self.values[name] = Stated(text, span)

    def value(self, name: str) -> str | None:
        """The stated text of a value; None when it is not stated."""
        stated = self.values.get(name)
        return stated.value if stated else None

    def version(self, package: str) -> str | None:
        """The version of an installed distribution; None when it is not listed."""
        stated = self.packages.get(package_name(package))
        return stated.value if stated else None

    def facts(self, con: Any = None) -> StackFacts:
        """Facts by name, as rules read them; with a matrix connection also what the tables say of the chip."""
        from ascend_compat.stack.facts import stack_facts

        return stack_facts(self, con)


class StackFacts(Mapping[str, Any]):
    """Facts of a stack, each with the line it came from; reads as a mapping of name to value."""

    def __init__(self, stack: Stack, values: Mapping[str, Any], spans: Mapping[str, Span | None]) -> None:
        self.stack = stack
        self.spans = spans
        self._values = dict(values)

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)
