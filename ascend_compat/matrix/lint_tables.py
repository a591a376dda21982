"""Checks of support tables: every cell stated once, every word explained, oddities of the source named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ascend_compat.errors import DataError
from ascend_compat.matrix.tables import STATUSES, read_cell, stated_cell

if TYPE_CHECKING:
    from ascend_compat.matrix.lint import Notes
    from ascend_compat.matrix.lint_names import World
    from ascend_compat.matrix.lint_tree import Tree

GRANTED = ("supported", "partial")
TRAINING = {"pretrain", "sft", "full", "lora", "dpo", "grpo", "dapo", "ppo", "gspo"}
ALGORITHMS = {"grpo", "dapo", "ppo", "gspo"}
ROLLOUTS = {"rollout-vllm", "rollout-sglang"}
BACKENDS = {"backend-fsdp", "backend-megatron", "backend-mindspeed"}
_PLAIN_KEYS = {"label", "series", "models", "continued", "type", "note", "source"}


def check(tables: list[Tree], products: list[Tree], world: World, notes: Notes) -> None:
    """Every table, and the registry's word on which tables there are."""
    stated: dict[tuple[str, str, str], Tree] = {}
    for tree in tables:
        body = tree.body
        product, release = body["product"], body["release"]
        if product not in world.releases:
            notes.add(tree, ("product",), "AC0010", f"Product {product} is not known.")
        elif world.release(product, release) is None:
            notes.add(tree, ("release",), "AC0010", f"{product} has no release {release} in its product.yaml.")
        frameworks = _columns(tree, world, notes)
        for framework in frameworks:
            other = stated.setdefault((product, release, framework), tree)
            if other is not tree:
                sentence = f"{framework} of {product} {release} is stated in {other.name} too."
                notes.add(tree, ("columns",), "AC0022", sentence)
        _rows(tree, frameworks, world, notes)
    _registered(products, stated, notes)


def _columns(tree: Tree, world: World, notes: Notes) -> dict[str, list[str]]:
    """The column ids of each framework."""
    frameworks: dict[str, list[str]] = {}
    covered: dict[tuple[str, str], str] = {}
    for number, column in enumerate(tree.body["columns"]):
        path = ("columns", number)
        framework = column["framework"]
        if framework not in world.frameworks:
            notes.add(tree, (*path, "framework"), "AC0010", f"Framework {framework} is not known.")
        if column["id"] in frameworks.setdefault(framework, []):
            notes.add(tree, (*path, "id"), "AC0011", f"Column {column['id']} of {framework} is declared twice.")
        frameworks[framework].append(column["id"])
        for place, feature in enumerate(column["features"]):
            if feature not in world.features:
                notes.add(tree, (*path, "features", place), "AC0010", f"Feature {feature} is not known.")
            other = covered.setdefault((framework, feature), column["id"])
            if other != column["id"]:
                sentence = f"{framework} covers {feature} in two columns, {other} and {column['id']}."
                notes.add(tree, (*path, "features", place), "AC0026", sentence)
        for word, meaning in column.get("texts", {}).items():
            for feature in meaning.get("features", []):
                if feature not in column["features"]:
                    sentence = f"{word!r} means {feature}, which the column does not cover."
                    notes.add(tree, (*path, "texts", word), "AC0025", sentence)
            _condition(tree, (*path, "texts", word), meaning, world, notes)
    return frameworks


def _condition(tree: Tree, path: tuple[str | int, ...], cell: dict[str, Any], world: World, notes: Notes) -> None:
    condition = cell.get("condition")
    if condition is None:
        if cell.get("status") == "partial":
            notes.add(tree, path, "AC0024", "Partial support needs the condition under which it holds.")
        return
    for feature in condition.get("with", []):
        if feature not in world.features:
            notes.add(tree, (*path, "condition"), "AC0010", f"Feature {feature} is not known.")
    if ("package" in condition) != ("version" in condition):
        notes.add(tree, (*path, "condition"), "AC0024", "A condition on a package needs both its name and its version.")


def _rows(tree: Tree, frameworks: dict[str, list[str]], world: World, notes: Notes) -> None:
    seen: dict[str, str] = {}
    columns = tree.body["columns"]
    for number, row in enumerate(tree.body["rows"]):
        path = ("rows", number)
        for place, model in enumerate(row["models"]):
            if model not in world.models:
                notes.add(tree, (*path, "models", place), "AC0010", f"Model {model} is not known.")
            if model in seen:
                sentence = f"{model} is in two rows, {seen[model]} and {row['label']}."
                notes.add(tree, (*path, "models", place), "AC0022", sentence)
            seen[model] = row["label"]
        _strangers(tree, path, row, frameworks, notes)
        meanings: dict[str, dict[str, str]] = {}
        for column in columns:
            where = (*path, column["framework"], column["id"])
            try:
                stated = stated_cell(row, column)
                status, _, _, claims = read_cell(stated, column)
            except DataError as error:
                code = "AC0023" if "does not explain" in str(error) else "AC0020"
                notes.add(tree, where, code, f"{str(error)[0].upper()}{str(error)[1:]}.")
                continue
            if isinstance(stated, dict):
                _condition(tree, where, stated, world, notes)
                for feature in stated.get("claims", {}):
                    if feature not in column["features"]:
                        notes.add(tree, where, "AC0025", f"The column does not cover {feature}.")
            meanings.setdefault(column["framework"], {}).update(claims)
            if status not in STATUSES:
                notes.add(tree, where, "AC0023", f"{status} is not a status.")
        _oddities(tree, path, row, meanings, world, notes)


def _strangers(
    tree: Tree, path: tuple[str | int, ...], row: dict[str, Any], frameworks: dict[str, list[str]], notes: Notes
) -> None:
    """What a row states that is no column of the table."""
    for framework, cells in row.items():
        if framework in _PLAIN_KEYS:
            continue
        if framework not in frameworks:
            notes.add(
                tree, (*path, framework), "AC0021", f"{row['label']} states {framework}, which has no column here."
            )
        elif isinstance(cells, dict):
            for column in cells:
                if column not in frameworks[framework]:
                    sentence = f"{row['label']} states {framework} {column}, which is no column."
                    notes.add(tree, (*path, framework, column), "AC0021", sentence)


def _oddities(
    tree: Tree,
    path: tuple[str | int, ...],
    row: dict[str, Any],
    meanings: dict[str, dict[str, str]],
    world: World,
    notes: Notes,
) -> None:
    """Cells that contradict one another on the page; they stay as the page has them."""
    for framework, claims in meanings.items():
        granted = {feature for feature, status in claims.items() if status in GRANTED}
        trained = TRAINING & claims.keys()
        where = (*path, framework)
        if ALGORITHMS & claims.keys() and not ALGORITHMS & granted:
            denied = all(claims[feature] == "unsupported" for feature in ALGORITHMS & claims.keys())
            if denied and ROLLOUTS & granted and BACKENDS & granted:
                sentence = (
                    f"{row['label']}: {framework} denies every algorithm yet grants rollout and training backend."
                )
                notes.add(tree, where, "AC0101", sentence)
                continue
        dense = [model for model in row["models"] if world.models.get(model, {}).get("type") == "dense"]
        if "expert-parallel" in granted and dense:
            sentence = f"{row['label']}: {framework} grants expert parallelism to {', '.join(dense)}, which is dense."
            notes.add(tree, where, "AC0102", sentence)
        if trained and granted and all(claims[feature] == "unsupported" for feature in trained):
            sentence = f"{row['label']}: {framework} denies training itself yet grants {', '.join(sorted(granted))}."
            notes.add(tree, where, "AC0103", sentence)


def _registered(products: list[Tree], stated: dict[tuple[str, str, str], Tree], notes: Notes) -> None:
    """The registry's ``table:`` agrees with the tables there are."""
    for tree in products:
        product = tree.body["id"]
        for number, release in enumerate(tree.body["releases"]):
            for framework, entry in release["frameworks"].items():
                path = ("releases", number, "frameworks", framework, "table")
                there = (product, release["id"], framework) in stated
                if there and entry["table"] in ("none", "absent"):
                    sentence = f"{framework} of {release['id']} is {entry['table']} here, but a table states it."
                    notes.add(tree, path, "AC0031", sentence)
                if not there and entry["table"] in ("full", "partial"):
                    sentence = f"{framework} of {release['id']} is {entry['table']} here, but no table states it."
                    notes.add(tree, path, "AC0031", sentence)
        held = {(str(release["id"]), f) for release in tree.body["releases"] for f in release["frameworks"]}
        for (owner, release, framework), table in stated.items():
            if owner == product and (release, framework) not in held:
                sentence = f"{product}'s registry does not list {framework} in {release}."
                notes.add(table, ("release",), "AC0031", sentence)
