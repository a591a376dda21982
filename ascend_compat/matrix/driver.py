"""DuckDB's own extension module, under the name of the package that re-exports it.

The package ``duckdb`` imports half of the standard library, which takes longer than opening the database does; what
``check`` needs of it all comes from the extension. Elsewhere the package itself is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb
else:
    try:
        import _duckdb as duckdb
    except ImportError:
        import duckdb

__all__ = ["ZERO_DIVISION", "duckdb"]

# A division by zero is NULL, whatever else is in the statement: DuckDB 1 has it so, later ones when told to.
ZERO_DIVISION: dict[str, str] = (
    {} if duckdb.__version__.startswith(("0.", "1.")) else {"error_on_division_by_zero": "false"}
)
