"""Inputs that are small to write and would be large to follow, put to the job readers in a guarded process."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from trust_guard import Guard
from trust_inputs import ROOT
from trust_targets import Targets

_LLAMAFACTORY = "stage: sft\nmodel_name_or_path: Qwen/Qwen2-7B\ndo_train: true\nfinetuning_type: full\n"
_VERL = "actor_rollout_ref:\n  actor: {strategy: fsdp}\na0: x\n"
_TORCHRUN = "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 4 --tensor-model-parallel-size 3"
_POD = "apiVersion: batch/v1\nkind: Job\nspec: {template: {spec: {containers: [{name: a, command: [bash, -c, 'torchrun pretrain_gpt.py']}]}}}\n"

# file name, text, and the code of its refusal or the number of its launches
CASES: dict[str, tuple[str, str, str | int]] = {
    "many jobs in documents": ("job.yaml", "---\n".join([_LLAMAFACTORY] * 3_000), "AC2042"),
    "many jobs in a script": ("job.sh", "#!/bin/bash\n" + f"{_TORCHRUN}\n" * 1_500, "AC2042"),
    "many jobs in a manifest": ("job.yaml", "---\n".join([_POD] * 300), "AC2042"),
    "a job in a loop": ("job.sh", f"for a in {{1..1000}}; do {_TORCHRUN}; done\n", 1),
    "unknown keys": ("job.yaml", _LLAMAFACTORY + "".join(f"nope{n}: 1\n" for n in range(5_000)), 1),
    "unknown flags": ("job.sh", f"{_TORCHRUN} " + " ".join(f"--nope-{n} 1" for n in range(20_000)), "AC2103"),
    "a repeated key": ("job.yaml", _LLAMAFACTORY + "stage: sft\n" * 5_000, 1),
    "a long value": ("job.yaml", f"{_LLAMAFACTORY}dataset: {'a,' * 1_000_000}\n", 1),
    "references in a chain": ("job.yaml", _VERL + "".join(f"a{n}: ${{a{n - 1}}}\n" for n in range(1, 5_000)), 1),
    "references that double": ("job.yaml", _VERL + "".join(f"a{n}: ${{a{n - 1}}}${{a{n - 1}}}\n" for n in range(1, 60)), 1),
    "a reference into a list by no number": ("job.yaml", _VERL + f"b: [1]\nc: ${{b.²}}\nd: ${{b.{'9' * 5000}}}\n", 1),
    "a long list": ("job.yaml", f"{_LLAMAFACTORY}a: [{'1,' * 2_400_000}1]\n", "AC2009"),
    "a long list in JSON": ("job.json", '{"stage": "sft", "a": [' + "{}," * 500_000 + "{}]}", "AC2009"),
    "empty documents": ("job.yaml", "---\n" * 500_000, "AC2009"),
    "aliases in a merge": ("job.yaml", f"a: &a {{x: 1}}\nb: {{<<: [{'*a,' * 500_000}*a]}}\n", "AC2009"),
    "depth": ("job.yaml", "a: " + "[" * 100_000, "AC2010"),
    "a large file": ("job.yaml", "#" * 9_000_000, "AC2006"),
}  # fmt: skip


def main(folder: Path) -> None:
    """Prints what each case came to."""

    os.chdir(folder)
    targets = Targets(folder)
    targets.job("job.yaml", _LLAMAFACTORY.encode())
    guard = Guard([folder, ROOT / "ascend_compat", ROOT / "matrix", ROOT / "schema"])
    guard.arm()
    found: dict[str, str | int] = {}
    for name, (file, text, _) in CASES.items():
        data = text.encode()
        with guard.watching():
            targets.job(file, data)
        read = targets.read
        found[name] = read.error.code if read.error else len(read.launches)
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
