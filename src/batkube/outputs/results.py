"""`Results("out")`: what notebooks start from. A run's files, with its numbers and its picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from batkube.outputs.measures.measured_run import MeasuredRun

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Results(MeasuredRun):
    """What a run came to. pandas and matplotlib are imported when they are needed, as in what it is made of."""

    def gantt(
        self,
        *,
        title: str | None = None,
        color_by: str = "job",
        window: tuple[float | None, float | None] | None = None,
    ) -> Figure:
        """Return the run's Gantt chart; see `gantt.chart.draw_gantt`."""
        from batkube.outputs.gantt.chart import draw_gantt

        return draw_gantt(self, title=title, color_by=color_by, window=window)
