"""`batkube cite`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.commands import run_in_process


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("cite", "absent"), "absent: is not the output of a simulated run"),
        (("cite", "--bibtex", "absent"), "--bibtex: cannot be combined"),
    ],
)
def test_invalid_arguments_are_rejected(tmp_path: Path, arguments: tuple[str, ...], problem: str) -> None:
    result = run_in_process(tmp_path, *arguments)

    assert (result.returncode, problem in result.stderr) == (2, True), result.stderr
