"""A comparison of runs as a table for a paper."""

from __future__ import annotations

from batkube.outputs.measures.comparison import Comparison
from batkube.outputs.pages.latex import escaped, number, tabular


def comparison_latex(comparison: Comparison) -> str:
    """Return the metrics as LaTeX: a row per metric that any run has, a column per run; what to know is a comment."""
    heads = ["", "", *(escaped(label) + _sign(comparison, run) for run, label in enumerate(comparison.labels))]
    rows = []
    for place, row in enumerate(comparison.rows[0]):
        cells = [rows_of[place] for rows_of in comparison.rows]
        if any(cell.value is not None for cell in cells):
            name = ("\\quad " if row.name.startswith(" ") else "") + escaped(row.name.strip().replace("_", " "))
            rows.append([name, escaped(row.unit), *(number(cell.text) for cell in cells)])
    remark = "\n".join(comparison.warnings)
    return tabular(heads, rows, texts=2, remark=remark)


def _sign(comparison: Comparison, run: int) -> str:
    return "" if comparison.is_possible[run] else r"$^\dagger$"
