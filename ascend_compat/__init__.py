"""Capability database and compatibility checker for training jobs on Ascend NPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ascend_compat._version import __version__

if TYPE_CHECKING:
    from ascend_compat.matrix.api import Matrix

__all__ = ["Matrix", "__version__"]


def __getattr__(name: str) -> Any:
    if name == "Matrix":
        from ascend_compat.matrix.api import Matrix

        return Matrix
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
