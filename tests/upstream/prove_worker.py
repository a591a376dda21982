"""What every framework's prover shares: settings come in as JSON, each is tried in a forked child, verdicts go out.

Runs in the framework's own environment and imports nothing of ascend_compat.
"""

from __future__ import annotations

import argparse
import importlib.abc
import importlib.machinery
import json
import os
import re
import select
import signal
import sys
import time
import traceback
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_NAME = re.compile(r"--?[a-z][\w-]+|\b[a-zA-Z]\w*(?:\.\w+)+\b|\b[a-z0-9]+(?:_[a-z0-9]+)+\b")


class _Meta(type):
    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return _stub(name)


class Stub(metaclass=_Meta):
    """Stands for anything of a missing package: callable, subscriptable, a base class, never true."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __call__(self, *given: Any, **_: Any) -> Any:
        return given[0] if len(given) == 1 and callable(given[0]) and not isinstance(given[0], Stub) else Stub()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Stub()

    def __bool__(self) -> bool:
        return False

    def __iter__(self) -> Any:
        return iter(())

    def __getitem__(self, _: Any) -> Any:
        return Stub()

    def __class_getitem__(cls, _: Any) -> Any:
        return cls

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: Any) -> None:
        return None


def _stub(name: str) -> Any:
    """A class where the name looks like one (others inherit from it), an object otherwise."""
    return type(name, (Stub,), {}) if name[:1].isupper() else Stub()


class _Module(types.ModuleType):
    __path__: list[str] = []
    __version__ = "99.0.0"
    __file__ = "stub.py"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        value = _stub(name)
        setattr(self, name, value)
        return value


class StubFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Answers imports of the named packages, and of what lies below them, with stub modules."""

    def __init__(self, packages: Iterable[str]) -> None:
        self.packages = tuple(packages)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if any(name == package or name.startswith(package + ".") for package in self.packages):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> types.ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def stub(*packages: str) -> None:
    """Put stubs in the place of ``packages``, whether or not they are installed."""
    sys.meta_path.insert(0, StubFinder(packages))


def _refuse(_: argparse.ArgumentParser, message: str) -> None:
    raise SystemExit(message)


argparse.ArgumentParser.error = _refuse  # type: ignore[assignment,method-assign]


def shortened(error: BaseException) -> str:
    """The type of an exception and the parameter names in its text, in the order of their appearance."""
    text = str(error)
    names = list(dict.fromkeys(name for name in _NAME.findall(text) if not name.endswith((".py", ".com", ".io"))))
    return f"{type(error).__name__}: {' '.join(names[:6])}" if names else type(error).__name__


def place(error: BaseException, roots: Iterable[str]) -> str:
    """``path:line`` of the innermost frame that lies in one of the checkouts; empty if none does."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        for root in roots:
            if frame.filename.startswith(root):
                return f"{os.path.relpath(frame.filename, root)}:{frame.lineno}"
    return ""


def attempt(
    check: Callable[[Any], Any], setting: Any, roots: Iterable[str], seconds: float, debug: bool
) -> dict[str, Any]:
    """Try one setting in a forked child: accepted or not, what was said, and where."""
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(readable)
        answer: dict[str, Any] = {"accepted": True}
        try:
            if not debug:
                quiet = os.open(os.devnull, os.O_WRONLY)
                os.dup2(quiet, 1)
                os.dup2(quiet, 2)
            check(setting)
        except SystemExit as stop:
            answer = {
                "accepted": not stop.code,
                "said": shortened(stop),
                "at": place(stop, roots),
                "text": str(stop)[:400],
            }
        except BaseException as error:  # the framework's refusal, whatever its type
            if debug:
                traceback.print_exc()
            answer = {"accepted": False, "said": shortened(error), "at": place(error, roots), "text": str(error)[:400]}
        os.write(writable, json.dumps(answer).encode())
        os._exit(0)
    os.close(writable)
    ready, _, _ = select.select([readable], [], [], seconds)
    body = os.read(readable, 65536) if ready else b""
    os.close(readable)
    if not ready:
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return json.loads(body) if body else {"accepted": None, "said": "no answer"}


def serve(check: Callable[[Any], Any], roots: Iterable[str], seconds: float = 20.0) -> None:
    """Answer every setting of the JSON list on standard input, one JSON line each."""
    debug = bool(os.environ.get("PROVE_DEBUG"))
    out = os.fdopen(os.dup(1), "w")
    started = time.monotonic()
    for number, setting in enumerate(json.load(sys.stdin)):
        out.write(json.dumps({"number": number, **attempt(check, setting, list(roots), seconds, debug)}) + "\n")
        out.flush()
    sys.stderr.write(f"{time.monotonic() - started:.1f} s\n")
