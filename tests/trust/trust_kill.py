"""Does one piece of work that writes files and is killed, as by ``kill -9``, just before its N-th act on the disk.

``trust_kill.py WORK N FOLDER``; N is 0 for no kill, and then the number of acts is printed.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_ACTS = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "shutil.rmtree")
EVIDENCE = {"id": "20260105T100000Z-killed-0a1b2c3d", "kind": "evidence", "values": list(range(20_000))}


def build(folder: Path) -> None:
    """A database where there was none."""
    from ascend_compat.matrix.store import build as make

    make()


def evidence(folder: Path) -> None:
    """A document of evidence, over an older one."""
    from ascend_compat.evidence.document import sealed, write

    write(folder / "evidence", sealed(EVIDENCE))


def importing(folder: Path) -> None:
    """A page of a release the registry does not hold."""
    from ascend_compat.matrix import importing_files

    plan = importing_files.plan(
        folder / "page.tsv", "ascendfactory", "9.9.9", source={"url": "https://example.com/x", "date": "unknown"}
    )
    importing_files.write(plan)


def docs(folder: Path) -> None:
    """Some pages of the documentation."""
    from ascend_compat.docs import build, listing
    from ascend_compat.docs.pages import frameworks, home
    from ascend_compat.docs.source import Source
    from ascend_compat.matrix.store import connect

    def pages(con: Any, language: str, layouts: Any) -> Any:
        from ascend_compat.docs.keys import Keys

        source = Source(con, language)
        return [*home.pages(source), *frameworks.pages(source, Keys(con))]

    build.pages = pages
    listing.badges = lambda con: iter(())
    build.build(connect(), folder / "site", ["en", "zh"], "markdown", [])


def main(work: str, moment: int, folder: Path) -> None:
    """Count acts from here on; the one that is due does not happen."""
    sys.dont_write_bytecode = True
    acts = 0

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal acts
        opened = event == "open" and not isinstance(arguments[0], int) and (arguments[2] or 0) & _WRITING
        if opened or event in _ACTS:
            acts += 1
            if acts == moment:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    {"build": build, "evidence": evidence, "import": importing, "docs": docs}[work](folder)
    print(acts)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
