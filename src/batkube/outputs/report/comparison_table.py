"""A comparison of runs as a table for a paper."""

from __future__ import annotations

from batkube.outputs.measures.comparisons.comparability import not_comparable
from batkube.outputs.measures.comparisons.run_comparison import Comparison
from batkube.outputs.pages.latex import LATEX_SIGNS, escape, footnote, math_number, tabular


def comparison_latex(comparison: Comparison) -> str:
    """Return the metrics as LaTeX: a row per metric that any run has, a column per run; warnings are comments."""
    signs = [comparability.sign for comparability in comparison.comparability]
    heads = ["", "", *(escape(label) + LATEX_SIGNS[sign] for label, sign in zip(comparison.labels, signs, strict=True))]
    rows = []
    for number, row in enumerate(comparison.rows[0]):
        cells = [run_rows[number] for run_rows in comparison.rows]
        if any(cell.value is not None for cell in cells):
            name = ("\\quad " if row.name.startswith(" ") else "") + escape(row.name.strip().replace("_", " "))
            rows.append([name, escape(row.unit), *(math_number(cell.text) for cell in cells)])
    remark = "\n".join(comparison.warnings)
    notes = [footnote(one.sign, one.meaning) for one in not_comparable(comparison.comparability)]
    return tabular(heads, rows, texts=2, remark=remark, notes=notes)
