"""Where things are in a Gantt chart, in inches: on a screen or a page of its own, and in a paper of two columns."""

from __future__ import annotations

from dataclasses import dataclass

from batkube.outputs.gantt.machine_labels import row_names
from batkube.outputs.gantt.model import GanttModel


@dataclass(frozen=True, slots=True)
class _Sizes:
    """The sizes that differ between a screen and print, in inches."""

    right: float
    panel: float
    gap: float
    axis: float
    legend_row: float
    #: Of a machine's row, and of all rows at least and at most.
    row: float
    rows_min: float
    rows_max: float
    #: The same of machines that pods share, whose rows have lanes.
    shared_row: float
    shared_min: float
    #: Beside the rows: for the axis' own words, and for each character of a name.
    margin: float
    character: float


_SCREEN_IN = 12.0
_SCREEN = _Sizes(0.68, 1.05, 0.14, 0.52, 0.34, 0.27, 1.4, 7.6, 0.8, 3.4, 0.55, 0.065)
_PRINT = _Sizes(0.45, 0.62, 0.09, 0.40, 0.17, 0.16, 0.8, 4.2, 0.5, 1.6, 0.26, 0.058)
_HEADER_IN, _NO_HEADER_IN = 0.72, 0.07


@dataclass(frozen=True, slots=True)
class Layout:
    """A chart's page: the header, below it the rows of machines, the panel, the time axis and the legend."""

    page_width: float
    header: float
    left: float
    width: float
    rows_height: float
    gap: float
    panel_height: float
    axis: float
    legend_row: float
    legend_rows: int
    #: How many words of the legend stand side by side.
    legend_columns: int

    @property
    def panel_top(self) -> float:
        """How far below the page's upper edge the panel begins."""
        return self.header + self.rows_height + self.gap

    @property
    def height(self) -> float:
        """How high the page is."""
        return self.panel_top + self.panel_height + self.axis + self.legend_row * self.legend_rows

    @property
    def max_ticks(self) -> int:
        """How many ticks of time have room beside one another."""
        return 11 if self.page_width >= _SCREEN_IN else max(4, int(self.page_width * 1.6))


def layout_of(picture: GanttModel, legend_words: list[str], width_in: float | None) -> Layout:
    """Return the layout of a picture whose legend says `legend_words`; `width_in` is how wide it is in print."""
    sizes = _SCREEN if width_in is None else _PRINT
    page_width = width_in or _SCREEN_IN
    row, least = (sizes.shared_row, sizes.shared_min) if picture.has_lanes else (sizes.row, sizes.rows_min)
    rows_height = min(max(len(picture.machine_names) * row, least), sizes.rows_max)
    names = row_names(picture.machine_names, rows_height).names
    left = sizes.margin + sizes.character * max(len(name) for _, name in names)
    columns = _legend_columns(legend_words, page_width) if width_in else len(legend_words)
    return Layout(
        page_width=page_width,
        header=_HEADER_IN if picture.title or picture.subtitle else _NO_HEADER_IN,
        left=left,
        width=page_width - left - sizes.right,
        rows_height=rows_height,
        gap=sizes.gap,
        panel_height=sizes.panel,
        axis=sizes.axis,
        legend_row=sizes.legend_row,
        legend_rows=-(-len(legend_words) // columns) if columns else 0,
        legend_columns=columns,
    )


def _legend_columns(words: list[str], page_width: float) -> int:
    """As many as the widest of the words has room for, with its patch."""
    widest = max(map(len, words), default=0)
    return min(len(words), max(1, int(page_width / (0.42 + 0.062 * widest))))
