"""One planned run, from its description to its evidence; what was finished before a kill is not run again.

``python -m ascend_compat.evidence.worker run.json`` is how an engine on another node starts one.
"""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ascend_compat.errors import CompatError, DataError, UsageError
from ascend_compat.evidence.document import new_id, now
from ascend_compat.evidence.run import REFUSED, Order, document, keep, ready, start
from ascend_compat.evidence.store import runs_dir
from ascend_compat.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from ascend_compat.check.engine import Engine


def work(
    engine: Engine, run: dict[str, Any], progress: Callable[[str, dict[str, Any]], None]
) -> tuple[Path | None, str, bool]:
    """Do the jobs of a run that are not in its journal; gives the document's path, the run's result, and whether it was stopped.

    ``run`` holds ``key``, ``product``, ``release``, ``device``, ``python``, ``simulated`` and ``jobs``. A stopped run has
    no document yet: its journal keeps the jobs that are done.
    """
    from ascend_compat.recipes.job import model_of
    from ascend_compat.recipes.load import recipe
    from ascend_compat.recipes.select import select

    journal = runs_dir() / "verify" / f"{run['key']}.json"
    held = _journal(journal, run)
    order = Order(run["product"], run["release"], run["device"], run["python"], simulated=run["simulated"])
    order.id, order.command = held["id"], ["ascend-compat", "verify", "--release", run["release"]]
    first = None
    for number, job in enumerate(run["jobs"]):
        found = recipe(engine.con, job["recipe"])
        prepared = select(
            engine, found, model_of(engine, job["model"]), (run["product"], run["release"]), job["devices"]
        )
        first = first or prepared
        if any(done["recipe"] == found.name and done["model"] == job["model"] for done in held["records"]):
            continue
        checked = ready(engine, prepared, order, number)
        if checked.verdict in REFUSED:
            raise DataError(f"the plan holds {prepared.name}, which the check calls {checked.verdict}")
        record, heard = start(engine, checked, order, lambda event, name=prepared.name: progress(name, event))  # type: ignore[misc]
        if heard.interrupted:
            return None, "error", True
        held["records"].append(record)
        held["said"] = held["said"] or heard.start
        write_whole(journal, json.dumps(held, ensure_ascii=False))
    assert first is not None
    body = document(engine, order, first, held["records"], held["said"], held["start"])
    path = keep(body)
    with contextlib.suppress(OSError):
        journal.unlink()
    return path, body["result"], False


def _journal(path: Path, run: dict[str, Any]) -> dict[str, Any]:
    with contextlib.suppress(OSError, ValueError):
        held = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(held, dict) and held.keys() >= {"id", "start", "said", "records"}:
            return held
    return {"id": new_id(run["key"].rpartition("-")[0]), "start": now(), "said": {}, "records": []}


def main(path: str) -> int:
    """Run what a file describes; prints ``{"path", "result"}`` and gives 0, 1 where it did not pass, 2 or 3 on an error."""
    from ascend_compat.check.engine import Engine
    from ascend_compat.matrix.store import connect

    try:
        run = json.loads(Path(path).read_text(encoding="utf-8"))
        found, result, stopped = work(Engine(connect()), run, lambda _name, _event: None)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path} describes no run: {error}") from None
    print(json.dumps({"path": str(found) if found else None, "result": result}))
    return 130 if stopped else 0 if result == "pass" else 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1]))
    except CompatError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
