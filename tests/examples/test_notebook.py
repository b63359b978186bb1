"""The example notebook runs as Jupyter runs it, without a display, and shows the results that its text states."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from expected import EXAMPLES

nbformat = pytest.importorskip("nbformat", reason="needs pip install 'batkube[notebook]'")
nbclient = pytest.importorskip("nbclient", reason="needs pip install 'batkube[notebook]'")

NOTEBOOK = EXAMPLES / "notebook" / "own-policy.ipynb"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The last output of each code cell, by MIME type."""
    folder = tmp_path_factory.mktemp("notebook")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(folder)}}).execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [next((output.data for output in reversed(cell.outputs) if "data" in output), {}) for cell in cells]


def test_runs_comparisons_and_experiments_have_html_representations(shown: list[dict[str, Any]]) -> None:
    _, run, frame, gantt, comparison, _, study, report = shown

    assert "NarrowestFirst: 200 jobs on 16 machines" in run["text/html"]
    assert "mean wait" in run["text/html"]
    assert "<table" in frame["text/html"]
    assert len(gantt["image/png"]) > 10_000
    assert "mean bounded slowdown" in comparison["text/html"]
    assert study["text/html"].count("<tr") == 1 + 3 * 3
    assert "report.html" in report["text/plain"]


def test_the_notebook_is_kept_without_outputs() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in notebook.cells)
    assert Path(NOTEBOOK).stat().st_size < 10_000
