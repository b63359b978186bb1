"""The option --label of commands that show several runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.commands import run_in_process
from tests.outputs.measures.user_runs import simulated

from batkube.cli.options.run_labels import labels_for
from batkube.kernel.errors import InputError


def test_charts_and_comparisons_show_the_labels(tmp_path: Path) -> None:
    simulated(tmp_path, "all")
    chart = ("chart", "users", "all", "all", "-o", "u.svg", "--label", "one", "--label", "two")
    result = run_in_process(tmp_path, *chart)
    compared = run_in_process(tmp_path, "compare", "all", "all", "--label", "one", "--label", "two")
    short = run_in_process(tmp_path, "compare", "all", "all", "--label", "one")

    assert result.returncode == 0, result.stderr
    assert (tmp_path / "u.svg").stat().st_size > 5000
    assert "Jobs, against one" in compared.stdout
    assert (short.returncode, "given 1 times for 2 runs" in short.stderr) == (2, True)


def test_without_labels_runs_have_their_default_names() -> None:
    assert list(labels_for(2, None)) == list(labels_for(2, [])) == ["", ""]


@pytest.mark.parametrize(
    ("labels", "problem"),
    [
        (["a"], "is given 1 times for 2 runs"),
        (["a", "b", "c"], "is given 3 times for 2 runs"),
        (["a", "a"], "is empty or given twice"),
        (["a", ""], "is empty or given twice"),
    ],
)
def test_labels_must_be_as_many_as_runs_and_different(labels: list[str], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        labels_for(2, labels)
