"""Layout of a Gantt chart, in inches: for a screen or a separate page, and for a column of a paper."""

from __future__ import annotations

from dataclasses import dataclass

from batkube.kernel.errors import InputError
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
    #: Height of one machine's row, and minimum and maximum height of all rows.
    row: float
    rows_min: float
    rows_max: float
    #: The same for machines that pods share, whose rows have lanes.
    shared_row: float
    shared_min: float
    #: Width left of the rows: of the axis label, and of each character of a machine's name.
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
    #: Number of legend entries side by side.
    legend_columns: int

    @property
    def panel_top(self) -> float:
        """Distance of the panel from the upper edge of the page."""
        return self.header + self.rows_height + self.gap

    @property
    def height(self) -> float:
        """Height of the page."""
        return self.panel_top + self.panel_height + self.axis + self.legend_row * self.legend_rows

    @property
    def max_ticks(self) -> int:
        """Number of time ticks that fit side by side."""
        return 11 if self.page_width >= _SCREEN_IN else max(4, int(self.page_width * 1.6))


def layout_of(model: GanttModel, legend_labels: list[str], width_in: float | None) -> Layout:
    """Return the layout of a chart with these legend entries; `width_in` is its width in print."""
    sizes = _SCREEN if width_in is None else _PRINT
    page_width = width_in or _SCREEN_IN
    row, min_height = (sizes.shared_row, sizes.shared_min) if model.has_lanes else (sizes.row, sizes.rows_min)
    rows_height = min(max(len(model.machine_names) * row, min_height), sizes.rows_max)
    names = row_names(model.machine_names, rows_height, model.labels).names
    left = sizes.margin + sizes.character * max(len(name) for _, name in names)
    if left > page_width / 2:
        longest = max(len(name) for _, name in names)
        problem = f"texts of {longest} characters for machines leave too little of a width of {page_width:g} inches"
        raise InputError("--labels", problem=problem, remedy="set shorter texts")
    columns = _legend_columns(legend_labels, page_width) if width_in else len(legend_labels)
    return Layout(
        page_width=page_width,
        header=_HEADER_IN if model.title or model.subtitle else _NO_HEADER_IN,
        left=left,
        width=page_width - left - sizes.right,
        rows_height=rows_height,
        gap=sizes.gap,
        panel_height=sizes.panel,
        axis=sizes.axis,
        legend_row=sizes.legend_row,
        legend_rows=-(-len(legend_labels) // columns) if columns else 0,
        legend_columns=columns,
    )


def _legend_columns(labels: list[str], page_width: float) -> int:
    """Return the number of legend columns, all as wide as the widest label with its patch, that fit the page."""
    widest = max(map(len, labels), default=0)
    return min(len(labels), max(1, int(page_width / (0.42 + 0.062 * widest))))
