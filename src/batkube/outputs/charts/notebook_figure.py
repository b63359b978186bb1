"""Figures that notebooks show by themselves.

Jupyter shows matplotlib's figures once pyplot is in charge, and ours are made without it: so they bring their picture
along.
"""

from __future__ import annotations

import io

from matplotlib.figure import Figure

from batkube.outputs.charts.style import house_style

#: Wide enough for a notebook's column, in which pictures are shown by their pixels.
_DPI = 80


class NotebookFigure(Figure):
    """A figure of matplotlib's that IPython can display without %matplotlib."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        with house_style():
            self.savefig(buffer, format="png", dpi=_DPI)
        return buffer.getvalue()
