"""From an example of a rule to what a framework's own code is given: words, mappings, environment, files.

A setting is JSON; the prover of the framework (``prove_<framework>.py``) says what it holds. Examples no key of the
framework can state have none.
"""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

from ascend_compat.check.examples import Example, job_text
from ascend_compat.errors import CompatError
from ascend_compat.jobs.render import settings_of, tree

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascend_compat.check.engine import Engine


def setting_of(engine: Engine, example: Example) -> dict[str, Any] | None:
    """What the framework is given for an example; None where its keys cannot say it."""
    body = engine.con.execute("SELECT body FROM rule_base WHERE framework = ?", [example.framework]).fetchone()
    base = json.loads(body[0]) if body else {}
    if example.body.get("base"):
        base = {**base, **base["bases"][example.body["base"]]}
    given = dict(example.body)
    if "job" not in given:
        spec = engine.spec(example.framework)
        if spec is None:
            return None
        try:
            given["settings"] = settings_of(spec, example.version, given.get("facts") or {})
        except CompatError:
            return None
    return _FORMS[example.framework](base, given) if example.framework in _FORMS else None


def _megatron(base: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any] | None:
    facts = {**base.get("facts", {}), **given.get("facts", {})}
    job = given.get("job")
    if job is None and str(facts.get("entry", "")).startswith(("convert", "preprocess")):
        return None
    if job is None:
        job = " ".join(
            " ".join([key, *([] if value is True else [_text(item) for item in (value if isinstance(value, list) else [value])])])
            for key, value in given["settings"].items()
        )
    text = job_text("mindspeed-llm", base, {"job": job})
    *exports, launch = [line for line in text.splitlines() if line.strip()]
    words = shlex.split(launch)
    entry = next(number for number, word in enumerate(words) if word.endswith(".py"))
    env = dict(line.removeprefix("export ").split("=", 1) for line in exports)
    world = int(facts.get("devices_per_node", 8)) * int(facts.get("nnodes", 1))
    return {"argv": words[entry + 1 :], "world": world, "env": env, "entry": words[entry]}


def _text(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


_FORMS = {"mindspeed-llm": _megatron}
