"""`Results("out")` and `compare`, the interface for notebooks: a run's files, metrics, charts and report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from batkube.kernel.errors import InputError
from batkube.outputs.measures.measured_run import MeasuredRun

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from batkube.outputs.gantt.stepper import Stepper
    from batkube.outputs.measures.comparisons.run_comparison import Comparison


class Results(MeasuredRun):
    """The results of a run. pandas and matplotlib are imported only when they are needed."""

    def gantt(
        self,
        *,
        title: str | None = None,
        color_by: str = "job",
        window: tuple[float | None, float | None] | None = None,
        against: MeasuredRun | None = None,
        width_in: float | None = None,
    ) -> Figure:
        """Return the run's Gantt chart; see `gantt.chart.draw_gantt`."""
        from batkube.outputs.gantt.chart import draw_gantt

        return draw_gantt(self, title=title, color_by=color_by, window=window, against=against, width_in=width_in)

    def animate(self, *, title: str | None = None, color_by: str = "job") -> Stepper:
        """Return the Gantt chart with a time slider: a notebook shows it, and `save` writes it."""
        from batkube.outputs.gantt.chart import stepper_of

        return stepper_of(self, title=title, color_by=color_by)

    def report(self, out: str | Path | None = None, *, title: str | None = None) -> Path:
        """Write the run's report, one HTML file, and return its path: by default report.html in the run's folder."""
        from batkube.outputs.pages.page import default_page_path, write_page
        from batkube.outputs.report.document import run_report

        path = default_page_path(self.jobs_path.parent) if out is None else Path(out)
        return write_page(path, run_report(self, title=title))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.scheduler or 'an unknown scheduler'} in {self.path}>"

    def _repr_html_(self) -> str:
        """Return the run for a notebook: warnings, then key figures."""
        from batkube.outputs.report.document import run_summary

        return run_summary(self)


def compare(
    *runs: str | Path | MeasuredRun, baseline: int = 0, warm_up: str | None = None, cool_down: str | None = None
) -> Comparison:
    """Compare runs as `batkube compare` does: folders, jobs.csv files or results of `batkube.run`.

    Differences are to `runs[baseline]`. `warm_up` and `cool_down` apply to runs that are given by their paths.
    Raises InputError.
    """
    from batkube.outputs.measures.comparisons.run_comparison import compare_runs

    if len(runs) < 2:
        raise InputError("batkube.compare", problem="needs at least two runs", remedy="add another one")
    if not 0 <= baseline < len(runs):
        problem = f"{baseline} is not the index of one of the {len(runs)} runs"
        raise InputError("batkube.compare", at="baseline", problem=problem, remedy="the first one is 0")
    measured = [
        run if isinstance(run, MeasuredRun) else Results(run, warm_up=warm_up, cool_down=cool_down) for run in runs
    ]
    return compare_runs(measured, baseline=baseline)
