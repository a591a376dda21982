"""What the documents mean together: known ids, unique names, whole tables, ordered releases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ascend_compat.matrix import lint_rules, lint_tables
from ascend_compat.matrix.lint_names import World, nearest, window
from ascend_compat.matrix.normal import normal, release_key

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ascend_compat.matrix.lint import Notes
    from ascend_compat.matrix.lint_tree import Tree


def check(trees: list[Tree], notes: Notes) -> None:
    """Every check that needs more than one document, or more than its shape."""
    by_kind: dict[str, list[Tree]] = {}
    for tree in trees:
        by_kind.setdefault(tree.kind or "", []).append(tree)
    world = World()
    _models(by_kind.get("models", []), world, notes)
    _declared(by_kind.get("features", []), "features", "id", world.features, notes)
    _facts(by_kind.get("facts", []), world, notes)
    _products(by_kind.get("product", []), world, notes)
    for tree in by_kind.get("framework", []):
        if tree.body["id"] in world.frameworks and world.frameworks[tree.body["id"]] != tree.body["product"]:
            notes.add(tree, ("product",), "AC0011", f"Framework {tree.body['id']} belongs to two products.")
        world.frameworks[tree.body["id"]] = tree.body["product"]
    _versions(by_kind.get("product", []), world, notes)
    lint_tables.check(by_kind.get("table", []), by_kind.get("product", []), world, notes)
    _keys(by_kind.get("keys", []), world, notes)
    lint_rules.check(by_kind.get("rules", []), by_kind.get("framework", []), world, notes)
    _declared(by_kind.get("codes", []), "codes", "code", set(), notes)


def _declared(trees: list[Tree], group: str, name: str, into: set[str], notes: Notes) -> None:
    for tree in trees:
        for number, entry in enumerate(tree.body[group]):
            if entry[name] in into:
                notes.add(tree, (group, number, name), "AC0011", f"{entry[name]} is declared twice.")
            into.add(entry[name])


def _models(trees: list[Tree], world: World, notes: Notes) -> None:
    claimed: dict[str, str] = {}
    for tree in trees:
        for number, model in enumerate(tree.body["models"]):
            if model["id"] in world.models:
                notes.add(tree, ("models", number, "id"), "AC0011", f"Model {model['id']} is declared twice.")
            world.models[model["id"]] = model
            own: set[str] = set()
            for path, name in _model_names(model):
                for word in {normal(name), normal(name.rsplit("/", 1)[-1])} - own:
                    own.add(word)
                    other = claimed.setdefault(word, model["id"])
                    if other != model["id"]:
                        sentence = f"{name!r} is claimed by {other} and by {model['id']}."
                        notes.add(tree, ("models", number, *path), "AC0012", sentence)
    for tree in trees:
        for number, model in enumerate(tree.body["models"]):
            base = model.get("variant_of")
            if base is not None and base not in world.models:
                sentence = f"Model {base} is not known{nearest(base, world.models)}."
                notes.add(tree, ("models", number, "variant_of"), "AC0010", sentence)


def _model_names(model: dict[str, Any]) -> Iterable[tuple[tuple[str | int, ...], str]]:
    yield ("id",), model["id"]
    for language in ("en", "zh"):
        yield ("names", language), model["names"][language]
    for group in ("hf_ids", "aliases"):
        for number, name in enumerate(model[group]):
            yield (group, number), name
    for number, variant in enumerate(model.get("variants", [])):
        yield ("variants", number, "hf_id"), variant["hf_id"]
        for place, name in enumerate(variant.get("aliases", [])):
            yield ("variants", number, "aliases", place), name


def _facts(trees: list[Tree], world: World, notes: Notes) -> None:
    for tree in trees:
        for number, fact in enumerate(tree.body["facts"]):
            earlier = world.facts.setdefault(fact["name"], fact["type"])
            if earlier != fact["type"]:
                sentence = f"Fact {fact['name']} is {fact['type']} here and {earlier} elsewhere."
                notes.add(tree, ("facts", number, "type"), "AC0013", sentence)


def _products(trees: list[Tree], world: World, notes: Notes) -> None:
    for tree in trees:
        product = tree.body["id"]
        if product in world.releases:
            notes.add(tree, ("id",), "AC0011", f"Product {product} is declared twice.")
        names = world.names.setdefault(product, {})
        claimed: dict[str, int] = {}
        last: tuple[str, str] | None = None
        for number, release in enumerate(tree.body["releases"]):
            path = ("releases", number)
            aliases = [(("aliases", place), name) for place, name in enumerate(release.get("aliases", []))]
            for place, name in [(("id",), release["id"]), *aliases]:
                if claimed.setdefault(release_key(name), number) != number:
                    notes.add(tree, (*path, *place), "AC0011", f"Release {name} of {product} is declared twice.")
                names.setdefault(release_key(name), release["id"])
            date = release["date"]
            if date != "unknown" and release.get("date_of") not in ("page", "unknown", "branch"):
                if last and date < last[0]:
                    sentence = f"Release {release['id']} of {date} stands after {last[1]} of {last[0]}."
                    notes.add(tree, (*path, "date"), "AC0104", sentence)
                last = (date, release["id"])
        world.releases[product] = [release["id"] for release in tree.body["releases"]]
        for framework in tree.body["frameworks"]:
            world.frameworks.setdefault(framework, product if product == framework else framework)


def _versions(trees: list[Tree], world: World, notes: Notes) -> None:
    """The framework inside a release is a release of the framework's own product, or assumed to be near one."""
    for tree in trees:
        for number, release in enumerate(tree.body["releases"]):
            for framework, stated in release["frameworks"].items():
                path = ("releases", number, "frameworks", framework)
                if framework not in tree.body["frameworks"]:
                    notes.add(tree, path, "AC0010", f"{framework} is not among the product's frameworks.")
                own = world.frameworks.get(framework, framework)
                version = stated.get("assumed", stated["version"])
                if own in world.releases and version != "unknown" and world.release(own, version) is None:
                    known = nearest(version, world.releases[own])
                    notes.add(tree, (*path, "version"), "AC0010", f"{own} has no release {version}{known}.")


def _keys(trees: list[Tree], world: World, notes: Notes) -> None:
    for tree in trees:
        body = tree.body
        product = world.frameworks.get(body["framework"], body["framework"])
        if body["framework"] not in world.frameworks and body["framework"] not in world.releases:
            notes.add(tree, ("framework",), "AC0010", f"Framework {body['framework']} is not known.")
        seen: dict[tuple[Any, ...], int] = {}
        known = {entry["key"] for entry in body["keys"]}
        for number, entry in enumerate(body["keys"]):
            path = ("keys", number)
            same = (entry["key"], entry.get("since"), entry.get("until"), str(entry.get("config")))
            if same in seen:
                notes.add(
                    tree, (*path, "key"), "AC0011", f"Key {entry['key']} is declared twice for the same releases."
                )
            seen[same] = number
            fact = entry.get("fact")
            if fact is not None and fact not in world.facts:
                notes.add(tree, (*path, "fact"), "AC0010", f"Fact {fact} is not declared{nearest(fact, world.facts)}.")
            for name in ("alias_of", "deprecated"):
                if name in entry and entry[name] not in known:
                    sentence = f"Key {entry[name]} is not declared{nearest(entry[name], known)}."
                    notes.add(tree, (*path, name), "AC0010", sentence)
            source = entry.get("source")
            if isinstance(source, str) and source.split(":", 1)[0] not in body.get("sources", {}):
                notes.add(tree, (*path, "source"), "AC0040", f"Source {source.split(':', 1)[0]} is not declared above.")
            window(tree, path, entry, product, world, notes)
            for place, default in enumerate(entry.get("defaults", [])):
                window(tree, (*path, "defaults", place), default, product, world, notes)
