"""The look over a host: with and without CANN, NPUs, torch_npu; what a probe says; what a saved file keeps."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ascend_compat.check.stack import StackChecker
from ascend_compat.errors import UsageError
from ascend_compat.stack.host import probe, scan_host
from ascend_compat.stack.read import read_text
from ascend_compat.stack.write import anonymous, stack_text

SAMPLES = Path(__file__).resolve().parent.parent / "samples" / "npu-smi"


def _distribution(folder: Path, name: str, version: str) -> None:
    made = folder / f"{name}-{version}.dist-info"
    made.mkdir(parents=True)
    (made / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


def _tool(folder: Path, text: str) -> Path:
    """An npu-smi that prints a text."""
    folder.mkdir(parents=True, exist_ok=True)
    tool = folder / "npu-smi"
    tool.write_text(f"#!/bin/sh\ncat <<'EOF'\n{text}\nEOF\n")
    tool.chmod(0o755)
    return folder


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_torch_npu_without_cann_and_npu(command: Any, tmp_path: Path) -> None:
    _distribution(tmp_path, "torch", "2.5.1+cpu")
    _distribution(tmp_path, "torch_npu", "2.5.1")
    for broken in ("torch", "torch_npu"):
        _write(tmp_path / broken / "__init__.py", "raise ImportError('libhccl.so: cannot open shared object file')\n")
    root = Path(__file__).resolve().parents[2]
    seen = command("doctor", PYTHONPATH=f"{root}:{tmp_path}", ASCEND_HOME_PATH="", ASCEND_TOOLKIT_HOME="")
    assert seen.returncode == 1
    assert len(seen.stdout.splitlines()) <= 24
    assert "torch-npu 2.5.1 is installed but no CANN toolkit" in seen.stdout
    assert "help: install the CANN toolkit 8.1.RC1" in seen.stdout
    assert "This machine has no NPU" in seen.stdout
    assert "Traceback" not in seen.stderr
    probed = command("doctor", "--probe", "--lang", "zh", PYTHONPATH=f"{root}:{tmp_path}")
    assert probed.returncode == 1
    assert "import torch 失败：ImportError: libhccl.so" in probed.stdout and "本机看不到 NPU" in probed.stdout
    as_json = command("doctor", "--format", "json", PYTHONPATH=f"{root}:{tmp_path}")
    report = json.loads(as_json.stdout)["jobs"][0]
    assert report["verdict"] == "impossible" and report["findings"][0]["code"] == "ST-NO-CANN"


def test_a_plain_machine_is_told_plainly(command: Any) -> None:
    seen = command("doctor")
    assert seen.returncode == 0
    assert "This machine has no NPU" in seen.stdout and "not installed" in seen.stdout


LAYOUTS = {
    "8.x toolkit": ("usr/local/Ascend/ascend-toolkit/latest/aarch64-linux/ascend_toolkit_install.info", "package_name=Ascend-cann-toolkit\nversion=8.3.RC1\ninnerversion=V100R001\n"),
    "8.x version.cfg": ("usr/local/Ascend/ascend-toolkit/latest/version.cfg", "# version: 1.0\nruntime_running_version=[7.5.0.1.129:8.3.RC1]\n"),
    "9.x": ("usr/local/Ascend/cann/share/info/runtime/version.info", "Version=8.3.RC1\n"),
    "component": ("usr/local/Ascend/latest/compiler/version.info", "Version=8.3.RC1\nversion_dir=8.3.RC1\n"),
}  # fmt: skip


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_cann_is_found_in_old_and_new_layouts(layout: str, tmp_path: Path) -> None:
    path, text = LAYOUTS[layout]
    _write(tmp_path / path, text)
    assert scan_host(root=tmp_path, environment={}).value("cann") == "8.3.RC1"


def test_a_prepared_host(tmp_path: Path, con: duckdb.DuckDBPyConnection) -> None:
    toolkit = tmp_path / "opt/cann"
    _write(toolkit / "version.cfg", "toolkit_running_version=[7.8.0:8.5.0]\n")
    (toolkit / "opp/built-in/op_impl/ai_core/tbe/kernel/ascend910b").mkdir(parents=True)
    _write(
        tmp_path / "usr/local/Ascend/nnal/atb/latest/version.info", "Ascend-cann-atb Version : 8.5.0\nversion: 8.5.0\n"
    )
    _write(tmp_path / "usr/local/Ascend/driver/version.info", "Version=25.5.0\nascendhal_version=7.35.23\n")
    _write(tmp_path / "usr/local/Ascend/firmware/version.info", "Version=7.8.0.5.216\n")
    for number in range(8):
        _write(tmp_path / f"dev/davinci{number}", "")
    _write(tmp_path / "dev/davinci_manager", "")
    tools = _tool(tmp_path / "bin", (SAMPLES / "a2-8.txt").read_text())
    environment = {
        "PATH": f"{tools}:/usr/bin:/bin",
        "ASCEND_HOME_PATH": str(toolkit),
        "LD_LIBRARY_PATH": "/usr/local/Ascend/driver/lib64",
        "ATB_HOME_PATH": "",
        "ASCEND_RT_VISIBLE_DEVICES": "1,0",
        "SECRET_TOKEN": "x",
    }
    stack = scan_host(root=tmp_path, environment=environment)
    facts = stack.facts(con)
    assert (facts["cann_version"], facts["nnal_version"], facts["firmware_version"]) == (
        "8.5.0",
        "8.5.0",
        "7.8.0.5.216",
    )
    assert (facts["chip"], facts["host_devices"], facts["device_memory_gib"]) == ("Ascend910B3", 8, 64.0)
    assert (facts["kernels_chip"], facts["toolkit_sourced"], facts["cann_installed"]) == ("910b", True, True)
    assert "SECRET_TOKEN" not in stack.env
    report = StackChecker(con, today="2026-05").report(stack)
    assert [finding.code for finding in report.findings if finding.severity != "note"] == ["ST-VISIBLE-ORDER"]
    again = read_text(stack_text(stack), "saved").facts(con)
    assert dict(again) == dict(facts)


def test_kernels_of_another_chip_are_found_on_a_host(tmp_path: Path, con: duckdb.DuckDBPyConnection) -> None:
    (tmp_path / "usr/local/Ascend/cann/opp/built-in/op_impl/ai_core/tbe/kernel/ascend910_93").mkdir(parents=True)
    _write(tmp_path / "usr/local/Ascend/cann/version.info", "Version=9.0.0\n")
    tools = _tool(tmp_path / "bin", (SAMPLES / "a2-8.txt").read_text())
    stack = scan_host(root=tmp_path, environment={"PATH": f"{tools}:/usr/bin:/bin"})
    codes = [finding.code for finding in StackChecker(con, today="2026-05").report(stack).findings]
    assert "ST-KERNELS" in codes


def test_an_npu_smi_that_fails_is_a_warning(tmp_path: Path, con: duckdb.DuckDBPyConnection) -> None:
    tools = _tool(tmp_path / "bin", "DrvMngGetConsoleLogLevel failed")
    _write(tmp_path / "dev/davinci0", "")
    stack = scan_host(root=tmp_path, environment={"PATH": f"{tools}:/usr/bin:/bin"})
    findings = {finding.code: finding for finding in StackChecker(con, today="2026-05").report(stack).findings}
    assert "DrvMngGetConsoleLogLevel failed" in findings["AC3002"].message.en
    assert stack.value("npu_count") == "1"


def test_another_interpreter_is_asked(tmp_path: Path) -> None:
    stack = scan_host(python=sys.executable, root=tmp_path, environment={})
    assert stack.version("pytest") and stack.packages_complete
    for wrong in (str(tmp_path / "no-python"), "/bin/true"):
        with pytest.raises(UsageError, match="not a Python"):
            scan_host(python=wrong, root=tmp_path, environment={})


def test_a_probe_is_stopped_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write(tmp_path / "torch.py", "import time\ntime.sleep(60)\n")
    _write(tmp_path / "torch_npu.py", "raise RuntimeError('never reached')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    results = probe(seconds=1)
    assert results[0] == ("torch", "no answer in 1 s", None)


def test_a_probe_counts_devices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, con: duckdb.DuckDBPyConnection
) -> None:
    from ascend_compat.check.stack import probe_findings

    _write(tmp_path / "torch.py", "class npu:\n    @staticmethod\n    def device_count():\n        return 8\n")
    _write(tmp_path / "torch_npu.py", "")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    results = probe(seconds=60)
    assert results == [("torch", None, 0), ("torch_npu", None, 8)]
    findings = probe_findings(StackChecker(con), results)
    assert [finding.code for finding in findings] == ["AC3007", "AC3007"]


def test_a_saved_file_names_no_user_and_no_host(command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    home = tmp_path / "home" / "zhangsan"
    home.mkdir(parents=True)
    path = tmp_path / "saved.txt"
    seen = command(
        "doctor", "--save", str(path), HOME=str(home), USER="zhangsan",
        LD_LIBRARY_PATH=f"{home}/Ascend/cann/lib64:/shared/zhangsan/lib", ASCEND_HOSTNAME=socket.gethostname(),
    )  # fmt: skip
    assert seen.returncode == 0, seen.stderr
    text = path.read_text()
    assert "zhangsan" not in text and "LD_LIBRARY_PATH=~/Ascend/cann/lib64:/shared/USER/lib" in text
    assert f"={socket.gethostname()}\n" not in text
    assert command("stack", "check", str(path)).returncode == 0
    refused = command("doctor", "--save", str(tmp_path / "no" / "folder.txt"))
    assert refused.returncode == 2 and "cannot be written" in refused.stderr
    monkeypatch.setenv("USER", "li")
    assert (
        anonymous("ATB_HOME_PATH=/lib/li/x") == "ATB_HOME_PATH=/lib/USER/x"
    )  # a whole part of a path, not a piece of one
