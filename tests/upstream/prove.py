"""Every rule's examples, and with ``--grid`` combinations of sizes, put to the frameworks' own code: `python tests/upstream/prove.py --repo NAME=PATH …`.

Verdicts are compared with those of the rules. ``--write`` keeps what was seen as ``matrix/rules/<framework>/proofs.yaml``.
``--python`` names an interpreter that has what the framework imports (torch for CPU, transformers, …); each setting runs
in a process of its own. Rules the framework's code contradicts are listed, unless ``disagreements.yaml`` gives the reason.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import random
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]

import yaml
from prove_settings import setting_of

from ascend_compat.check.engine import Engine, row_of
from ascend_compat.check.examples import Example, all_rules, examples, read_example
from ascend_compat.check.rules import evaluate
from ascend_compat.matrix.store import connect

# framework -> (repository whose commit a record names, other checkouts its prover needs, in order)
FRAMEWORKS: dict[str, tuple[str, ...]] = {
    "mindspeed-llm": ("MindSpeed-LLM", "MindSpeed", "Megatron-LM"),
    "llamafactory": ("LLaMA-Factory",),
    "verl": ("verl",),
    "mindspeed-rl": ("MindSpeed-RL", "MindSpeed", "Megatron-LM"),
}
NAMES = {
    "MindSpeed-LLM": "Ascend/MindSpeed-LLM",
    "MindSpeed": "Ascend/MindSpeed",
    "MindSpeed-RL": "Ascend/MindSpeed-RL",
    "Megatron-LM": "NVIDIA/Megatron-LM",
    "verl": "verl-project/verl",
    "LLaMA-Factory": "hiyouga/LLaMA-Factory",
}


@dataclass
class Seen:
    """What a framework said to one rule's examples. A ``listed`` rule has a reason not to be called proved."""

    rule: str
    severity: str
    listed: bool = False
    tried: list[tuple[Example, dict[str, Any]]] = field(default_factory=list)
    silent: int = 0

    def wrong(self) -> list[tuple[Example, dict[str, Any]]]:
        """Examples on which framework and rule differ; what only earns a warning is not refused."""
        accepted = {"pass": True, "fail": self.severity == "warning"}
        return [(example, said) for example, said in self.tried if said["accepted"] is not accepted[example.kind]]

    def proved(self) -> bool:
        """Whether a passing and a failing example went as the rule says, and none otherwise."""
        kinds = {example.kind for example, _ in self.tried}
        return not self.listed and self.severity == "impossible" and kinds == {"pass", "fail"} and not self.wrong()


def ask(framework: str, python: str, roots: list[str], settings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The framework's answers to settings, in their order."""
    script = HERE / f"prove_{framework.replace('-', '_')}.py"
    done = subprocess.run(
        [python, "-W", "ignore", str(script), *roots],
        input=json.dumps(settings),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": ""},
    )
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"number"')]
    if len(answers) != len(settings):
        raise SystemExit(f"{framework}: {len(answers)} answers to {len(settings)} settings\n{done.stderr[-3000:]}")
    return answers


def reasons() -> dict[str, str]:
    """Rules that are listed with the reason why a framework answers otherwise."""
    listed = yaml.safe_load((HERE / "disagreements.yaml").read_text(encoding="utf-8"))["rules"]
    return {entry["rule"]: entry["reason"] for entry in listed}


def rules_of(engine: Engine, framework: str, only: list[str]) -> dict[str, dict[str, Any]]:
    """The framework's rules that may be proved."""
    rows = engine.con.execute(
        "SELECT id, any_value(severity), any_value(source), any_value(rests_on), last(until ORDER BY until_ordinal NULLS LAST) "
        "FROM rule WHERE framework = ? GROUP BY id ORDER BY id",
        [framework],
    ).fetchall()
    return {
        name: {"severity": severity, "source": json.loads(source or "{}"), "rests_on": rests, "until": until}
        for name, severity, source, rests, until in rows
        if not only or name in only
    }


def prove(engine: Engine, framework: str, python: str, roots: list[str], only: list[str]) -> dict[str, Seen]:
    """Feed every example of every rule of a framework to the framework; the checkout is newer than rules that have ended."""
    rules = rules_of(engine, framework, only)
    listed = reasons()
    seen = {name: Seen(name, rule["severity"], name in listed) for name, rule in rules.items()}
    settings, owners = [], []
    for example in examples(engine, list(rules)):
        setting = None if rules[example.rule]["until"] else setting_of(engine, example)
        if setting is None:
            seen[example.rule].silent += 1
        else:
            settings.append(setting)
            owners.append(example)
    for example, said in zip(owners, ask(framework, python, roots, settings)):
        seen[example.rule].tried.append((example, said))
    return seen


def grid(
    engine: Engine, framework: str, python: str, roots: list[str], count: int
) -> list[tuple[str, list[str], dict[str, Any]]]:
    """Seeded combinations of sizes on which framework and rules differ: the job, the rules it breaks, what was said."""
    chosen = random.Random(8)
    spec = engine.spec(framework)
    assert spec is not None
    made = []
    for _ in range(count):
        words = " ".join(f"{key} {chosen.choice(values)}" for key, values in _GRID.items())
        made.append(Example("", framework, spec.newest, "grid", {"job": words}))
    rows = [row_of(read_example(engine, example), None) for example in made]
    rules = [rule for rule in all_rules(engine, framework) if rule.severity == "impossible"]
    outcomes = evaluate(engine.con, rows, rules, engine.vocabulary(framework))
    settings = [setting_of(engine, example) for example in made]
    answers = ask(framework, python, roots, settings)
    print(f"{framework}: {sum(said['accepted'] is True for said in answers)} of {count} combinations accepted")
    differ = []
    for example, outcome, said in zip(made, outcomes, answers):
        broken = sorted({rule.id for rule in outcome.broken} - reasons().keys())
        if said["accepted"] is bool(broken):
            differ.append((example.body["job"], broken, said))
    return differ


_GRID: dict[str, tuple[int, ...]] = {
    "--tensor-model-parallel-size": (1, 2, 3, 4, 8),
    "--pipeline-model-parallel-size": (1, 2, 4),
    "--context-parallel-size": (1, 2, 3),
    "--num-layers": (6, 8, 10),
    "--num-attention-heads": (6, 8, 16, 28),
    "--global-batch-size": (8, 16, 24),
    "--micro-batch-size": (1, 2, 3),
}


def records(seen: dict[str, Seen], repo: str, commit: str) -> list[dict[str, Any]]:
    """One record per proved rule."""
    kept = []
    for one in seen.values():
        if not one.proved():
            continue
        accepted = next(example for example, _ in one.tried if example.kind == "pass")
        refused, said = next((example, said) for example, said in one.tried if example.kind == "fail")
        kept.append(
            {
                "rule": one.rule,
                "repo": repo,
                "commit": commit,
                "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
                "accepted": dict(accepted.body),
                "refused": dict(refused.body),
                "said": said["said"],
                **({"at": said["at"]} if said.get("at") else {}),
            }
        )
    return kept


def write(framework: str, kept: list[dict[str, Any]]) -> None:
    """The record file of a framework, one line a rule."""
    lines = ["kind: proofs", f"framework: {framework}", "proofs:"]
    lines += ["  - " + json.dumps(record, ensure_ascii=False) for record in kept]
    path = HERE.parents[1] / "matrix" / "rules" / framework / "proofs.yaml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def report(framework: str, rules: dict[str, dict[str, Any]], seen: dict[str, Seen], verbose: bool) -> int:
    """Print what was seen; the number of rules the framework contradicts."""
    bad = 0
    for name, one in seen.items():
        for example, said in one.wrong():
            known = one.listed
            bad += not known
            if not known or verbose:
                print(
                    f"{name} ({rules[name]['rests_on']}): {example.kind} example {json.dumps(dict(example.body), ensure_ascii=False)[:300]}"
                )
                print(
                    f"    accepted={said['accepted']} {said.get('said', '')} {said.get('at', '')} | {said.get('text', '')[:200]!r}"
                )
        if verbose and one.proved():
            for example, said in one.tried:
                source = rules[name]["source"].get("path", "")
                if example.kind == "fail" and not said.get("at", "").startswith(source or "?"):
                    print(f"{name}: refused at {said.get('at')} ({said.get('text', '')[:140]!r}), source {source}")
    proved = [name for name, one in seen.items() if one.proved()]
    short = [name for name in seen if rules[name]["rests_on"] == "proof" and name not in proved]
    print(f"{framework}: {len(proved)} of {len(seen)} rules proved, {bad} unexplained disagreements")
    if short:
        print(f"    said to rest on proof, not proved here: {' '.join(short)}")
    return bad


def main() -> int:
    """Run; 1 where the frameworks contradict rules without a listed reason."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repo", action="append", default=[], metavar="NAME=PATH")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--framework", action="append", choices=list(FRAMEWORKS))
    parser.add_argument("--rule", action="append", default=[])
    parser.add_argument("--grid", type=int, default=0, metavar="N", help="N combinations of sizes, too (MindSpeed-LLM)")
    parser.add_argument("--write", action="store_true", help="keep the records")
    parser.add_argument("-v", "--verbose", action="store_true")
    given = parser.parse_args()
    paths = dict(item.split("=", 1) for item in given.repo)
    engine = Engine(connect())
    bad = 0
    for framework in given.framework or FRAMEWORKS:
        names = FRAMEWORKS[framework]
        if not all(name in paths for name in names):
            print(f"{framework}: needs --repo for {', '.join(names)}")
            continue
        roots = [paths[name] for name in names]
        rules = rules_of(engine, framework, given.rule)
        seen = prove(engine, framework, given.python, roots, given.rule)
        bad += report(framework, rules, seen, given.verbose)
        if given.grid and framework == "mindspeed-llm":
            differ = grid(engine, framework, given.python, roots, given.grid)
            print(f"{framework}: {len(differ)} of {given.grid} combinations differ")
            for job, broken, said in differ:
                print(
                    f"    {job}: breaks {' '.join(broken) or 'no rule'}; accepted={said['accepted']} {said.get('at', '')}"
                )
            bad += len(differ)
        if given.write:
            write(framework, records(seen, NAMES[names[0]], commit_of(roots[0])))
    return 1 if bad else 0


def commit_of(path: str) -> str:
    """The commit of a checkout."""
    return subprocess.run(
        ["git", "-C", path, "rev-parse", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
