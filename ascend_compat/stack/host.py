"""This host as a stack, without importing torch: files, installed distributions, npu-smi, device files, the environment.

Install layouts of CANN, old and new: below ``/usr/local/Ascend`` the toolkit lies in ``ascend-toolkit/latest`` (to 8.x) or
``cann`` (9.x); which of its version files is there differs by release.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ascend_compat.errors import UsageError
from ascend_compat.stack.model import Stack, Stated, package_name
from ascend_compat.stack.npu_smi import read_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SOURCE = "this host"
# variables that decide whether a job finds its libraries and devices
VARIABLES = re.compile(
    r"ASCEND_\w+|ATB_\w+|HCCL_\w+|LD_LIBRARY_PATH|PYTHONPATH|TORCH_DEVICE_BACKEND_AUTOLOAD|PYTORCH_NPU_ALLOC_CONF|"
    r"TASK_QUEUE_ENABLE|CPU_AFFINITY_CONF"
)
_HOMES = ("usr/local/Ascend/cann", "usr/local/Ascend/ascend-toolkit/latest", "usr/local/Ascend/latest")
_VERSION_FILES = (
    "*-linux/ascend_toolkit_install.info",
    "ascend_toolkit_install.info",
    "*-linux/ascend_cann_install.info",
    "share/info/*/version.info",
    "version.cfg",
    "version.info",
    "toolkit/version.info",
    "compiler/version.info",
    "runtime/version.info",
)
_NNAL_FILES = ("atb/latest/version.info", "atb/version.info", "version.info", "ascend_nnal_install.info")
_VERSION = re.compile(
    r"^[ \t]*(?:[\w -]{0,40} )?(?:version|Version|package_version|atb_version)[ \t]*[=:][ \t]*[\[\"]?(?:[^\]\s:]*:)?([0-9][\w.]*)",
    re.M,
)
_RUNNING = re.compile(r"_running_version\s*=\s*\[[^:\]]*:([0-9][\w.]*)\]")
_INTERPRETER = (
    "import json,platform,sys\n"
    "from importlib.metadata import distributions\n"
    "print(json.dumps({'python':platform.python_version(),'machine':platform.machine(),"
    "'packages':[[d.metadata['Name'],d.version] for d in distributions() if d.metadata['Name']]}))\n"
)
_SECONDS = 30


def scan_host(python: str | None = None, root: Path = Path("/"), environment: Mapping[str, str] | None = None) -> Stack:
    """This host as a stack; ``python`` is another interpreter to look into, ``root`` a folder to see as ``/``.

    Raises :class:`UsageError` when that interpreter cannot be asked.
    """
    environment = os.environ if environment is None else environment
    stack = Stack(SOURCE, packages_complete=True, env_complete=True)
    for name, value in environment.items():
        if VARIABLES.fullmatch(name):
            stack.env[name] = Stated(value)
    _interpreter(stack, python)
    _cann(stack, root, environment)
    _driver(stack, root)
    _devices(stack, root, environment)
    return stack


def _interpreter(stack: Stack, python: str | None) -> None:
    if python is None:
        import platform
        from importlib.metadata import distributions

        found = {"python": platform.python_version(), "machine": platform.machine()}
        listed = [[item.metadata["Name"], item.version] for item in distributions() if item.metadata["Name"]]
    else:
        try:
            answer = subprocess.run(
                [python, "-c", _INTERPRETER], capture_output=True, text=True, timeout=_SECONDS, check=True
            )
            found = json.loads(answer.stdout)
            listed = found["packages"]
        except (OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
            reason = getattr(error, "strerror", None) or type(error).__name__
            raise UsageError(f"{python}: not a Python that can be asked: {reason}") from None
    stack.state("python", found["python"])
    stack.state("architecture", found["machine"])
    for name, version in listed:
        stack.packages.setdefault(package_name(name), Stated(version or "unknown"))


def _cann(stack: Stack, root: Path, environment: Mapping[str, str]) -> None:
    homes = [Path(environment[name]) for name in ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME") if environment.get(name)]
    homes += [root / home for home in _HOMES]
    home = next((home for home in homes if home.is_dir()), None)
    if home is None:
        stack.absent.add("cann")
    else:
        version = _version_in(home, _VERSION_FILES)
        if version:
            stack.state("cann", version)
        else:
            stack.notes.append(
                (
                    f"a CANN folder is here ({home}) but no version file in it could be read",
                    f"存在 CANN 目录（{home}），但其中没有可读的版本文件",
                )
            )
        kernels = sorted({folder.name.removeprefix("ascend") for folder in _kernels(home)})
        if kernels:
            stack.state("kernels", ", ".join(kernels))
    nnal = [Path(environment["ATB_HOME_PATH"])] if environment.get("ATB_HOME_PATH") else []
    nnal += [root / "usr/local/Ascend/nnal"]
    for place in nnal:
        version = _version_in(place, (*_NNAL_FILES, "../version.info", "../../version.info"))
        if version:
            stack.state("nnal", version)
            return
    stack.absent.add("nnal")


def _kernels(home: Path) -> Iterator[Path]:
    for pattern in (
        "opp/built-in/op_impl/ai_core/tbe/kernel/ascend*",
        "*/opp/built-in/op_impl/ai_core/tbe/kernel/ascend*",
    ):
        yield from (folder for folder in home.glob(pattern) if folder.is_dir())


def _version_in(folder: Path, patterns: tuple[str, ...]) -> str | None:
    for pattern in patterns:
        for path in sorted(folder.glob(pattern)) if "*" in pattern else [folder / pattern]:
            try:
                text = path.read_text(encoding="utf-8", errors="replace")[:20_000]
            except OSError:
                continue
            found = _RUNNING.search(text) or _VERSION.search(text)
            if found:
                return found.group(1)
    return None


def _driver(stack: Stack, root: Path) -> None:
    for name in ("driver", "firmware"):
        version = _version_in(root / "usr/local/Ascend" / name, ("version.info",))
        if version:
            stack.state(name, version)


def _devices(stack: Stack, root: Path, environment: Mapping[str, str]) -> None:
    import shutil

    files = [path for path in (root / "dev").glob("davinci*") if path.name.removeprefix("davinci").isdigit()]
    if files:
        stack.state("npu_count", str(len(files)))
    tool = shutil.which("npu-smi", path=environment.get("PATH", ""))
    if tool is None:
        if not files:
            stack.absent.add("npu")
        return
    try:
        answer = subprocess.run([tool, "info"], capture_output=True, text=True, timeout=_SECONDS, check=False)
        read_table(stack, answer.stdout.splitlines(), SOURCE)
        reason = (answer.stderr or answer.stdout).strip().splitlines()[-1:] or ["no output"]
    except (OSError, subprocess.SubprocessError) as error:
        reason = [type(error).__name__]
    if stack.value("chip") is None:
        stack.absent.add("npu-smi table")
        stack.values["npu_smi_failure"] = Stated(reason[0][:200])


def probe(python: str | None = None, seconds: float = 120.0) -> list[tuple[str, str | None, int | None]]:
    """What importing torch, then torch_npu, comes to in a process of its own: (module, reason of failure, devices seen)."""
    results: list[tuple[str, str | None, int | None]] = []
    for module, code in (
        ("torch", "import torch\nprint(0)"),
        ("torch_npu", "import torch, torch_npu\nprint(torch.npu.device_count())"),
    ):
        try:
            answer = subprocess.run(
                [python or sys.executable, "-c", code], capture_output=True, text=True, timeout=seconds, check=False
            )
        except subprocess.TimeoutExpired:
            results.append((module, f"no answer in {seconds:g} s", None))
            continue
        except OSError as error:
            raise UsageError(f"{python}: {error.strerror}") from None
        last = answer.stdout.strip().splitlines()[-1:]
        if answer.returncode == 0 and last and last[0].isdigit():
            results.append((module, None, int(last[0])))
        else:
            lines = [line.strip() for line in answer.stderr.splitlines() if line.strip()]
            named = [line for line in lines if re.match(r"[A-Za-z_.]+(?:Error|Exception)\b", line)]
            results.append((module, (named or lines or [f"exit code {answer.returncode}"])[-1][:300], None))
    return results
