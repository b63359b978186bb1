"""`Results("out")`: what notebooks start from. A run's files, with its numbers and its picture."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from batkube.outputs.measures.run_files import RunFiles

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from batkube.outputs.measures.metrics import Metrics


class Results(RunFiles):
    """What a run came to. pandas and matplotlib are imported when they are needed, as in `RunFiles`."""

    @cached_property
    def metrics(self) -> Metrics:
        """The run in numbers."""
        from batkube.outputs.measures.metrics import metrics_of

        return metrics_of(self)

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
