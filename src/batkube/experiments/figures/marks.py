"""Colour, marker, dashes and hatch of each series of a chart, the same in every panel.

Colours look alike when printed in grey, so consecutive series never differ by colour alone.
"""

from __future__ import annotations

from typing import NamedTuple

from batkube.experiments.figures.chart_data import Chart
from batkube.outputs.charts.series_marks import Dashes, series_mark
from batkube.outputs.pages.colours import LIGHT

_PUBLISHED_DASHES: Dashes = (0.0, (3.5, 1.6))
_PUBLISHED_HATCH = "\\\\\\\\"
_LEVEL_DASHES: tuple[Dashes, ...] = ((0.0, (1.2, 1.6)), (0.0, (5.0, 1.5, 1.2, 1.5)), (0.0, (8.0, 3.0)))


class Mark(NamedTuple):
    """Appearance of one series."""

    colour: str
    marker: str
    dashes: Dashes
    #: Drawn with open markers: published data.
    is_hollow: bool = False
    hatch: str | None = None


def marks_of(chart: Chart) -> dict[str, Mark]:
    """Return a mark for every series and level of a chart."""
    theoretical = [level.label for panel in chart.panels for level in panel.levels if level.sample is None]
    published = [series.label for panel in chart.panels for series in panel.series if series.is_published]
    published += [level.label for panel in chart.panels for level in panel.levels if level.is_published]
    series_labels = [series.label for panel in chart.panels for series in panel.series]
    marks: dict[str, Mark] = {}
    coloured = [label for label in chart.labels if label not in theoretical]
    for number, label in enumerate(coloured):
        mark = series_mark(number)
        marker = mark.marker if label in series_labels else ""
        if label in published:
            marks[label] = Mark(mark.colour, marker, _PUBLISHED_DASHES, is_hollow=True, hatch=_PUBLISHED_HATCH)
        else:
            marks[label] = Mark(mark.colour, marker, mark.dashes, hatch=mark.hatch)
    for number, label in enumerate(dict.fromkeys(theoretical)):
        marks[label] = Mark(LIGHT["quiet"], "", _LEVEL_DASHES[number % len(_LEVEL_DASHES)])
    return marks
