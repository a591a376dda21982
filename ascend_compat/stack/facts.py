"""Facts of a stack by name: what it states, and what the tables say of its chip."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ascend_compat.stack.model import NUMBER_VALUES, TEXT_VALUES, StackFacts
from ascend_compat.stack.versions import cann_name, release_of

if TYPE_CHECKING:
    from ascend_compat.jobs.model import Span
    from ascend_compat.stack.model import Stack

# distribution -> fact; frameworks by the names their version facts have in the engine
PACKAGES = {
    "torch": "torch_version",
    "torch-npu": "torch_npu_version",
    "torchvision": "torchvision_version",
    "torchaudio": "torchaudio_version",
    "vllm": "vllm_version",
    "vllm-ascend": "vllm_ascend_version",
    "triton-ascend": "triton_ascend_version",
    "transformers": "transformers_version",
    "accelerate": "accelerate_version",
    "datasets": "datasets_version",
    "peft": "peft_version",
    "trl": "trl_version",
    "deepspeed": "deepspeed_version",
    "bitsandbytes": "bitsandbytes_version",
    "flash-attn": "flash_attn_version",
    "xformers": "xformers_version",
    "unsloth": "unsloth_version",
    "liger-kernel": "liger_kernel_version",
    "sglang": "sglang_version",
    "numpy": "numpy_version",
    "torchcodec": "torchcodec_version",
    "ray": "ray_version",
    "tensordict": "tensordict_version",
    "llamafactory": "llamafactory_version",
    "verl": "verl_version",
    "mindspeed-llm": "mindspeed_llm_version",
    "mindspeed-rl": "mindspeed_rl_version",
    "mindspeed": "mindspeed_version",
    "megatron-core": "megatron_version",
}
FRAMEWORKS = ("llamafactory", "verl", "mindspeed-llm", "mindspeed-rl")

# distribution -> fact, and the distribution beside which a listing of pip would show it
_INSTALLED = (
    ("torch", "torch_installed", None),
    ("torch-npu", "torch_npu_installed", "torch"),
    ("vllm-ascend", "vllm_ascend_installed", "vllm"),
)
# what CANN's operator compiler imports
_CANN_PYTHON = (
    "numpy", "decorator", "sympy", "cffi", "protobuf", "attrs", "pyyaml", "pathlib2", "scipy", "requests", "psutil", "absl-py",
)  # fmt: skip
_MEGATRON = ("mindspeed", "megatron-core")
_CORE = re.compile(r"core_[rv]?(\d[\w.]*)", re.IGNORECASE)
_ARCHITECTURES = {"arm64": "aarch64", "amd64": "x86_64", "x86-64": "x86_64", "x64": "x86_64"}
_TOOLKIT = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME")
_ATB = ("ATB_HOME_PATH",)
# the driver's own folder (Ascend/driver) does not count: containers mount it without a toolkit
_ASCEND_PATH = re.compile(
    r"/(?:ascend-toolkit|nnae|cann(?:-[\w.]+)?|Ascend/latest|Ascend/\d[\w.]*)(?:/|:|$)", re.IGNORECASE
)
# what the runtime takes of ASCEND_RT_VISIBLE_DEVICES: the ids before the first other character
_READ_IDS = re.compile(r"\d{1,9}(?:,\d{1,9})*")
_MINOR = re.compile(r"(\d+)\.(\d+)")


def stack_facts(stack: Stack, con: Any = None) -> StackFacts:
    """Facts of a stack; ``con`` adds the chip's generation, its memory where not stated, and whether it computes bf16."""
    values: dict[str, Any] = {}
    spans: dict[str, Span | None] = {}

    def put(name: str, value: Any, span: Span | None = None) -> None:
        if value is not None:
            values[name] = value
            spans[name] = span

    for name, fact in TEXT_VALUES.items():
        stated = stack.values.get(name)
        if stated is not None:
            put(fact, _normal(name, stated.value), stated.span)
    for name, fact in NUMBER_VALUES.items():
        stated = stack.values.get(name)
        if stated is not None:
            put(fact, float(stated.value) if name == "npu_memory_gib" else int(stated.value), stated.span)
    image_chip = stack.values.get("image_chip")
    if image_chip is not None:
        put("image_chip_family", image_chip.value, image_chip.span)
    for package, fact in PACKAGES.items():
        stated = stack.packages.get(package)
        if stated is not None and stated.value != "unknown":
            put(fact, _core(stated.value) if package in _MEGATRON else stated.value, stated.span)
    for package, fact, beside in _INSTALLED:
        stated = stack.packages.get(package)
        if stated is not None:
            put(fact, True, stated.span)
        elif stack.packages_complete:
            put(fact, False)
        elif stack.pip_listing and beside in stack.packages:
            put(fact, False, stack.packages[beside].span)
    if "cann_version" in values:
        put("cann_installed", True, spans["cann_version"])
    elif "cann" in stack.absent:
        put("cann_installed", False)
    if "torch_version" in values:
        put("torch_release", release_of(values["torch_version"]), spans["torch_version"])
    if stack.packages_complete:
        put("packages_listed", len(stack.packages))
        put("cann_python_missing", [name for name in _CANN_PYTHON if name not in stack.packages])
    _environment(stack, put)
    if con is not None:
        _chip(stack, con, values, put)
    return StackFacts(stack, values, spans)


def _core(version: str) -> str:
    """The Megatron core version of a branch name: ``0.12.1`` of ``2.3.0_core_r0.12.1`` and of ``core_v0.12.1``."""
    found = _CORE.search(version)
    return found.group(1) if found else version


def _normal(name: str, value: str) -> str:
    if name in ("cann", "nnal"):
        return cann_name(value)
    if name == "architecture":
        return _ARCHITECTURES.get(value.lower(), value.lower())
    if name == "python":
        return re.sub(r"^[^\d]*", "", value)
    if name == "chip" and re.match(r"(?:910|310|950)", value):
        return f"Ascend{value}"
    return value


def _environment(stack: Stack, put: Any) -> None:
    if not stack.env_complete:
        _visible(stack, put)
        return
    library_path = stack.env.get("LD_LIBRARY_PATH")
    listed = next(iter(stack.env.values()), None)
    anchor = library_path.span if library_path else listed.span if listed else None
    home = next((stack.env[name] for name in _TOOLKIT if name in stack.env and stack.env[name].value), None)
    on_path = library_path is not None and _ASCEND_PATH.search(library_path.value) is not None
    put("toolkit_sourced", home is not None or on_path, home.span if home else anchor)
    atb = next((stack.env[name] for name in _ATB if name in stack.env and stack.env[name].value), None)
    on_path = library_path is not None and re.search(r"/(?:atb|nnal)/", library_path.value) is not None
    put("atb_sourced", atb is not None or on_path, atb.span if atb else anchor)
    autoload = stack.env.get("TORCH_DEVICE_BACKEND_AUTOLOAD")
    put("backend_autoload", autoload.value.strip() not in ("0", "false", "False") if autoload else True)
    _visible(stack, put)


def _visible(stack: Stack, put: Any) -> None:
    stated = stack.env.get("ASCEND_RT_VISIBLE_DEVICES")
    if stated is None or not stated.value:
        return
    written = stated.value.strip()
    devices = [part.strip() for part in written.split(",")]
    read = _READ_IDS.match(written)
    put("visible_devices", read.group().split(",") if read else [], stated.span)
    put("visible_devices_text", written, stated.span)
    numbers = [int(part) for part in devices if part.isascii() and part.isdigit() and len(part) < 10]
    put("visible_devices_ascending", len(numbers) == len(devices) and numbers == sorted(set(numbers)), stated.span)


def _chip(stack: Stack, con: Any, values: dict[str, Any], put: Any) -> None:
    from ascend_compat.stack.tables import Tables

    name = values.get("chip")
    if name is None:
        return
    span = stack.values["chip"].span
    per_card = stack.value("chips_per_card")
    row = Tables(con).chip(name, int(per_card) if per_card else None, values.get("device_memory_gib"))
    if row is None:
        return
    put("chip_family", row["family"], span)
    if row["bf16"] != "unknown":
        put("has_bf16", row["bf16"] == "yes", span)
    if "device_memory_gib" not in values and row["memory_gib"] != "unknown":
        put("device_memory_gib", float(row["memory_gib"]), span)


def minor_of(python: str) -> str | None:
    """``3.10`` of ``3.10.14``."""
    found = _MINOR.match(python)
    return f"{found.group(1)}.{found.group(2)}" if found else None
