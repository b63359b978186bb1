"""What all parts of a figure share while it is drawn."""

from __future__ import annotations

from dataclasses import dataclass

from batkube.experiments.figures.chart_data import Chart
from batkube.experiments.figures.layout import FigureLayout
from batkube.experiments.figures.marks import Mark
from batkube.outputs.charts.labels import FigureLabels
from batkube.outputs.charts.series_marks import curve_markers


@dataclass(frozen=True, slots=True)
class FigurePlan:
    """A chart with its layout, the marks of its series and the texts of its names."""

    chart: Chart
    marks: dict[str, Mark]
    labels: FigureLabels
    layout: FigureLayout

    def curve_markers(self, name: str) -> tuple[str, tuple[float, float]]:
        """Return the marker of a curve of many points, and where it is repeated."""
        names = self.chart.labels
        return curve_markers(names.index(name), len(names))
