"""``ascend-compat bench``: how fast a host does what training does most, and whether it became slower."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from ascend_compat.cli.options import write
from ascend_compat.errors import UsageError

_FACTS = ("hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim", "num_experts", "num_experts_per_tok")


@click.group()
def bench() -> None:
    """Measure a host with the runners' benchmarks, and compare with earlier measurements."""


@bench.command()
@click.option("--device", type=click.Choice(["npu", "cpu"]), default="npu", show_default=True)
@click.option("--python", type=click.Path(), help="The interpreter that holds torch (default: of `make runners`).")
@click.option("--model", help="Take the sizes from this model's facts (default: tiny ones).")
@click.option("--seq-length", type=click.IntRange(1, 1_000_000), default=128, show_default=True)
@click.option("--out", type=click.Path(dir_okay=False), required=True, help="The document to write.")
def run(device: str, python: str | None, model: str | None, seq_length: int, out: str) -> None:
    """Measure, and write the document. Exit code: 0 measured, 2 wrong usage, 3 the benchmarks failed."""
    from ascend_compat.evidence.benchmark import measure
    from ascend_compat.evidence.run import python_for
    from ascend_compat.files import write_whole

    shape = {**(_shape(model) if model else {}), "seq_length": seq_length}
    result = measure(python_for(python), device, shape)
    write_whole(Path(out), json.dumps(result, ensure_ascii=False, indent=1) + "\n")
    for one in result["results"]:
        write(f"{one['name']:24} {one['median'] * 1e6:12.1f} us  noise {one['spread']:.0%}")
    write(f"{len(result['results'])} benchmarks on {device}, torch {result['torch']}: {out}")


def _shape(model: str) -> dict[str, int]:
    from ascend_compat.check.engine import Engine
    from ascend_compat.jobs.architecture import Architecture
    from ascend_compat.matrix.store import connect

    engine = Engine(connect())
    found = engine.names.model(model)
    if found is None:
        nearest = ", ".join(engine.names.suggest_models(model)) or "none"
        raise UsageError(f"no model is called {model!r}; nearest: {nearest}")
    facts = Architecture(engine.con).facts(found.id)
    shape = {name: int(facts[name]) for name in _FACTS if facts.get(name)}
    shape.setdefault("head_dim", shape["hidden_size"] // shape["num_attention_heads"])
    shape["intermediate_size"] = int(facts.get("ffn_hidden_size") or 4 * shape["hidden_size"])
    return shape


@bench.command()
@click.argument("result", type=click.Path())
@click.option("--windows", required=True, type=click.Path(), help="The windows to lie in; `bench rebase` makes them.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def compare(result: str, windows: str, form: str) -> None:
    """Compare a measurement with the windows of its device and stack.

    Exit code: 0 nothing is slower than its window, 1 something is, or no window is of this device and stack, 2 wrong usage.
    """
    from ascend_compat.evidence.benchmark import compare as against
    from ascend_compat.evidence.benchmark import read

    measured = read(Path(result), "benchmark")
    found = against(measured, read(Path(windows), "benchmark-windows"))
    if form == "json":
        said = [
            {"name": one.name, "state": one.state, "median": one.median, "spread": one.spread, "window": one.window}
            for one in found
        ]
        write(json.dumps({"schema_version": 1, "device": measured["device"], "results": said}, indent=2))
    else:
        for one in found:
            bounds = f"{one.window['lower'] * 1e6:.1f} to {one.window['upper'] * 1e6:.1f} us" if one.window else "none"
            write(f"{one.state:9} {one.name:24} {one.median * 1e6:12.1f} us  window {bounds}  noise {one.spread:.0%}")
    bad = any(one.state == "slower" for one in found) or all(one.state == "no-window" for one in found)
    sys.exit(1 if bad else 0)


@bench.command()
@click.argument("result", type=click.Path())
@click.option("--windows", required=True, type=click.Path(), help="The file to write them to.")
def rebase(result: str, windows: str) -> None:
    """Make a measurement the target of its device and stack: windows of three times its noise, at least a tenth."""
    from ascend_compat.evidence.benchmark import read
    from ascend_compat.evidence.benchmark import rebase as set_targets

    count = set_targets(read(Path(result), "benchmark"), Path(windows))
    write(f"{count} windows written to {windows}")
