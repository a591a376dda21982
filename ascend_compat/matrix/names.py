"""Names as people write them -> ids. A miss is None, never a guess; suggestions are asked for separately."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ascend_compat.matrix.normal import normal, release_key, squashed

if TYPE_CHECKING:
    import duckdb

# words that name a variant of the same architecture: tuning, file format, quantisation, a converted checkpoint's layout
_VARIANT = re.compile(
    r"[-_. :](instruct|chat|base|it|pt|sft|dpo|rlhf|thinking|hf|mcore|megatron|mg|gguf|bf16|fp16|fp32|fp8|dynamic|w\d+a\d+(?:kv\d+)?"
    r"|awq|gptq|bnb|marlin|int[48]|[48]bit|[tpevc]p\d+|vpp\d+|lora|merged?|preview|weights?|ckpt|checkpoint|model|latest)$",
    re.IGNORECASE,
)
_GENERIC = re.compile(
    r"(?:snapshots?|checkpoints?|ckpts?|weights?|models?|huggingface|hf|mcore|megatron|main|master|original|actor|critic|ref|lora|full|sft|"
    r"output|saves?|train|merged?|latest|v?\d[\d.\-_]*|(?:checkpoint|global_?step|iter|step|epoch|run|version)s?[-_]?\d*|[0-9a-f]{7,64})$",
    re.IGNORECASE,
)
_SIZE = re.compile(r"(?<![a-z0-9.])\d+(?:\.\d+)?(?:x\d+)?[bm](?![a-z0-9])", re.IGNORECASE)
_DIGITS = re.compile(r"(?<=\d)[-_ ](?=\d)")
_LONGEST = 4096


@dataclass(frozen=True, slots=True)
class Match:
    """A model found. ``how`` is ``name``, ``variant`` (words were left off) or ``path`` (a component was taken)."""

    id: str
    how: str
    variant: str | None = None


class Names:
    """Looks names up in the database; each look-up is one indexed query."""

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        self._con = con
        self._ordinals: dict[tuple[str, str], float | None] = {}

    def model(self, text: str) -> Match | None:
        """The model a name, Hugging Face id or path means.

        Variant words at the end (``-Instruct``, ``-w8a8``) are left off and reported; sizes and versions never are.
        Of a path the last component counts, or an earlier one where what follows says nothing (``snapshots/abc``).
        """
        text = text.strip()[:_LONGEST]
        whole = self._lookup(text)
        if whole is not None:
            return whole
        parts = [part for part in re.split(r"[/\\]+|--", text) if part not in ("", ".", "..")]
        if len(parts) < 2 and not re.search(r"[/\\]", text):
            return None
        for part in reversed(parts):
            match = self._lookup(part)
            if match is not None:
                return Match(match.id, "path", match.variant)
            if not _GENERIC.match(part) and self._names_a_model(part):
                return None
        return None

    def _lookup(self, text: str) -> Match | None:
        shortened = _shortened(text)
        keys = {key: depth for depth, (name, _) in reversed(list(enumerate(shortened))) for key in _spellings(name)}
        if not keys:
            return None
        marks = ", ".join("?" for _ in keys)
        rows = self._con.execute(
            f"SELECT normalised, model FROM model_alias WHERE normalised IN ({marks})", list(keys)
        ).fetchall()
        by_depth: dict[int, set[str]] = {}
        for key, model in rows:
            by_depth.setdefault(keys[key], set()).add(model)
        if not by_depth:
            return None
        depth = min(by_depth)
        if len(by_depth[depth]) > 1:
            return None
        found = next(iter(by_depth[depth]))
        deepest = max(at for at, models in by_depth.items() if models == {found})
        left_off = shortened[deepest][1]
        return Match(found, "variant" if depth else "name", "-".join(left_off) or None)

    def _names_a_model(self, part: str) -> bool:
        """Whether a path component speaks of some model, though of none that is known."""
        if _SIZE.search(part):
            return True
        words = re.findall(r"[a-z]{3,}", part.casefold())
        if not words:
            return False
        marks = " OR ".join("starts_with(normalised, ?)" for _ in words)
        return bool(
            self._con.execute(
                f"SELECT 1 FROM model_alias WHERE kind = 'id' AND ({marks}) LIMIT 1", [f"{word}-" for word in words]
            ).fetchall()
        )

    def suggest_models(self, text: str) -> list[str]:
        """Ids of models with the nearest names, nearest first; empty where nothing is near."""
        written = re.split(r"[/\\]+", text.strip().rstrip("/\\"))[-1]
        rows = self._con.execute("SELECT normalised, model FROM model_alias").fetchall()
        return _nearest(normal(written), rows)

    def series(self, text: str) -> list[str]:
        """Ids of the models of a series or family, in either language; empty for a name that is none."""
        key = squashed(text)
        rows = self._con.execute(
            "SELECT id, family, series_en, series_zh FROM model ORDER BY total_params, id"
        ).fetchall()
        return [row[0] for row in rows if key and key in {squashed(name) for name in row[1:] if name}]

    def framework(self, text: str) -> str | None:
        """A framework's id."""
        return self._id("framework", "", squashed(text))

    def feature(self, text: str) -> str | None:
        """A feature's id."""
        return self._id("feature", "", squashed(text))

    def product(self, text: str) -> str | None:
        """A product's id."""
        return self._id("product", "", squashed(text))

    def release(self, product: str, text: str) -> str | None:
        """A release's id within a product; a leading ``v`` and case do not matter."""
        return self._id("release", product, release_key(text))

    def suggest_frameworks(self, text: str) -> list[str]:
        """Nearest framework ids."""
        return self._suggest("framework", "", squashed(text))

    def suggest_features(self, text: str) -> list[str]:
        """Nearest feature ids."""
        return self._suggest("feature", "", squashed(text))

    def suggest_products(self, text: str) -> list[str]:
        """Nearest product ids."""
        return self._suggest("product", "", squashed(text))

    def suggest_releases(self, product: str, text: str) -> list[str]:
        """Nearest releases of a product."""
        return self._suggest("release", product, release_key(text))

    def ordinal(self, product: str, text: str) -> float | None:
        """See :func:`ordinal`."""
        key = (product, text)
        if key not in self._ordinals:
            self._ordinals[key] = ordinal(self._con, product, text)
        return self._ordinals[key]

    def _id(self, kind: str, scope: str, key: str) -> str | None:
        row = self._con.execute(
            "SELECT id FROM name WHERE kind = ? AND scope = ? AND normalised = ?", [kind, scope, key]
        ).fetchone()
        return None if row is None else str(row[0])

    def _suggest(self, kind: str, scope: str, key: str) -> list[str]:
        rows = self._con.execute(
            "SELECT normalised, id FROM name WHERE kind = ? AND scope = ?", [kind, scope]
        ).fetchall()
        return _nearest(key, rows)


def ordinal(con: duckdb.DuckDBPyConnection, product: str, text: str) -> float | None:
    """A release's place among its product's releases, 0 the oldest; None for one the registry does not hold.

    A pre-release of a known release (``0.9.3.dev0``, ``0.7.0rc1``) stands half a place before it, a later build of it
    (``0.9.3.post1``) half a place after it; a local build (``0.9.3+cu121``) stands where the release does.
    """
    key = release_key(text)
    local = key.split("+", 1)[0]
    stem = re.match(r"(\d+(?:\.\d+)*)[.\-_]?(dev|a|alpha|b|beta|rc|post)\.?\d*$", local)
    shift = 0.0 if stem is None else 0.5 if stem.group(2) == "post" else -0.5
    tried = [(key, 0.0), (local, 0.0)] + ([(stem.group(1), shift)] if stem else [])
    marks = ", ".join("?" for _ in tried)
    rows = dict(
        con.execute(
            f"SELECT normalised, ordinal FROM name WHERE kind = 'release' AND scope = ? AND normalised IN ({marks})",
            [product, *(name for name, _ in tried)],
        ).fetchall()
    )
    return next((rows[name] + moved for name, moved in tried if name in rows), None)


def _shortened(text: str) -> list[tuple[str, tuple[str, ...]]]:
    """The name, then the name with one more variant word left off each time, with the words left off."""
    names: list[tuple[str, tuple[str, ...]]] = [(text, ())]
    left_off: tuple[str, ...] = ()
    rest = text
    while (match := _VARIANT.search(rest)) and len(names) < 12:
        rest = rest[: match.start()]
        left_off = (match.group(1).lower(), *left_off)
        names.append((rest, left_off))
    return names


def _spellings(text: str) -> list[str]:
    """Normal forms of a name, each separator between two digits read as itself and as a decimal point."""
    places = [match.start() for match in _DIGITS.finditer(text)][:4]
    keys = []
    for chosen in itertools.product((False, True), repeat=len(places)):
        letters = list(text)
        for place, point in zip(places, chosen):
            if point:
                letters[place] = "."
        key = normal("".join(letters))
        if key:
            keys.append(key)
    return keys


def _nearest(key: str, rows: list[tuple[str, str]]) -> list[str]:
    import difflib

    ids = dict(rows)
    found = difflib.get_close_matches(key, ids, n=12, cutoff=0.6)
    return list(dict.fromkeys(ids[name] for name in found))[:3]
