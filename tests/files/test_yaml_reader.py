"""YAML input files."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from batkube.files.yaml_reader import read_yaml
from batkube.kernel.errors import InputError


def written(folder: Path, text: str) -> Path:
    path = folder / "file.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("base: {a: 1}\naxes: {}\nbase: {a: 2}\n", "line 3: the key 'base' is given twice"),
        ("base:\n  seed: 1\n  seed: 2\n", "line 3: the key 'seed' is given twice"),
        ('- {a: 1, "a": 2}\n', "line 1: the key 'a' is given twice"),
    ],
)
def test_a_duplicate_key_is_rejected_with_its_line(tmp_path: Path, text: str, place: str) -> None:
    with pytest.raises(InputError) as refused:
        read_yaml(written(tmp_path, text))

    assert str(refused.value).startswith(f"{tmp_path / 'file.yaml'}: {place}")


def test_merged_keys_may_be_overridden(tmp_path: Path) -> None:
    text = "one: &one {a: 1, b: 1}\ntwo: &two {<<: *one, a: 2}\nthree: {<<: *two, a: 3}\n"

    content = read_yaml(written(tmp_path, text))

    assert content == {"one": {"a": 1, "b": 1}, "two": {"a": 2, "b": 1}, "three": {"a": 3, "b": 1}}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters(codec="ascii")),
    lambda children: st.lists(children) | st.dictionaries(st.text("abc", max_size=3), children),
    max_leaves=20,
)


@given(VALUES, st.sampled_from([None, True, False]))
def test_a_file_is_read_as_by_pyyaml(
    tmp_path_factory: pytest.TempPathFactory, value: object, flow_style: bool | None
) -> None:
    text = yaml.safe_dump(value, default_flow_style=flow_style)

    content = read_yaml(written(tmp_path_factory.getbasetemp(), text))

    assert content == yaml.load(text, yaml.SafeLoader) == value
