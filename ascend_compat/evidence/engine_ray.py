"""Planned runs on a Ray cluster, one task a run: ``engine_ray.py tasks.json``, in an interpreter that holds Ray.

It imports nothing of this package. ``tasks.json`` holds ``address`` (a cluster; absent: a local one), ``local_npus`` (NPUs
that a local one declares, for trying it out) and ``tasks``, each ``{key, devices, command}``. Results go to stdout as JSON
Lines ``{key, status, node, output}``, as they come. A task whose node or worker is lost is tried once more.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

RESOURCE = "NPU"


def attempt(command: list[str], variables: dict[str, str]) -> dict[str, Any]:
    """Run one command on the node the task landed on; the run writes its evidence itself."""
    import socket

    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **variables})
    lines = (done.stdout if done.returncode < 2 else done.stderr).strip().splitlines()
    return {"status": done.returncode, "node": socket.gethostname(), "output": lines[-1] if lines else ""}


def main(path: str) -> int:
    """Submit every task and print results as they come; 0 when every command ended with 0."""
    import ray  # type: ignore[import-not-found]

    asked = json.loads(Path(path).read_text(encoding="utf-8"))
    # Ray prints its own warnings to standard output, which is for results alone
    results = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    local = asked.get("local_npus")
    ray.init(
        address=None if local else (asked.get("address") or "auto"),
        resources={RESOURCE: local} if local else None,
        log_to_driver=False,
        include_dashboard=False if local else None,
        logging_level="error",
    )
    largest = max((node["Resources"].get(RESOURCE, 0) for node in ray.nodes() if node["Alive"]), default=0)
    # the node's own environment, with where the data and the evidence lie
    variables = {name: value for name, value in os.environ.items() if name.startswith("ASCEND_COMPAT_")}
    submitted: dict[Any, str] = {}
    bad = 0
    for task in asked["tasks"]:
        if task["devices"] > largest:
            bad += 1
            told = f"it needs {task['devices']} NPUs on one node; the largest node has {largest:g}"
            print(
                json.dumps({"key": task["key"], "status": None, "node": None, "output": told}), file=results, flush=True
            )
            continue
        remote = ray.remote(num_cpus=1, resources={RESOURCE: task["devices"]}, max_retries=1)(attempt)
        submitted[remote.options(name=task["key"]).remote(task["command"], variables)] = task["key"]
    while submitted:
        (ready, *_), _ = ray.wait(list(submitted), num_returns=1)
        key = submitted.pop(ready)
        try:
            result = ray.get(ready)
        except ray.exceptions.RayError as error:
            result = {"status": None, "node": None, "output": f"{type(error).__name__}: {error}".splitlines()[0]}
        bad += result["status"] != 0
        print(json.dumps({"key": key, **result}), file=results, flush=True)
    ray.shutdown()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
