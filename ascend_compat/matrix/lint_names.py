"""Everything the documents declare, and checks of names against it."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ascend_compat.matrix.normal import release_key

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ascend_compat.matrix.lint import Notes
    from ascend_compat.matrix.lint_tree import Tree


@dataclass(slots=True)
class World:
    """What is declared anywhere, by kind of name."""

    models: dict[str, dict[str, Any]] = field(default_factory=dict)
    features: set[str] = field(default_factory=set)
    frameworks: dict[str, str] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)
    releases: dict[str, list[str]] = field(default_factory=dict)
    names: dict[str, dict[str, str]] = field(default_factory=dict)

    def release(self, product: str, text: str) -> str | None:
        """A release's id by its id or an alias of it."""
        return self.names.get(product, {}).get(release_key(text))


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint at the known name most like this one."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; the nearest is {close[0]}" if close else ""


def window(
    tree: Tree, path: tuple[str | int, ...], entry: dict[str, Any], product: str, world: World, notes: Notes
) -> None:
    """``since`` and ``until`` name known releases, in order."""
    order = world.releases.get(product)
    if order is None:
        return
    places = []
    for name in ("since", "until"):
        if name not in entry:
            continue
        release = world.release(product, str(entry[name]))
        if release is None:
            sentence = f"{product} has no release {entry[name]}{nearest(str(entry[name]), order)}."
            notes.add(tree, (*path, name), "AC0010", sentence)
        else:
            places.append(order.index(release))
    if len(places) == 2 and places[0] > places[1]:
        notes.add(
            tree, (*path, "until"), "AC0030", f"The window ends ({entry['until']}) before it begins ({entry['since']})."
        )
