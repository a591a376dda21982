"""Recipes on models -> runs -> one evidence document: what is started, and what is made of how it ends."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ascend_compat.errors import DataError, UsageError
from ascend_compat.evidence.document import file_digest, new_id, now, sealed, worst, write
from ascend_compat.evidence.process import follow
from ascend_compat.evidence.store import own_dir, runs_dir
from ascend_compat.files import write_whole
from ascend_compat.recipes.job import check_job, render_job, understand, write_files
from ascend_compat.resources import data_root, runners_dir

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ascend_compat.check.engine import Engine
    from ascend_compat.check.finding import Report
    from ascend_compat.evidence.process import Heard
    from ascend_compat.recipes.job import Prepared

_SCRIPTS = {
    "llamafactory": "llamafactory.py",
    "mindspeed-llm": "mindspeed_llm.py",
    "verl": "verl.py",
    "mindspeed-rl": "mindspeed_rl.py",
    "torch": "torch_train.py",
}
REFUSED = ("unsupported", "impossible", "unreadable")


@dataclass(slots=True)
class Order:
    """What to run, on what, for which release."""

    product: str
    release: str
    device: str
    python: str
    probe: bool = False
    simulated: bool = False
    out: Path | None = None
    id: str = ""
    command: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Checked:
    """A recipe made ready in its folder: the features it exercises, and what the check says of it (None: no framework)."""

    prepared: Prepared
    folder: Path
    main: Path
    features: tuple[str, ...]
    report: Report | None

    @property
    def verdict(self) -> str:
        """The check's verdict; ``unverified`` where there is no framework to check against."""
        return self.report.verdict if self.report else "unverified"


def python_for(chosen: str | None) -> str:
    """The interpreter that holds the framework: the one given, else that of ``make runners``.

    Raises :class:`UsageError` with the way out where there is none.
    """
    if chosen:
        if not os.access(chosen, os.X_OK):
            raise UsageError(f"--python {chosen}: no such interpreter")
        return chosen
    own = data_root() / ".venv-runners" / "bin" / "python"
    if own.is_file():
        return str(own)
    raise UsageError(
        "no environment with a training framework: make one with `make runners`, or name its interpreter with --python"
    )


def ready(engine: Engine, prepared: Prepared, order: Order, number: int) -> Checked:
    """Write a recipe's job into its folder and check it, before anything is started."""
    folder = (order.out or runs_dir()) / order.id / f"{number}-{prepared.name}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot write {folder}: {(error.strerror or str(error)).lower()}") from None
    main = write_files(render_job(engine, prepared), folder)
    if prepared.recipe.framework == "torch":
        return Checked(prepared, folder, main, prepared.recipe.features, None)
    found = understand(engine, prepared.recipe, main, prepared.version)
    features = tuple(name for name in prepared.recipe.features if name in found.features)
    report = check_job(engine, main, order.product, order.release, prepared.version)
    return Checked(prepared, folder, main, features, report)


def start(
    engine: Engine, checked: Checked, order: Order, progress: Callable[[dict[str, Any]], None]
) -> tuple[dict[str, Any], Heard]:
    """Run one recipe that is ready; gives its record for the document, and all that the runner said."""
    prepared, began = checked.prepared, now()
    plan = plan_of(engine, checked, order)
    write_whole(checked.folder / "plan.json", json.dumps(plan, ensure_ascii=False, indent=1) + "\n")
    script = runners_dir() / _SCRIPTS[prepared.recipe.framework]
    if not script.is_file():
        raise DataError(f"there is no runner {script}")
    command = [order.python, str(script), "--job", str(checked.folder / "plan.json"), "--device", order.device]
    command += ["--out", str(checked.folder)]
    heard = follow(command, checked.folder / "runner.log", prepared.recipe.time_limit, progress)
    result, error = outcome(heard, checked.folder / "runner.log")
    record = {
        "recipe": prepared.recipe.name,
        "recipe_digest": prepared.recipe.digest,
        "model": prepared.model["id"],
        "model_kind": prepared.recipe.body["model"]["kind"],
        "features": list(checked.features),
        "claims": _claims(engine, prepared, order, checked.features),
        "set": prepared.overrides,
        "devices": prepared.devices,
        "command": plan["command"] if isinstance(plan["command"], list) else ["bash", plan["command"]["main"]],
        "verdict": checked.verdict,
        "result": result,
        "error": error,
        "metrics": [{"name": name, "unit": unit, "values": values} for name, (unit, values) in heard.metrics.items()],
        "log_digest": file_digest(checked.folder / "framework.log"),
        "start": began,
        "end": now(),
    }
    return record, heard


def outcome(heard: Heard, log: Path) -> tuple[str, dict[str, str] | None]:
    """Result and error of a run: the runner's own word, or what its death says where it left none."""
    end = heard.end
    result = end.get("result")
    if result in ("pass", "fail", "skipped", "error"):
        if result == "pass" and heard.status == 0:
            return "pass", None
        if result != "pass":
            return str(result), {
                "kind": str(end.get("kind") or "framework"),
                "reason": str(end.get("reason") or "")[:500],
            }
    if heard.interrupted:
        return "error", {"kind": "killed", "reason": "interrupted by the user"}
    if heard.status < 0:
        return "error", {"kind": "killed", "reason": f"the runner was ended by signal {-heard.status}"}
    return "error", {"kind": "runner", "reason": f"the runner ended with status {heard.status}: {_last_line(log)}"}


def _last_line(log: Path) -> str:
    try:
        lines = log.read_bytes()[-4000:].decode("utf-8", "replace").split("\n")
    except OSError:
        return "no log"
    return next((line.strip()[:300] for line in reversed(lines) if line.strip()), "an empty log")


def plan_of(engine: Engine, checked: Checked, order: Order) -> dict[str, Any]:
    """What a runner is told, as ``plan.json`` holds it."""
    prepared = checked.prepared
    body = prepared.recipe.body
    model = {**body["model"], "id": prepared.model["id"], **_architecture(engine, prepared)}
    if prepared.recipe.tiny:
        model["path"] = prepared.path.removeprefix("./")
    return {
        "recipe": prepared.recipe.name,
        "framework": prepared.recipe.framework,
        "framework_version": prepared.version,
        "command": _command(prepared, checked.main),
        "env": _environment(prepared),
        "cwd": str(checked.folder),
        "steps": int(prepared.facts.get("max_steps") or prepared.facts.get("train_iters") or prepared.recipe.steps),
        "time_limit": prepared.recipe.time_limit,
        "model": model,
        "data": {"path": "data", **body["data"], "seq_length": prepared.facts.get("seq_length")},
        "devices": prepared.devices,
        "facts": prepared.facts,
        "expect": body["expect"],
        "device": order.device,
    }


def _command(prepared: Prepared, main: Path) -> list[str] | dict[str, str]:
    if prepared.recipe.framework == "llamafactory":
        return ["llamafactory-cli", "train", "job.yaml"]
    if prepared.recipe.framework == "mindspeed-rl":
        return ["python", "cli/train_grpo.py", "--config-dir", str(main.parent), "--config-name", main.stem]
    return {"main": main.name}


def _environment(prepared: Prepared) -> dict[str, str]:
    if prepared.recipe.framework != "llamafactory" or prepared.devices == 1:
        return {}
    facts = prepared.facts
    return {"FORCE_TORCHRUN": "1", "NNODES": str(facts["nnodes"]), "NPROC_PER_NODE": str(facts["devices_per_node"])}


def _architecture(engine: Engine, prepared: Prepared) -> dict[str, Any]:
    """The real model's facts in Hugging Face's words, and its class."""
    row = engine.con.execute("SELECT body FROM model WHERE id = ?", [prepared.model["id"]]).fetchone()
    body = json.loads(row[0]) if row else {}
    arch = {name: value for name, value in (body.get("arch") or {}).items() if isinstance(value, (int, float, bool))}
    named = body.get("architectures") or [None]
    return {"arch": {**arch, **(body.get("context") or {})}, "class": named[0], "model_type": body.get("model_type")}


def _claims(engine: Engine, prepared: Prepared, order: Order, features: Sequence[str]) -> dict[str, str]:
    rows = engine.con.execute(
        "SELECT feature, status FROM claim WHERE product = ? AND release = ? AND framework = ? AND model = ?",
        [order.product, order.release, prepared.recipe.framework, prepared.model["id"]],
    ).fetchall()
    return {feature: status for feature, status in rows if feature in features}


def document(
    engine: Engine, order: Order, first: Prepared, records: list[dict[str, Any]], said: dict[str, Any], began: str
) -> dict[str, Any]:
    """The evidence document of a run, sealed; ``said`` is a runner's start event."""
    matrix = engine.con.execute("SELECT value FROM meta WHERE key = 'content_hash'").fetchall()[0][0]
    return sealed(
        {
            "kind": "evidence",
            "schema_version": 1,
            "id": order.id,
            "product": order.product,
            "release": order.release,
            "framework": first.recipe.framework,
            "framework_version": first.version,
            "matrix": matrix,
            "device": {"kind": order.device, "count": int(said.get("device_count") or 0), "chip": said.get("chip")},
            "cpu": order.device == "cpu",
            "simulated": order.simulated,
            "probe": order.probe,
            "stack": {
                "python": said.get("python"),
                "torch": said.get("torch"),
                "torch_npu": said.get("torch_npu"),
                "framework": said.get("framework_version"),
                "cann": _cann(order.device),
                "machine": said.get("machine"),
                "packages": said.get("packages") or {},
            },
            "command": order.command,
            "start": began,
            "end": now(),
            "result": worst(record["result"] for record in records),
            "jobs": records,
        }
    )


def _cann(device: str) -> str | None:
    if device != "npu":
        return None
    from ascend_compat.stack.read import read_stack

    try:
        found = read_stack("auto")
    except UsageError:
        return None
    stated = found.values.get("cann")
    return stated.value if stated else None


def order_for(release: tuple[str, str], device: str, python: str, name: str, **more: Any) -> Order:
    """An order with an id of its own and the command line that gave it."""
    words = ["ascend-compat", *sys.argv[1:]]
    return Order(*release, device, python, id=new_id(name), command=words, **more)


def keep(body: dict[str, Any]) -> Path:
    """Write a document among the user's own evidence."""
    return write(own_dir(), body)
