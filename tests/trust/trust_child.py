"""Runs one target in a guarded process: ``trust_child.py TARGET EXAMPLES FOLDER``; prints how many were taken and refused."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from trust_guard import Guard
from trust_inputs import HOSTILE, KINDS, OTHER, ROOT, edited, seeds
from trust_targets import Targets


def main(target: str, examples: int, folder: Path) -> None:
    from hypothesis import HealthCheck, Phase, example, given, settings
    from hypothesis import strategies as st

    os.chdir(folder)
    targets = Targets(folder)
    known = seeds(target)
    words = st.sampled_from(HOSTILE + OTHER)
    edit = st.tuples(st.sampled_from(KINDS), st.integers(0, 9_999), words)
    mutants = st.builds(edited, st.sampled_from(known), st.lists(edit, min_size=1, max_size=6))
    made = st.builds("".join, st.lists(words | st.sampled_from([" ", "\n", ": ", "  "]), max_size=30))
    texts = st.one_of(mutants, mutants, made, st.text(max_size=80))
    inputs = st.one_of(texts.map(lambda text: text.encode("utf-8", "replace")), st.binary(max_size=80))
    counts = {"taken": 0, "refused": 0}
    guard = Guard([folder, ROOT / "ascend_compat", ROOT / "matrix", ROOT / "schema", ROOT / "runners"], [folder])
    for text in known[:1]:
        targets.run(target, text.encode())  # what is loaded once is no growth
    guard.arm()

    @settings(
        max_examples=examples, derandomize=True, database=None, deadline=None, print_blob=False,
        suppress_health_check=list(HealthCheck), phases=(Phase.explicit, Phase.generate, Phase.shrink),
    )  # fmt: skip
    @given(inputs)
    @example(b"")
    @example(b"\xff\xfe\x00")
    @example(b"[" * 5000)
    @example(b'{"a":' * 5000)
    @example("\ud800".encode("utf-8", "surrogatepass"))
    def attack(data: bytes) -> None:
        with guard.watching():
            taken = targets.run(target, data)
        counts["taken" if taken else "refused"] += 1

    for text in known:
        with guard.watching():
            counts["taken"] += targets.run(target, text.encode())
    attack()
    print(json.dumps(counts))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
