"""The matrix as a library: ``Matrix.open()`` and typed answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ascend_compat.errors import UsageError
from ascend_compat.matrix.names import Names
from ascend_compat.matrix.query import fetch, select
from ascend_compat.matrix.store import connect

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    import duckdb

    from ascend_compat.check.finding import Report


@dataclass(frozen=True, slots=True)
class Claim:
    """What a source says of one feature of one model in one framework, in one release.

    ``source`` is JSON text: ``{url, date}`` or ``{repo, path, commit}``. ``condition`` is in English.
    """

    product: str
    release: str
    model: str
    framework: str
    feature: str
    status: str
    condition: str | None
    source: str | None


class Matrix:
    """An open, read-only matrix. Use as a context manager, or call :meth:`close`."""

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        self.con = con
        self.names = Names(con)

    @classmethod
    def open(cls) -> Matrix:
        """Open the database of the installed data, building it first where needed; raises ``DataError`` if it cannot be."""
        return cls(connect())

    def close(self) -> None:
        """Close the connection."""
        self.con.close()

    def __enter__(self) -> Matrix:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def sql(self, query: str) -> list[dict[str, Any]]:
        """Rows of one read-only query over the views; raises ``UsageError`` with one sentence when it fails."""
        return select(self.con, query).records()

    def claims(
        self,
        *,
        product: str | None = None,
        release: str | None = None,
        model: str | None = None,
        framework: str | None = None,
        feature: str | None = None,
        status: str | None = None,
    ) -> list[Claim]:
        """Claims that match every name given, oldest release first; names may be written freely.

        Raises ``UsageError`` for a name nobody knows.
        """
        wanted: dict[str, str] = {}
        if product is not None:
            wanted["product"] = self._known("product", product, self.names.product(product))
        if release is not None:
            if product is None:
                raise UsageError("a release needs its product beside it")
            wanted["release"] = self._known("release", release, self.names.release(wanted["product"], release))
        if model is not None:
            match = self.names.model(model)
            wanted["model"] = self._known("model", model, match.id if match else None)
        if framework is not None:
            wanted["framework"] = self._known("framework", framework, self.names.framework(framework))
        if feature is not None:
            wanted["feature"] = self._known("feature", feature, self.names.feature(feature))
        if status is not None:
            wanted["status"] = status
        where = " AND ".join(f"claim.{name} = ?" for name in wanted) or "true"
        frame = fetch(
            self.con,
            "SELECT product, release, model, framework, feature, status, condition, source "
            f"FROM claim JOIN release r USING (product, release) WHERE {where} "
            "ORDER BY product, r.ordinal, framework, model, feature",
            list(wanted.values()),
        )
        return [Claim(*row) for row in frame.rows]

    def check(self, *paths: str | Path, **options: Any) -> list[Report]:
        """Check job files, or names (``model=``, ``framework=``, ``features=``); see :func:`ascend_compat.check.api.check`."""
        from ascend_compat.check.api import check

        return check(self.con, *paths, **options)

    @staticmethod
    def _known(kind: str, written: str, found: str | None) -> str:
        if found is None:
            raise UsageError(f"no {kind} is called {written!r}")
        return found
