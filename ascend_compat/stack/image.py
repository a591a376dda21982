"""What a container image's name says: its tag carries CANN, Python, the chip it was built for, a framework's version."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ascend_compat.stack.model import Stack, Stated, package_name
from ascend_compat.stack.versions import cann_name

if TYPE_CHECKING:
    from ascend_compat.jobs.model import Span

_CANN_TAG = re.compile(
    r"(?:^|[-_])(?:cann[-_]?)?(\d\.\d\.(?:\d+|rc\d+)(?:\.\d+)?(?:\.?(?:alpha|beta)\.?\d+)?)(?=[-_]|$)", re.IGNORECASE
)
_CANN_NAMED = re.compile(r"cann[-_:]?v?(\d+\.\d+\.?[a-z0-9.]*)", re.IGNORECASE)
_PYTHON = re.compile(r"(?:^|[-_])py(?:thon)?_?(\d\.?\d{1,2})(?=[-_.]|$)", re.IGNORECASE)
_TORCH = re.compile(r"(?:pytorch|torch)[-_](\d+\.\d+(?:\.\d+)?)", re.IGNORECASE)
_ARCHITECTURE = re.compile(r"(aarch64|arm64|x86_64|amd64)", re.IGNORECASE)
_LEADING = re.compile(r"v?(\d+\.\d+(?:\.\d+)?(?:\.?(?:rc|post|dev|alpha|beta)\.?\d+)*)(?=[-_+]|$)", re.IGNORECASE)
# chip words of image tags, longest first; a tag of these images without one is built for A2
_CHIP = re.compile(r"(?:^|[-_.:])(snt9b23|snt9b|910b|a2|a3|910c|910_93|310p|310b|950|a5)(?=[-_.]|$)", re.IGNORECASE)
_FAMILY = {
    "snt9b23": "A3", "snt9b": "A2", "910b": "A2", "a2": "A2", "a3": "A3", "910c": "A3", "910_93": "A3",
    "310p": "310P", "310b": "310B", "950": "950", "a5": "950",
}  # fmt: skip
# image name -> package that its leading version is of
_PACKAGES = {"vllm-ascend": "vllm-ascend", "llamafactory": "llamafactory", "verl": "verl"}


def read_image(stack: Stack, reference: str, span: Span | None) -> bool:
    """Add what an image reference says, where the stack does not say it itself; False when it says nothing."""
    name, tag = _split(reference)
    facts: dict[str, str] = {}
    chip = _CHIP.search(tag) or _CHIP.search(name.rsplit("/", 1)[-1])
    base = name.rsplit("/", 1)[-1].lower()
    if chip:
        facts["image_chip"] = _FAMILY[chip.group(1).lower()]
    elif base == "vllm-ascend" and _LEADING.match(tag):
        facts["image_chip"] = "A2"
    cann = _CANN_NAMED.search(tag) or (
        _CANN_TAG.search(tag) if base in ("cann", "ascend-cann") or "910b" in tag else None
    )
    if cann:
        facts["cann"] = cann_name(cann.group(1).rstrip("."))
    python = _PYTHON.search(tag)
    if python:
        digits = python.group(1)
        facts["python"] = digits if "." in digits else f"{digits[0]}.{digits[1:]}"
    architecture = _ARCHITECTURE.search(tag)
    if architecture:
        facts["architecture"] = architecture.group(1).lower()
    for key, value in facts.items():
        if key not in stack.values:
            stack.state(key, value, span)
    torch = _TORCH.search(tag)
    versions = {"torch": torch.group(1)} if torch else {}
    package = _PACKAGES.get(base)
    leading = _LEADING.match(tag)
    if package and leading and not cann:
        versions[package] = leading.group(1)
    for key, value in versions.items():
        stack.packages.setdefault(package_name(key), Stated(value, span))
    if facts or versions:
        stack.values.setdefault("container_image", Stated(reference, span))
    return bool(facts or versions)


def _split(reference: str) -> tuple[str, str]:
    """Name and tag; a bare tag (``pytorch_2.5.1-cann_8.2.rc1-…``) has no name."""
    body = reference.strip().split("@", 1)[0]
    name, colon, tag = body.rpartition(":")
    if colon and "/" not in tag:
        return name, tag
    return ("", body) if "/" not in body else (body, "")
