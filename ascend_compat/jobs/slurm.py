"""``#SBATCH`` lines and ``srun`` options: the nodes and devices a cluster is asked for."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ascend_compat.jobs.bash_state import Variable
from ascend_compat.jobs.model import Setting, Span
from ascend_compat.jobs.shell_text import Piece, Source

_LINE = re.compile(r"^[ \t]*#SBATCH[ \t]+(.*)$", re.MULTILINE)
_OPTION = re.compile(r"(--[A-Za-z][\w-]*|-[A-Za-z])(?:=|[ \t]*)(\"[^\"]*\"|'[^']*'|[^\s#]*)")
_SHORT = {
    "-N": "--nodes",
    "-n": "--ntasks",
    "-c": "--cpus-per-task",
    "-G": "--gpus",
    "-J": "--job-name",
    "-p": "--partition",
    "-t": "--time",
    "-w": "--nodelist",
}
_DEVICES = frozenset(("--gres", "--gpus-per-node"))
_COUNT = re.compile(r"(?:[\w-]+:)*(\d+)$")
_VARIABLES = {
    "--nodes": ("SLURM_NNODES", "SLURM_JOB_NUM_NODES"),
    "--ntasks": ("SLURM_NTASKS", "SLURM_NPROCS"),
    "--ntasks-per-node": ("SLURM_NTASKS_PER_NODE",),
    "--cpus-per-task": ("SLURM_CPUS_PER_TASK",),
    "--job-name": ("SLURM_JOB_NAME",),
}


@dataclass(slots=True)
class Header:
    """What the ``#SBATCH`` lines ask for, and the variables that the cluster sets from them."""

    settings: list[Setting] = field(default_factory=list)
    variables: dict[str, Variable] = field(default_factory=dict)


def slurm(source: Source) -> Header:
    """Reads the ``#SBATCH`` lines of a script."""
    header = Header()
    if "#SBATCH" not in source.text:
        return header
    for line in _LINE.finditer(source.text):
        for option in _OPTION.finditer(source.text, line.start(1), line.end(1)):
            name, value = long_name(option.group(1)), option.group(2).strip("\"'")
            at = option.start(2) if value else option.start(1)
            length = len(option.group(2)) or len(option.group(1))
            header.settings += settings(name, value or True, source.span(at, length))
            _variables(header, name, Piece(value, source, at, length))
    return header


def _variables(header: Header, name: str, piece: Piece) -> None:
    for variable in _VARIABLES.get(name, ()):
        if name != "--nodes" or piece.text.isdigit():
            header.variables[variable] = (piece,)
    if name in _DEVICES:
        count = devices(piece.text)
        if count is not None:
            header.variables["SLURM_GPUS_ON_NODE"] = (Piece(str(count), piece.source, piece.at, piece.size),)


def long_name(option: str) -> str:
    """The long form of a Slurm option."""
    return _SHORT.get(option, option)


def devices(text: str) -> int | None:
    """The number of devices of one node in ``npu:8``, ``gpu:ascend910b:8``, ``npu:4,shard:1`` or ``8``."""
    for part in text.split(","):
        match = _COUNT.match(part.split("(")[0])
        if match is not None:
            return int(match.group(1))
    return None


def settings(name: str, value: str | bool, span: Span) -> list[Setting]:
    """The settings of one option, with the devices of a node where it states them."""
    found = [Setting(f"slurm:{name}", value, span)]
    if name in _DEVICES and isinstance(value, str):
        count = devices(value)
        if count is not None:
            found.append(Setting("slurm:devices_per_node", count, span))
    return found
