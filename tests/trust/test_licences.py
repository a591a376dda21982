"""What the package depends on at run time: permissive licences, and a wheel for aarch64 of every pin."""

from __future__ import annotations

import importlib.metadata as metadata
import re
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from trust_inputs import ROOT

PERMISSIVE = re.compile(
    r"\b(MIT|BSD|Apache|PSF|PSF-2\.0|ISC|0BSD|Unlicense|Python Software Foundation)\b", re.IGNORECASE
)
COPYLEFT = re.compile(r"\b(A?GPL|LGPL|MPL|EUPL|CDDL|EPL|SSPL|BUSL|General Public|Mozilla Public)\b", re.IGNORECASE)
BASE = ("click", "duckdb", "jsonschema", "polars", "pyyaml", "tree-sitter", "tree-sitter-bash")


def base_dependencies() -> list[str]:
    """Every distribution that an installation without extras brings, whatever brings it."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    listed = re.search(r"^dependencies = \[\n(.*?)^\]", text, re.MULTILINE | re.DOTALL)
    assert listed
    waiting = [Requirement(name).name for name in re.findall(r'"([^"]+)"', listed.group(1))]
    assert tuple(sorted(map(canonicalize_name, waiting))) == BASE
    found: dict[str, None] = {}
    while waiting:
        name = canonicalize_name(waiting.pop())
        if name in found:
            continue
        found[name] = None
        for line in metadata.requires(name) or ():
            needed = Requirement(line)
            if needed.marker is None or Marker(str(needed.marker)).evaluate({"extra": ""}):
                waiting.append(needed.name)
    return sorted(found)


def licence(name: str) -> str:
    """What a distribution's metadata says of its licence: the expression, else the classifiers, else the field."""
    about = metadata.metadata(name)
    classifiers = [
        line.rpartition(" :: ")[2] for line in about.get_all("Classifier", []) if line.startswith("License ::")
    ]
    said = about.get("License-Expression") or "; ".join(classifiers) or (about.get("License") or "").split("\n")[0]
    return " ".join(said.split())


def test_every_base_dependency_is_permissive() -> None:
    names = base_dependencies()
    assert set(BASE) < set(names)
    assert len(names) >= 12
    for name in names:
        said = licence(name)
        assert PERMISSIVE.search(said), f"{name}: {said!r}"
        assert not COPYLEFT.search(said), f"{name}: {said!r}"


def test_the_list_of_licences_is_that_of_the_metadata() -> None:
    """``docs/licences.md`` names each with its licence, and nothing else."""
    page = (ROOT / "docs" / "licences.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| ([a-z0-9-]+) \| ([^|]+) \|", page, re.MULTILINE))
    assert rows.pop("package").strip() == "licence"
    assert rows == {name: licence(name) for name in base_dependencies()}


def pins() -> list[str]:
    """The pins of the constraints file for Python 3.11, base dependencies only."""
    held = set(base_dependencies())
    found = []
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        pin = Requirement(line)
        if canonicalize_name(pin.name) in held and (
            pin.marker is None or pin.marker.evaluate({"python_version": "3.11"})
        ):
            found.append(f"{pin.name}{pin.specifier}")
    return found


def test_every_base_dependency_is_pinned() -> None:
    assert {canonicalize_name(Requirement(pin).name) for pin in pins()} == set(base_dependencies())


def test_every_pin_has_a_wheel_for_aarch64(tmp_path: Path) -> None:
    """Asks the package index, and so is skipped where there is none."""
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "--no-input",
        "--retries",
        "0",
        "--timeout",
        "10",
    ]
    asked = pins()
    probe = subprocess.run([*pip, "index", "versions", "click"], capture_output=True, text=True, check=False)
    if probe.returncode != 0:
        pytest.skip("the package index cannot be reached from here, so wheels for aarch64 were not looked for")
    platforms = [
        option for tag in ("manylinux_2_28_aarch64", "manylinux2014_aarch64") for option in ("--platform", tag)
    ]
    run = subprocess.run(
        [*pip, "install", "--dry-run", "--ignore-installed", "--no-deps", "--only-binary=:all:", "--python-version", "3.11",
         "--implementation", "cp", "--target", str(tmp_path), *platforms, *asked],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-2000:]
    said = canonicalize_name(run.stdout.rpartition("Would install")[2])
    for name in base_dependencies():
        assert f" {name}-" in said, name
    assert not list(tmp_path.iterdir())
