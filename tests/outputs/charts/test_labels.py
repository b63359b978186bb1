"""Texts for names in figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from batkube.kernel.errors import InputError
from batkube.outputs.charts.labels import FigureLabels, read_labels

LONG = "kube-scheduler@1.34.4 with the configuration of the department"


def test_a_text_that_is_set_is_never_cut_and_other_names_are_reported() -> None:
    labels = FigureLabels({LONG: "a text of more than twenty characters", "never drawn": "x"})

    assert labels.text(LONG) == "a text of more than twenty characters"
    assert labels.text("fcfs") == "fcfs"
    assert labels.text("0123456789 abcdefghijk", 20) == "0123456789 abcdefgh…"
    assert labels.cut_names == ["0123456789 abcdefghijk"]
    assert labels.unused_names == ["never drawn"]


def test_parts_and_signs_of_composed_names_keep_their_place() -> None:
    labels = FigureLabels({"policy:easy": "EASY"})

    assert labels.text("policy:easy ✗") == "EASY ✗"
    assert labels.text("policy:easy, exact") == "EASY, exact"
    assert labels.unused_names == []


def test_a_name_is_on_one_line_without_control_characters() -> None:
    assert FigureLabels().text("two\nlines\x1b") == "two lines\ufffd"


@pytest.mark.parametrize("content", ["- a", "", "a: 1", "1: one", "a: ''", "a: [b]"])
def test_files_of_anything_but_names_and_texts_are_rejected(content: str, tmp_path: Path) -> None:
    file = tmp_path / "labels.yaml"
    file.write_text(content)

    with pytest.raises(InputError, match=r"not a mapping of names to texts|is not a text for a name"):
        read_labels(file)
