"""Stack files that users already have: our own text, pip and conda listings, env listings, npu-smi output, image names.

A file may mix them line by line. It is data: never executed, limited in size, and unreadable in one sentence.
"""

from __future__ import annotations

import re
from pathlib import Path

from ascend_compat.errors import UsageError
from ascend_compat.jobs.model import Span
from ascend_compat.stack.image import read_image
from ascend_compat.stack.model import Stack, Stated, package_name
from ascend_compat.stack.npu_smi import read_table

MAX_BYTES = 4 * 1024 * 1024
MAX_LINE = 16 * 1024

# our own keys, and the words other tools use for them
_KEYS = {
    "chip": ("chip", "npu", "npu_type", "npu_name", "npu_model", "soc", "soc_version"),
    "npu_count": ("npu_count", "npus", "devices", "npu_num", "npus_per_node", "devices_per_node"),
    "nodes": ("nodes", "nnodes", "node_count", "num_nodes"),
    "npu_memory_gib": ("npu_memory_gib", "npu_memory", "npu_memory_gb", "hbm_gib", "hbm", "memory_gib"),
    "cann": ("cann", "cann_version", "toolkit", "ascend_toolkit", "cann_toolkit"),
    "nnal": ("nnal", "nnal_version", "atb", "atb_version"),
    "driver": ("driver", "driver_version", "npu_driver", "hdk"),
    "firmware": ("firmware", "firmware_version", "npu_firmware"),
    "kernels": ("kernels", "kernels_package", "cann_kernels", "opp_kernel"),
    "python": ("python", "python_version"),
    "architecture": ("architecture", "arch", "os_arch", "machine", "platform_machine"),
    "container_image": ("container_image", "image", "docker_image", "container"),
    "listed": ("listed_completely",),
    "ascendfactory": ("ascendfactory", "ascendfactory_release", "af_release"),
}
# packages that people state as a line of their own, often as a branch
_PACKAGE_KEYS = {
    "torch": "torch", "pytorch": "torch", "torch_npu": "torch-npu", "vllm": "vllm", "vllm_ascend": "vllm-ascend",
    "transformers": "transformers", "deepspeed": "deepspeed", "numpy": "numpy", "llamafactory": "llamafactory",
    "llama_factory": "llamafactory", "verl": "verl", "mindspeed": "mindspeed", "mindspeed_core": "mindspeed",
    "mindspeed_llm": "mindspeed-llm", "mindspeed_rl": "mindspeed-rl", "megatron": "megatron-core", "megatron_lm": "megatron-core",
    "megatron_core": "megatron-core",
}  # fmt: skip
_KEY = {word: name for name, words in _KEYS.items() for word in words}
_WORD_LINE = re.compile(r"\s*([A-Za-z][\w .-]{0,40}?)\s*[:=]\s*(.*)$")
_ENV_LINE = re.compile(r"\s*(?:export\s+|declare\s+-x\s+)?([A-Z_][A-Z0-9_]*)=(.*)$")
_PINNED = re.compile(r"\s*([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?\s*===?\s*([^\s;#]+)")
_AT = re.compile(r"\s*([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?\s+@\s+(\S+)")
_EDITABLE = re.compile(r"\s*-e\s+(\S+)")
_COLUMNS = re.compile(r"\s*([A-Za-z0-9][\w.-]*)\s+([0-9][\w.+!-]*)(?:\s+(.*))?$")
_PIP_HEAD = re.compile(r"\s*Package\s+Version\b")
_LISTING = re.compile(r"#\s*pip3?\s+(freeze|list)\b", re.IGNORECASE)
_CONDA_HEAD = re.compile(r"#\s*(packages in environment at|Name\s+Version\s+Build)", re.IGNORECASE)
_WHEEL = re.compile(r"([A-Za-z0-9_.]+?)-([0-9][\w.+!]*?)-(?:\d+-)?[a-z]{2}\d")
_GIB = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(?:GIB|GB|G)?$", re.IGNORECASE)
_FULL_FREEZE = 60


def read_stack(given: str) -> Stack:
    """The stack a file holds, or an image reference names, or (``auto``) this host has.

    Raises :class:`UsageError` for what cannot be read as one.
    """
    if given == "auto":
        from ascend_compat.stack.host import scan_host

        return scan_host()
    path = Path(given)
    try:
        if path.is_dir():
            raise UsageError(f"{given}: a directory, not a stack file")
        if path.exists() or given == "-":
            return read_text(_text(path, given), given)
    except (OSError, ValueError) as error:
        raise UsageError(f"{given}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    stack = Stack(given)
    if _looks_like_image(given) and read_image(stack, given, Span(given, 1, 1, len(given), given)):
        return stack
    raise UsageError(f"{given}: no such file, and not an image name with a tag this tool can read")


def _text(path: Path, given: str) -> str:
    import sys

    stream = sys.stdin.buffer if given == "-" else path.open("rb")
    with stream:
        data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise UsageError(f"{given}: larger than {MAX_BYTES // 1024 // 1024} MiB, not a stack file")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    if b"\0" in data:
        raise UsageError(f"{given}: binary data, not a stack file")
    return data.decode("utf-8-sig", "replace")


def _looks_like_image(given: str) -> bool:
    return "\n" not in given and len(given) < 400 and re.search(r"(:[\w][\w.-]*|cann_)", given) is not None


def read_text(text: str, source: str) -> Stack:
    """The stack that text holds; raises :class:`UsageError` when no line of it says anything of one."""
    stack = Stack(source)
    lines = re.split(r"\r\n|\r|\n", text)
    table_lines = read_table(stack, lines, source)
    section = ""
    for number, line in enumerate(lines, 1):
        if number in table_lines or not line.strip():
            continue
        if len(line) > MAX_LINE:
            continue
        section = _section(stack, line, section)
        if not line.lstrip().startswith("#"):
            _line(stack, line.rstrip(), Span(source, number, 1, max(1, len(line.rstrip())), line.rstrip()), section)
    if len(stack.packages) >= _FULL_FREEZE:
        stack.packages_complete = True
    listed = stack.values.pop("listed", None)
    stack.packages_complete |= listed is not None and "packages" in listed.value
    stack.env_complete = "PATH" in stack.env or (listed is not None and "env" in listed.value)
    if not stack.values and not stack.packages and not stack.env and not stack.absent:
        raise UsageError(f"{source}: holds no version, package, variable or npu-smi table that this tool knows")
    image = stack.values.get("container_image")
    if image is not None:
        read_image(stack, image.value, image.span)
    return stack


def _section(stack: Stack, line: str, section: str) -> str:
    """``columns`` below the head of a pip or conda list; such a list names every package there is."""
    if _PIP_HEAD.match(line) or _CONDA_HEAD.match(line):
        stack.packages_complete = True
        return "columns"
    if _LISTING.match(line.strip()):
        stack.pip_listing = True
    return section


def _line(stack: Stack, line: str, span: Span, section: str) -> None:
    body = re.sub(r"^\s*(?:pip|conda)\s*:\s+", "", line)
    env = _ENV_LINE.match(body)
    if env and "==" not in body.split("=", 1)[0] + "=" + env.group(2)[:1]:
        stack.env[env.group(1)] = Stated(env.group(2).strip().strip("\"'"), span)
        return
    for pattern in (_PINNED, _AT, _EDITABLE):
        found = pattern.match(body)
        if found:
            _package(stack, found.groups(), span)
            return
    stated = _WORD_LINE.match(body)
    if stated:
        word = re.sub(r"[ .-]+", "_", stated.group(1)).lower()
        name = _KEY.get(word)
        if name is not None:
            stack.state(name, _value(name, stated.group(2)), span)
            return
        if word in _PACKAGE_KEYS and re.search(r"\d\.\d", stated.group(2)):
            stack.packages[_PACKAGE_KEYS[word]] = Stated(_value(word, stated.group(2)), span)
            return
    columns = _COLUMNS.match(body) if section == "columns" else None
    if columns:
        stack.packages[package_name(columns.group(1))] = Stated(columns.group(2), span)
        if package_name(columns.group(1)) == "python":
            stack.state("python", columns.group(2), span)


def _package(stack: Stack, groups: tuple[str, ...], span: Span) -> None:
    if len(groups) == 1:
        egg = re.search(r"[#&]egg=([\w.-]+)", groups[0])
        if egg:
            stack.packages.setdefault(package_name(egg.group(1)), Stated("unknown", span))
        return
    name, version = groups
    if "/" in version or ":" in version:
        wheel = _WHEEL.match(version.rsplit("/", 1)[-1].replace("%2B", "+"))
        version = wheel.group(2) if wheel else "unknown"
    stack.packages[package_name(name)] = Stated(version, span)


def _value(name: str, text: str) -> str:
    text = text.split(" #", 1)[0].strip().strip("\"'")
    if name == "npu_memory_gib":
        found = _GIB.match(text)
        return found.group(1) if found else ""
    if name in ("npu_count", "nodes"):
        return text if text.isascii() and text.isdigit() and len(text) < 8 else ""
    return text
