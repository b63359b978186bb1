"""The choice of a reader by the form of `--platform`."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from batkube.kernel.errors import InputError
from batkube.platforms.reader import is_file_spec, read_platform

KINDS = [".xml", ".yaml", ".yml", ".json", ".csv"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_file_is_reported(tmp_path: Path, kind: str) -> None:
    with pytest.raises(InputError, match="no such file") as error:
        read_platform(str(tmp_path / f"nowhere{kind}"))

    assert error.value.remedy


def test_a_folder_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "folder.xml").mkdir()

    with pytest.raises(InputError, match="cannot be read"):
        read_platform(str(tmp_path / "folder.xml"))


def test_a_file_named_like_a_shorthand_is_still_a_file(tmp_path: Path) -> None:
    path = tmp_path / "16x4.csv"
    path.write_text("sn,cpu_milli,memory_mib,gpu,model\na,1000,1,0,\n")

    assert read_platform(str(path)).machines[0].name == "a"


@pytest.mark.parametrize(
    ("spec", "is_file"),
    [("16x4", False), (" 2 x 1 + 3x4,1Gi", False), ("16x4.csv", True), ("a.xml", True), ("a", True)],
)
def test_everything_but_a_shorthand_is_a_path(spec: str, is_file: bool) -> None:
    assert is_file_spec(spec) is is_file


def test_text_that_is_not_utf_8_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "nodes.csv"
    path.write_bytes(b"sn,\xff")

    with pytest.raises(InputError, match="not UTF-8"):
        read_platform(str(path))


FRAGMENTS = st.sampled_from(
    [
        *("<platform>", "<zone>", "</zone>", '<host id="a"', "/>", "&a"),
        *("kind: Node", "kind: List", "metadata", "items", "\n", "{", "}", "[", "]", ":", "- ", '"', "*a", "!!int x"),
        *("sn,cpu_milli,memory_mib,gpu,model\n", "a,1,1,1,x", "9" * 5000, "²", "\x00"),
    ]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None)
@given(st.sampled_from(KINDS), st.one_of(st.binary(max_size=60), st.lists(FRAGMENTS, max_size=12).map("".join)))
def test_any_content_is_either_read_or_an_input_error(tmp_path: Path, kind: str, content: bytes | str) -> None:
    path = tmp_path / f"platform{kind}"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())

    problem = None
    try:
        platform = read_platform(str(path))
    except InputError as error:
        problem = str(error)

    assert problem is None or str(path) in problem
    assert problem or platform.machines
