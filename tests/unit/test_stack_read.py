"""Stack files that users already have, each read into the same facts."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from ascend_compat.errors import UsageError
from ascend_compat.stack.read import read_stack, read_text

OWN = """npu_type: Ascend910B3
npu_memory_gib: 64
npu_count: 8
nodes: 2
cann: 8.3.rc1
nnal: 8.3.RC1
driver: 24.1.rc2
python: 3.11.9
os_arch: arm64
# pip freeze
torch==2.7.1
torch-npu==2.7.1.post2  # a remark
"""


def test_our_own_text() -> None:
    facts = read_text(OWN, "s.txt").facts()
    assert facts["chip"] == "Ascend910B3"
    assert (facts["host_devices"], facts["host_nodes"], facts["device_memory_gib"]) == (8, 2, 64.0)
    assert (facts["cann_version"], facts["nnal_version"], facts["architecture"]) == ("8.3.RC1", "8.3.RC1", "aarch64")
    assert (facts["torch_version"], facts["torch_npu_version"]) == ("2.7.1", "2.7.1.post2")
    assert "vllm_ascend_installed" not in facts  # an excerpt does not say what is absent
    span = facts.spans["torch_npu_version"]
    assert span is not None and (span.file, span.line) == ("s.txt", 12)
    assert facts.spans["chip"].line == 1  # type: ignore[union-attr]


def test_pip_freeze_with_addresses_and_editable_installs() -> None:
    text = """accelerate==1.7.0
torch @ https://example.com/whl/cpu/torch-2.5.1%2Bcpu-cp311-cp311-linux_x86_64.whl
torch_npu @ file:///builds/torch_npu-2.5.1.post1-cp311-cp311-linux_aarch64.whl#sha256=0
-e git+https://example.com/LLaMA-Factory.git@abc#egg=llamafactory
ray[default]==2.46.0
"""
    facts = read_text(text, "x").facts()
    assert facts["torch_version"] == "2.5.1+cpu" and facts["torch_release"] == "2.5.1"
    assert facts["torch_npu_version"] == "2.5.1.post1"
    assert facts["ray_version"] == "2.46.0"
    assert "llamafactory_version" not in facts  # installed, its version unknown


def test_pip_list_names_every_package() -> None:
    text = "Package      Version     Editable project location\n------------ ----------- ---\ntorch        2.5.1\nnumpy        2.0.0\nverl         0.7.0   /somewhere/verl\n"
    facts = read_text(text, "x").facts()
    assert (facts["torch_version"], facts["numpy_version"], facts["verl_version"]) == ("2.5.1", "2.0.0", "0.7.0")
    assert facts["torch_npu_installed"] is False


def test_conda_list() -> None:
    text = """# packages in environment at /opt/conda/envs/x:
#
# Name                    Version                   Build  Channel
python                    3.10.14              h955ad1f_1
torch                     2.1.0                    pypi_0    pypi
torch-npu                 2.1.0.post6              pypi_0    pypi
"""
    facts = read_text(text, "x").facts()
    assert (facts["python_version"], facts["torch_npu_version"]) == ("3.10.14", "2.1.0.post6")
    assert facts["vllm_ascend_installed"] is False


def test_env_listing_makes_absent_variables_known() -> None:
    plain = "PATH=/usr/bin\nLD_LIBRARY_PATH=\nASCEND_RT_VISIBLE_DEVICES=0,1\npip: torch-npu==2.5.1\n"
    facts = read_text(plain, "x").facts()
    assert (facts["toolkit_sourced"], facts["atb_sourced"], facts["torch_npu_version"]) == (False, False, "2.5.1")
    sourced = (
        "export PATH=/usr/bin\nexport ASCEND_HOME_PATH=/usr/local/Ascend/ascend-toolkit/latest\n"
        "export LD_LIBRARY_PATH=/usr/local/Ascend/nnal/atb/latest/atb/cxx_abi_1/lib:/usr/lib\nTORCH_DEVICE_BACKEND_AUTOLOAD=0\n"
    )
    facts = read_text(sourced, "x").facts()
    assert (facts["toolkit_sourced"], facts["atb_sourced"], facts["backend_autoload"]) == (True, True, False)
    by_path = "PATH=/bin\nLD_LIBRARY_PATH=/opt/Ascend/cann/lib64\n"
    assert read_text(by_path, "x").facts()["toolkit_sourced"] is True
    driver_alone = "PATH=/bin\nLD_LIBRARY_PATH=/usr/local/Ascend/driver/lib64:/usr/local/Ascend/driver/lib64/common\n"
    assert read_text(driver_alone, "x").facts()["toolkit_sourced"] is False
    assert "toolkit_sourced" not in read_text("ASCEND_RT_VISIBLE_DEVICES=0,1\n", "x").facts()


def test_visible_devices_as_written() -> None:
    for text, ids, ascending in (
        ("0,1,2", ["0", "1", "2"], True),
        ("1,0", ["1", "0"], False),
        ("0, 1", ["0"], True),
    ):
        facts = read_text(f"ASCEND_RT_VISIBLE_DEVICES={text}\n", "x").facts()
        assert (facts["visible_devices"], facts["visible_devices_ascending"]) == (ids, ascending)
        assert facts["visible_devices_text"] == text


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("quay.io/ascend/cann:8.3.rc1-910b-ubuntu22.04-py3.11", {"cann_version": "8.3.RC1", "python_version": "3.11", "image_chip_family": "A2"}),
        ("quay.io/ascend/cann:8.5.1-a3-ubuntu22.04-py3.11", {"cann_version": "8.5.1", "image_chip_family": "A3"}),
        ("quay.io/ascend/vllm-ascend:v0.11.0rc1-a3", {"vllm_ascend_version": "0.11.0rc1", "image_chip_family": "A3"}),
        ("quay.io/ascend/vllm-ascend:v0.7.3", {"vllm_ascend_version": "0.7.3", "image_chip_family": "A2"}),
        ("quay.io/ascend/vllm-ascend:v0.9.1-310p-openeuler", {"vllm_ascend_version": "0.9.1", "image_chip_family": "310P"}),
        ("quay.io/ascend/llamafactory:latest-npu-a2", {"image_chip_family": "A2"}),
        (
            "pytorch_2.5.1-cann_8.2.rc1-py_3.11-hce_2.0.2503-aarch64-snt9b23-20250729103313-3a25129",
            {"torch_version": "2.5.1", "cann_version": "8.2.RC1", "python_version": "3.11", "architecture": "aarch64", "image_chip_family": "A3"},
        ),
    ],
)  # fmt: skip
def test_image_references(image: str, expected: dict[str, str]) -> None:
    facts = read_stack(image).facts()
    assert {name: facts[name] for name in expected} == expected


def test_what_a_file_states_outweighs_what_its_image_is_called() -> None:
    facts = read_text(
        "cann: 8.5.0\ncontainer_image: quay.io/ascend/cann:8.3.rc1-910b-ubuntu22.04-py3.11\n", "x"
    ).facts()
    assert (facts["cann_version"], facts["python_version"]) == ("8.5.0", "3.11")


def test_unknown_values_are_no_statements(con: duckdb.DuckDBPyConnection) -> None:
    facts = read_text("npu_type: unknown\ncann: none\nnpu_count: many\ndriver:\npython: 3.10\n", "x").facts(con)
    assert set(facts) == {"python_version"}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "holds no version"),
        (b"model_name_or_path: x\nstage: sft\n", "holds no version"),
        (b"\x00\x01\x02" * 10, "binary data"),
        (b"x" * (4 * 1024 * 1024 + 1), "larger than"),
    ],
)
def test_files_that_are_no_stack(content: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "s.txt"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=words) as caught:
        read_stack(str(path))
    assert caught.value.exit_code == 2 and "\n" not in str(caught.value)


def test_what_is_not_there(tmp_path: Path) -> None:
    for given in (str(tmp_path / "missing.txt"), str(tmp_path), "no-such-image", "a\0b"):
        with pytest.raises(UsageError):
            read_stack(given)
