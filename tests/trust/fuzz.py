"""Coverage-guided fuzzing of one reader with atheris, for ``make fuzz``: ``fuzz.py TARGET SECONDS``.

Finds are printed with the input that makes them; the corpus starts from the same seeds as the tests.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["ascend_compat"]):
    import ascend_compat.jobs.bash
    import ascend_compat.jobs.expand
    import ascend_compat.jobs.hydra
    import ascend_compat.jobs.interpolation
    import ascend_compat.jobs.interpret
    import ascend_compat.jobs.read
    import ascend_compat.matrix.importing
    import ascend_compat.matrix.importing_grid
    import ascend_compat.stack.npu_smi
    import ascend_compat.stack.read  # noqa: F401

from trust_inputs import HOSTILE, OTHER, seeds
from trust_targets import Targets


def main(target: str, seconds: int) -> None:
    """Fuzz for so many seconds; ends the process with an error at the first find."""
    folder = Path(tempfile.mkdtemp(prefix="ascend-compat-fuzz-"))
    corpus = folder / "corpus"
    corpus.mkdir()
    for number, text in enumerate(seeds(target)):
        (corpus / str(number)).write_text(text, encoding="utf-8")
    words = [
        word.encode("utf-8", "replace") for word in HOSTILE + OTHER if 0 < len(word.encode("utf-8", "replace")) < 60
    ]
    lines = ('"' + "".join(f"\\x{byte:02x}" for byte in word) + '"' for word in words)
    (folder / "words").write_text("\n".join(lines) + "\n", encoding="ascii")
    work = folder / "work"
    work.mkdir()
    os.chdir(work)
    targets = Targets(work)

    def one(data: bytes) -> None:
        targets.run(target, data)

    options = [
        f"-max_total_time={seconds}",
        "-timeout=10",
        "-rss_limit_mb=1024",
        "-max_len=8192",
        f"-artifact_prefix={folder}/",
    ]
    atheris.Setup([sys.argv[0], str(corpus), f"-dict={folder}/words", *options], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
