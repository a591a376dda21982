"""Files that are whole or not there, whenever a process is killed and however full a disk is."""

from __future__ import annotations

import contextlib
import os
import secrets
from typing import TYPE_CHECKING

from ascend_compat.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Write a file beside its place, force it to disk and rename it; raises :class:`DataError` and leaves nothing half."""
    part = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
        with contextlib.suppress(OSError):
            descriptor = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
    except OSError as error:
        raise DataError(f"cannot write {path}: {(error.strerror or str(error)).lower()}") from None
    finally:
        with contextlib.suppress(OSError):
            part.unlink()
