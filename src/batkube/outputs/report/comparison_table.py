"""A comparison of runs as a table for a paper."""

from __future__ import annotations

from batkube.outputs.measures.comparison import Comparison
from batkube.outputs.measures.standings import unfair
from batkube.outputs.pages.latex import SIGNS, escaped, explained, number, tabular


def comparison_latex(comparison: Comparison) -> str:
    """Return the metrics as LaTeX: a row per metric that any run has, a column per run; warnings are comments."""
    signs = [standing.sign for standing in comparison.standings]
    heads = ["", "", *(escaped(label) + SIGNS[sign] for label, sign in zip(comparison.labels, signs, strict=True))]
    rows = []
    for place, row in enumerate(comparison.rows[0]):
        cells = [rows_of[place] for rows_of in comparison.rows]
        if any(cell.value is not None for cell in cells):
            name = ("\\quad " if row.name.startswith(" ") else "") + escaped(row.name.strip().replace("_", " "))
            rows.append([name, escaped(row.unit), *(number(cell.text) for cell in cells)])
    remark = "\n".join(comparison.warnings)
    notes = [explained(one.sign, one.meaning) for one in unfair(comparison.standings)]
    return tabular(heads, rows, texts=2, remark=remark, notes=notes)
