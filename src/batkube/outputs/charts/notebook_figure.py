"""Figures that notebooks display without pyplot.

Jupyter displays matplotlib figures that pyplot manages. Ours are made without pyplot, so they render their own PNG.
"""

from __future__ import annotations

import io

from matplotlib.figure import Figure

from batkube.outputs.charts.style import house_style

#: Notebooks do not scale images; at this resolution, a figure fits the column.
_DPI = 80


class NotebookFigure(Figure):
    """A matplotlib figure that IPython can display without `%matplotlib`."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        with house_style():
            self.savefig(buffer, format="png", dpi=_DPI)
        return buffer.getvalue()
