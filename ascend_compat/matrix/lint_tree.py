"""A document with the place of every value: plain data for checking, node marks for pointing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import yaml


@dataclass(slots=True)
class Tree:
    """One file of the matrix: its data, and where each part of it stands."""

    file: Path
    name: str
    body: Any = None
    root: yaml.Node | None = None
    duplicates: list[tuple[str, int, int]] = field(default_factory=list)

    @property
    def kind(self) -> str | None:
        """What the document says it is."""
        kind = self.body.get("kind") if isinstance(self.body, dict) else None
        return kind if isinstance(kind, str) else None

    def place(self, path: Sequence[str | int] = ()) -> tuple[int, int]:
        """1-based line and column of a value; of its nearest stated parent where it is not there itself."""
        import yaml

        node = self.root
        for step in path:
            below: yaml.Node | None = None
            if isinstance(node, yaml.MappingNode):
                below = next((value for name, value in node.value if name.value == str(step)), None)
            elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
                below = node.value[step]
            if below is None:
                break
            node = below
        if node is None:
            return 1, 1
        return node.start_mark.line + 1, node.start_mark.column + 1


class Unreadable(ValueError):
    """A file that is not one YAML document; with the place of the trouble."""

    def __init__(self, reason: str, line: int = 1, column: int = 1) -> None:
        super().__init__(reason)
        self.line, self.column = line, column


def read_tree(file: Path, name: str) -> Tree:
    """A YAML document with places. Raises :class:`Unreadable`."""
    import yaml

    try:
        root = yaml.compose(file.read_bytes().decode("utf-8"), Loader=yaml.CBaseLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        raise Unreadable(error.problem or "not YAML", line, column) from error
    except (yaml.YAMLError, OSError, UnicodeDecodeError) as error:
        raise Unreadable(" ".join(str(error).split())) from error
    tree = Tree(file, name, root=root)
    tree.body = _value(root, tree.duplicates)
    return tree


def _value(node: Any, duplicates: list[tuple[str, int, int]]) -> Any:
    import yaml

    if node is None:
        return None
    if isinstance(node, yaml.MappingNode):
        found: dict[Any, Any] = {}
        for name, value in node.value:
            if name.value in found:
                duplicates.append((name.value, name.start_mark.line + 1, name.start_mark.column + 1))
            found[name.value] = _value(value, duplicates)
        return found
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, duplicates) for item in node.value]
    return node.value if node.style in ("'", '"', "|", ">") else _scalar(node.value)


def _scalar(text: str) -> Any:
    """Numbers, truth and nothing as YAML 1.1 has them; everything else, dates too, stays text."""
    import yaml

    resolvers = yaml.CSafeLoader.yaml_implicit_resolvers.get(text[:1], ())
    tag = next((tag for tag, pattern in resolvers if pattern.match(text)), "").rsplit(":", 1)[-1]
    if tag == "int":
        clean = text.replace("_", "")
        try:
            return int(clean, 0)
        except ValueError:
            return int(clean, 8) if clean.strip("+-").isdigit() else text
    if tag == "float":
        try:
            return float(text.replace("_", ""))
        except ValueError:
            return text
    if tag == "bool":
        return text.lower() in ("true", "yes", "on")
    return None if tag == "null" else text
