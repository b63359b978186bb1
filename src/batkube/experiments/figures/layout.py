"""Layout of a chart's figure in inches: panels side by side and below one another, for a screen or for print."""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from batkube.experiments.figures.chart_data import Chart
from batkube.kernel.errors import InputError
from batkube.outputs.charts.labels import FigureLabels

#: Width on a screen by the number of panels side by side.
_SCREEN_IN = {1: 7.2, 2: 9.6, 3: 12.0}
_SCREEN_COLUMNS = 3
#: Panels in print are at least so wide if the figure fits on a page, otherwise as narrow as the second number.
_PANEL_WIDTHS_IN, _BAR_WIDTHS_IN = (2.3, 1.5), (1.7, 0.75)
#: Height of a page's text area: a figure for print is not higher unless its panels cannot be lower.
_PRINT_HEIGHT_IN = 9.0
#: Height of a panel of lines: on a screen, and in print, at most and at least, and relative to its width.
_SCREEN_PANEL_IN, _PRINT_PANEL_IN, _MIN_PANEL_IN, _PANEL_RATIO = 2.55, 2.0, 0.85, 0.62
#: Heights of a bar and of the gap between rows of bars: on a screen, in print, and at least.
_SCREEN_BAR_IN, _PRINT_BAR_IN, _MIN_BAR_IN = (0.22, 0.16), (0.18, 0.14), (0.13, 0.08)
#: Height of a line of a name beside bars.
_NAME_LINE_IN = 0.145
_TITLE_IN, _LEGEND_ROW_IN, _MARGIN_IN, _FACET_IN, _AXIS_IN = 0.36, 0.185, 0.12, 0.26, 0.5
#: Widths of a character of names, of numbers and of the legend, and of the legend's marks with their distances.
_CHARACTER_IN, _DIGIT_IN, LEGEND_CHARACTER_IN, LEGEND_MARK_IN = 0.078, 0.072, 0.083, 0.7
#: Names of bars beyond this length have several lines in print.
_SCREEN_NAME_CHARACTERS, _PRINT_NAME_CHARACTERS = 34, 22
#: Longer names of bars are cut.
MAX_NAME_CHARACTERS = 34
#: Numbers are written beside bars of panels of this width; narrower ones have no room for both.
_MIN_NUMBERED_IN = 1.55


@dataclass(frozen=True, slots=True)
class FigureLayout:
    """The sizes of a figure and of its parts."""

    width_in: float
    #: Number of panels side by side.
    columns: int
    #: Height of the axes of one panel, and of a line of panels with their titles and ticks.
    panel_in: float
    line_in: float
    #: Height of the part above the panels.
    top_in: float
    #: Distance of the legend from the upper edge.
    legend_top_in: float
    lines: int
    #: Width of the names beside bars, and maximum length of a line of such a name.
    names_in: float
    name_characters: int
    is_print: bool

    @property
    def height_in(self) -> float:
        """The height of the figure."""
        return self.top_in + self.line_in * self.lines

    @property
    def axes_width_in(self) -> float:
        """The approximate width of the axes of a panel of bars."""
        return (self.width_in - self.names_in) / self.columns - 0.15

    @property
    def has_numbers(self) -> bool:
        """True if there is room for numbers beside bars."""
        return self.axes_width_in >= _MIN_NUMBERED_IN

    def number_share(self, longest: str) -> float:
        """Return the room for a number beside a bar, as a share of the axes without it."""
        number_in = _DIGIT_IN * len(longest) + 0.1
        return number_in / max(0.5, self.axes_width_in - number_in)


def layout_of(
    chart: Chart, labels: FigureLabels, *, bars_per_row: int, legend_rows: int, with_title: bool, width_in: float | None
) -> FigureLayout:
    """Return the layout of a chart. `bars_per_row` is 0 for lines and dots. `width_in` is the width in print.

    In print, panels become lower and then narrower until the figure fits on a page. Raises InputError if names leave no
    room for bars.
    """
    name_characters = _PRINT_NAME_CHARACTERS if width_in else _SCREEN_NAME_CHARACTERS
    names = [row_label(labels, name, name_characters) for name in chart.x.categories] if bars_per_row else []
    names_in = _names_width_in(names)
    has_titles = any(panel.facet or panel.undrawn_count for panel in chart.panels)
    above_in = _AXIS_IN + (_FACET_IN if has_titles else 0.0)
    legend_top_in = _MARGIN_IN + (_TITLE_IN if with_title else 0.0)
    top_in = legend_top_in + (legend_rows * _LEGEND_ROW_IN + 0.06 if legend_rows else 0.0)
    if width_in is None:
        columns = _even_columns(len(chart.rows[0]), _SCREEN_COLUMNS)
        rows = len(chart.x.categories)
        panel_in = _bars_height_in(rows, bars_per_row, _SCREEN_BAR_IN) if bars_per_row else _SCREEN_PANEL_IN
    else:
        size_in = width_in - names_in, _PRINT_HEIGHT_IN - top_in
        space = _PrintSpace(chart, bars_per_row, _min_row_in(names), *size_in, above_in)
        columns, panel_in = space.columns_and_panel_height()
    return FigureLayout(
        width_in=width_in or _SCREEN_IN[columns],
        columns=columns,
        panel_in=panel_in,
        line_in=panel_in + above_in,
        top_in=top_in,
        legend_top_in=legend_top_in,
        lines=len(chart.rows) * math.ceil(len(chart.rows[0]) / columns),
        names_in=names_in,
        name_characters=name_characters,
        is_print=width_in is not None,
    )


@dataclass(frozen=True, slots=True)
class _PrintSpace:
    """The space for the panels of a figure in print."""

    chart: Chart
    bars_per_row: int
    #: Minimum height of a row of bars, for its name.
    row_in: float
    width_in: float
    height_in: float
    #: Height of the ticks and the title of each line of panels.
    above_in: float

    def columns_and_panel_height(self) -> tuple[int, float]:
        """Return the smallest number of panels side by side with which the figure fits on a page, and their height."""
        facets = len(self.chart.rows[0])
        usual, narrow = _BAR_WIDTHS_IN if self.bars_per_row else _PANEL_WIDTHS_IN
        if self.width_in < narrow:
            problem = f"names leave {self.width_in:.1f} inches for the bars of the figure “{self.chart.title}”"
            raise InputError("--labels", problem=problem, remedy="set shorter texts for its names")
        first, last = (max(1, min(facets, int(self.width_in / panel))) for panel in (usual, narrow))
        for columns in sorted({_even_columns(facets, count) for count in range(first, last + 1)}):
            least, largest = self._panel_heights_in(columns)
            lines = len(self.chart.rows) * math.ceil(facets / columns)
            available = self.height_in / lines - self.above_in
            if available >= least:
                break
        return columns, max(least, min(largest, available))

    def _panel_heights_in(self, columns: int) -> tuple[float, float]:
        """Return the minimum and the maximum height of a panel."""
        if self.bars_per_row:
            rows = len(self.chart.x.categories)
            heights = (_bars_height_in(rows, self.bars_per_row, sizes) for sizes in (_MIN_BAR_IN, _PRINT_BAR_IN))
            least, largest = (max(height, rows * self.row_in) for height in heights)
            return least, largest
        return _MIN_PANEL_IN, max(1.1, min(_PRINT_PANEL_IN, self.width_in / columns * _PANEL_RATIO))


def _even_columns(facets: int, max_columns: int) -> int:
    """Return the number of panels side by side that fills the same number of lines evenly."""
    return math.ceil(facets / math.ceil(facets / max_columns))


def _bars_height_in(rows: int, bars_per_row: int, sizes_in: tuple[float, float]) -> float:
    """Return the height of a panel, in which each row has room for all its bars."""
    bar_in, gap_in = sizes_in
    return max(0.7, rows * (bars_per_row * bar_in + gap_in))


def _names_width_in(names: Sequence[str]) -> float:
    lines = [line for name in names for line in name.splitlines()]
    return 0.15 + _CHARACTER_IN * max(map(len, lines)) if lines else 0.0


def _min_row_in(names: Sequence[str]) -> float:
    """Return the distance of rows at which no name touches the next one."""
    lines = [name.count("\n") + 1 for name in names]
    return _NAME_LINE_IN * max((sum(pair) / 2 for pair in itertools.pairwise(lines)), default=1.0)


def row_label(labels: FigureLabels, name: str, max_characters: int) -> str:
    """Return the text of a row of bars, on several lines if it is longer than `max_characters`."""
    return "\n".join(textwrap.wrap(labels.text(name, MAX_NAME_CHARACTERS), max_characters))
