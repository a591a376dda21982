"""Names the reason a run died for, from its own log and its real exit."""

from __future__ import annotations

import re
import signal

# The first that matches names the run; within one, the last line of the log that matches is quoted.
PATTERNS: tuple[tuple[str, str], ...] = (
    (
        "missing-cann",
        r"lib(?:ascendcl|hccl|ascend_hal|msprofiler|acl_op_compiler|runtime|ge_runner|opapi|graph|register)\.so[^ ]*: cannot open shared object"
        r"|ASCEND_HOME_PATH (?:is not set|environment variable|does not exist)|ASCEND_TOOLKIT_HOME.*(?:not set|does not exist)"
        r"|source the set_env\.sh|No module named '(?:acl|te|tbe)'",
    ),
    (
        "oom",
        r"(?:NPU|CUDA|XPU) out of memory|torch(?:\.\w+)*\.OutOfMemoryError|\bOutOfMemoryError\b|DefaultCPUAllocator: (?:can't|not enough)"
        r"|EL0004|Failed to allocate memory|\bMemoryError\b|Cannot allocate memory|ACL_ERROR_RT_MEMORY_ALLOCATION|error code is 207001",
    ),
    ("disk-full", r"No space left on device|Disk quota exceeded"),
    (
        "unknown-option",
        r"unrecognized arguments?:|error: argument .*invalid choice|no such option|Some keys are not used by the HfArgumentParser"
        r"|Could not override|Key '[^']+' is not in struct|unexpected keyword argument|ConfigCompositionException"
        r"|Error merging override|error: the following arguments are required|Some specified arguments are not used",
    ),
    (
        "no-device",
        r"(?:No|no) (?:NPU|npu|CUDA|accelerator|Ascend) ?(?:devices?|GPUs?)?(?: is| are)? (?:available|found|visible|detected)"
        r"|aclrtGetDeviceCount.*failed|npuGetDeviceCount.*failed|Invalid device ID|drvErr=87|ERR99999.*no device"
        r"|Torch not compiled with CUDA enabled|Torch not compiled with NPU",
    ),
    (
        "communication",
        r"HCCL.*(?:error|failed|timeout)|EI000[0-9]|Connection (?:refused|reset by peer)|Gloo connectFullMesh failed"
        r"|DistNetworkError|Address already in use|EADDRINUSE|Watchdog caught collective operation timeout",
    ),
    ("missing-package", r"(?:ModuleNotFoundError|PackageNotFoundError).*|ImportError: .*(?:is required|requires|not found).*|: command not found"),
    ("missing-file", r"FileNotFoundError|No such file or directory|is not a local folder|does not appear to have a file named"),
    ("nan-loss", r"found NaN in|loss is (?:nan|NaN)|Unexpected result (?:nan|inf)|number of nan iterations:\s+[1-9]"),
)  # fmt: skip
_COMPILED = tuple((kind, re.compile(pattern)) for kind, pattern in PATTERNS)
_EXCEPTION = re.compile(r"^(?:\[rank\d+\]: ?)?(?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception|Interrupt|Exit)\b.*")
_WRAPPER = re.compile(r"ChildFailedError|CalledProcessError|SystemExit|RayTaskError")
_NOISE = re.compile(r"^\s*(?:warnings?\.warn|File \"|Traceback \(most recent)")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def plain(line: str) -> str:
    """A log line without colours and without a Ray or rank prefix."""
    line = _COLOUR.sub("", line).strip()
    return re.sub(r"^(?:\((?:[\w.:]+ )?pid=[^)]*\)|\[rank\d+\]:)\s*", "", line)


def name(lines: list[str], status: int) -> tuple[str, str]:
    """Kind and reason of a run that ended with ``status`` (negative: ended by that signal).

    Only the tail of a log should be given: a caught error early in a log is no reason.
    """
    tail = [plain(line) for line in lines]
    # the sentence of an exception is better evidence than a warning that happens to hold the same words
    errors = [line for line in tail if _EXCEPTION.match(line) and not _WRAPPER.search(line)]
    for candidates in (errors, tail):
        for kind, pattern in _COMPILED:
            for line in reversed(candidates):
                if pattern.search(line) and not _NOISE.match(line):
                    return kind, line[:400]
    if status < 0 or status > 128:
        number = -status if status < 0 else status - 128
        return "killed", f"ended by {_signal(number)}"
    if errors:
        return "framework", errors[-1][:400]
    last = next((line for line in reversed(tail) if line), "")
    return "framework", last[:400] or f"exit status {status} and an empty log"


def is_exception(sentence: str) -> bool:
    """Whether a log line is the sentence of a Python exception."""
    return bool(_EXCEPTION.match(sentence))


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
