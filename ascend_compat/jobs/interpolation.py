"""``${a.b}`` inside a YAML file: references are followed, anything that needs the running process is unresolved."""

from __future__ import annotations

import re

from ascend_compat.jobs.model import Scalar, Unresolved, Value
from ascend_compat.jobs.yaml_tree import Node, plain, plain_value

_PART = re.compile(r"\$\{([^${}]*)\}")
_MAX_STEPS = 32
# more than any real file has; references that double each other would never end
_MAX_REFERENCES = 20_000
_MAX_TEXT = 10_000
_TOO_MANY = Unresolved("its references are too many to follow", "引用过多，未展开")


def resolve(node: Node, root: Node, path: str = "") -> Value:
    """The value of ``node`` with references into ``root`` followed; ``path`` is its dotted place, for relative ones."""
    if node.items is not None or node.pairs is not None:
        return _inside(node, root, path)
    if not isinstance(node.scalar, str) or "${" not in node.scalar:
        return node.scalar
    return _text(node.scalar, root, path, _MAX_STEPS)


def _inside(node: Node, root: Node, path: str) -> Value:
    if node.items is not None:
        return [resolve(item, root, path) for item in node.items]
    return {name: resolve(value, root, f"{path}.{name}") for name, value in node.pairs or ()}


def _text(text: str, root: Node, path: str, steps: int) -> Value:
    for _ in range(steps):
        if len(text) > _MAX_TEXT:
            return _TOO_MANY
        match = _PART.search(text)
        if match is None:
            break
        value = _reference(match.group(1).strip(), root, path, steps - 1)
        if match.group(0) == text or isinstance(value, (Unresolved, list, dict)):
            return value
        text = f"{text[: match.start()]}{_shown(value)}{text[match.end() :]}"
    if "${" in text:
        return Unresolved(f"the reference {text} is not followed", f"未展开引用 {text}")
    return text


def _shown(value: Scalar) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _reference(text: str, root: Node, path: str, steps: int) -> Value:
    root.followed += 1
    if root.followed > _MAX_REFERENCES:
        return _TOO_MANY
    if steps <= 0:
        return Unresolved("its references lead in a circle or too far", "引用成环或层数过多")
    resolver, colon, argument = text.partition(":")
    if not colon:
        return _target(text, root, path, steps)
    name, comma, fallback = argument.partition(",")
    if resolver == "oc.env":
        if comma:
            return plain(fallback.strip().strip("'\""))
        name = name.strip()
        return Unresolved(f"{name} is set from the environment at run time", f"{name} 在运行时由环境变量给出")
    if resolver == "oc.select":
        found = _target(name.strip(), root, path, steps)
        return plain(fallback.strip().strip("'\"")) if comma and isinstance(found, Unresolved) else found
    return Unresolved(f"${{{text}}} is computed at run time", f"${{{text}}} 在运行时计算")


def _target(text: str, root: Node, path: str, steps: int) -> Value:
    dots = len(text) - len(text.lstrip("."))
    base = path.split(".")[: -dots or None] if dots else []
    full = [*base, *[part for part in text.lstrip(".").split(".") if part]]
    node: Node | None = root
    for part in full:
        if node is None:
            break
        at = int(part) if node.items and part.isdecimal() and len(part) < 8 else None
        node = node.items[at] if node.items and at is not None and at < len(node.items) else node.get(part)
    if node is None:
        return Unresolved(f"{text} is not in this file", f"本文件中没有 {text}")
    if isinstance(node.scalar, str) and "${" in node.scalar:
        return _text(node.scalar, root, ".".join(full), steps)
    return plain_value(node)
