"""One evidence document: its digest, its shape, and how it gets on disk whole."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ascend_compat.errors import UsageError
from ascend_compat.files import write_whole
from ascend_compat.matrix.build_recipes import digest_of
from ascend_compat.resources import schema_dir

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_WORST = ("pass", "skipped", "fail", "error")
MAX_BYTES = 20_000_000


def now() -> str:
    """This moment in UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def new_id(name: str) -> str:
    """An id no other run has: the time, what runs, and chance."""
    words = re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-")
    return f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{words}-{secrets.token_hex(4)}"


def worst(results: Iterable[str]) -> str:
    """The result of a run by those of its jobs: one that was skipped or failed keeps the whole from passing."""
    return max(results, key=_WORST.index, default="skipped")


def sealed(body: Mapping[str, Any]) -> dict[str, Any]:
    """The document with its own digest."""
    return {**body, "digest": digest_of(body)}


def is_sealed(body: Mapping[str, Any]) -> bool:
    """Whether nobody changed the document since it was written."""
    return body.get("digest") == digest_of(body)


def file_digest(path: Path) -> str | None:
    """``sha256:…`` of a file's bytes; None where it cannot be read."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    except OSError:
        return None
    return "sha256:" + digest.hexdigest()


def faults(body: Any) -> list[str]:
    """What keeps a document from being evidence, by its schema; nothing for a sound one."""
    from jsonschema import Draft202012Validator

    shared = json.loads((schema_dir() / "common.schema.json").read_text(encoding="utf-8"))
    schema = json.loads((schema_dir() / "evidence.schema.json").read_text(encoding="utf-8"))
    from referencing import Registry, Resource

    registry: Any = Registry().with_resource("common.schema.json", Resource.from_contents(shared))
    errors = Draft202012Validator(schema, registry=registry).iter_errors(body)
    return [f"{'.'.join(map(str, error.absolute_path)) or 'document'}: {error.message[:200]}" for error in errors]


def read(path: Path) -> dict[str, Any]:
    """A document as JSON; raises :class:`UsageError` with one sentence for anything else."""
    try:
        if path.exists() and not path.is_file():
            raise UsageError(f"{path} is not a regular file")
        if path.stat().st_size > MAX_BYTES:
            raise UsageError(f"{path} is larger than {MAX_BYTES // 1_000_000} MB")
        body = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from None
    except (ValueError, RecursionError):
        raise UsageError(f"{path} is not JSON") from None
    if not isinstance(body, dict):
        raise UsageError(f"{path} holds no mapping")
    return body


def write(folder: Path, body: Mapping[str, Any]) -> Path:
    """The document as a file of its own id, whole or not at all; raises :class:`DataError` where the disk refuses."""
    path = folder / f"{body['id']}.json"
    write_whole(path, json.dumps(body, ensure_ascii=False, indent=1, allow_nan=False) + "\n")
    return path
