"""Content of a Gantt chart, computed without matplotlib before anything is drawn."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pandas as pd

from batkube.kernel.errors import InputError
from batkube.kernel.instants import human_duration, seconds
from batkube.outputs.charts.labels import FigureLabels
from batkube.outputs.charts.palette import COLOURINGS, Colouring, colour_jobs
from batkube.outputs.gantt.adjacent_colours import distinct_fills
from batkube.outputs.gantt.lanes import Boxes, boxes_of
from batkube.outputs.gantt.reference_run import ReferenceRun, shift_colouring
from batkube.outputs.measures.measured_run import MeasuredRun
from batkube.outputs.measures.metrics import Metrics
from batkube.outputs.measures.occupancy.absences import Absence, absences_of
from batkube.outputs.measures.occupancy.services import services_of
from batkube.outputs.measures.occupancy.stays import Bools, horizon_s, stays_of
from batkube.outputs.measures.occupancy.step_functions import StepFunction, queue_length, utilisation_steps

#: Charts with more boxes are rasterized, without outlines and hover texts.
MAX_VECTOR_BOXES = 2_000
#: Overlaps of less than this share of the chart's length (half a point on paper) get no lanes.
_MIN_WIDTH = 1 / 1600


@dataclass(frozen=True, slots=True)
class GanttModel:
    """The content of one chart."""

    title: str
    subtitle: str
    metrics: Metrics
    machine_names: list[str]
    #: One row per subject of boxes: the run's jobs, then its services (owners of pods without a job).
    subjects: pd.DataFrame
    boxes: Boxes
    absences: list[Absence]
    #: For each box, whether its job failed, was killed or reached its walltime.
    is_failure: Bools
    colouring: Colouring
    utilisation: StepFunction
    queue: StepFunction
    start_s: float
    end_s: float
    #: The run that this one is compared with, if any.
    reference: ReferenceRun | None = None
    #: The texts of names, for machines and the legend.
    labels: FigureLabels = field(default_factory=FigureLabels)

    @property
    def has_lanes(self) -> bool:
        """True if many rows are divided into lanes, and therefore need to be higher."""
        return bool((self.boxes.top % 1 != 0).sum() > len(self.boxes) / 4)


def gantt_model_of(
    results: MeasuredRun,
    *,
    title: str | None,
    color_by: str,
    window: tuple[float | None, float | None] | None,
    against: MeasuredRun | None = None,
    for_print: bool = False,
    labels: FigureLabels | None = None,
) -> GanttModel:
    """Return the content of a run's chart; `window` is from and to in seconds, None for the run's own limits.

    With `against`, colours show which jobs start earlier or later than in that run. For print, the chart is readable
    without colours, and has no default title and subtitle, since a paper has a caption.
    """
    if color_by not in COLOURINGS:
        raise InputError("--by", problem=f"{color_by!r} is not one of {', '.join(COLOURINGS)}")
    services, service_stays = services_of(results)
    job_stays = stays_of(results)
    stays = job_stays.concatenated_with(replace(service_stays, job=service_stays.job + len(results.jobs)))
    if not len(stays):
        raise InputError(results.path, problem="nothing ran on a known machine, so there is nothing to draw")
    subjects = pd.concat([results.jobs, services], ignore_index=True) if len(services) else results.jobs
    last_s = max(horizon_s(results.jobs), float(stays.end.max()), 1e-6)
    start_s, end_s = _time_range(results, last_s, window)
    boxes = boxes_of(stays, ignored_s=(end_s - start_s) * _MIN_WIDTH).clipped_to(start_s, end_s)
    if not len(boxes):
        raise InputError(
            results.path,
            problem=f"nothing runs between {human_duration(seconds(start_s))} and {human_duration(seconds(end_s))}",
            remedy=f"the run lasts until {human_duration(seconds(last_s))}",
        )
    if against is None:
        colouring = colour_jobs(subjects, color_by, for_print=for_print)
    else:
        colouring = shift_colouring(subjects, results, against)
    if against is None and color_by == "job" and len(boxes) > MAX_VECTOR_BOXES:
        fills = distinct_fills(colouring.fills, boxes, results.machine_count, start_s, end_s, in_grey=for_print)
        colouring = replace(colouring, fills=fills)
    succeeded = (subjects["final_state"] == "COMPLETED_SUCCESSFULLY") | subjects["finish_time"].isna()
    metrics = results.metrics
    default_title = "" if for_print else _title(results, against)
    subtitle = _subtitle(results, metrics, stays.unplaced) + _window_remark(window, start_s, end_s)
    return GanttModel(
        title=default_title if title is None else title,
        subtitle="" if for_print else subtitle,
        metrics=metrics,
        machine_names=_without_domain(results.machine_names),
        subjects=subjects,
        boxes=boxes,
        absences=[absence for absence in absences_of(results) if absence.end > start_s and absence.start < end_s],
        is_failure=~succeeded.to_numpy()[boxes.job],
        colouring=colouring,
        utilisation=utilisation_steps(results, job_stays),
        queue=queue_length(results),
        start_s=start_s,
        end_s=end_s,
        reference=None if against is None else _reference_run(against),
        labels=labels or FigureLabels(),
    )


def _title(results: MeasuredRun, against: MeasuredRun | None) -> str:
    return results.name if against is None else f"{results.name} against {against.name}"


def _reference_run(run: MeasuredRun) -> ReferenceRun:
    return ReferenceRun(run.name, utilisation_steps(run, stays_of(run)), queue_length(run))


def _time_range(
    results: MeasuredRun, last: float, window: tuple[float | None, float | None] | None
) -> tuple[float, float]:
    """Return the range to draw: by default from 0, or from the first submission of a trace that begins late."""
    first = float(results.jobs["submission_time"].min())
    start, end = window or (None, None)
    start_s = start if start is not None else (first if first > last / 5 else 0.0)
    end_s = end if end is not None else last
    if not 0 <= start_s < end_s:
        raise InputError(
            results.path,
            problem=f"{start_s:g} s to {end_s:g} s is not a valid time range",
            remedy=f"the run lasts until {last:g} s",
        )
    return start_s, end_s


def _window_remark(window: tuple[float | None, float | None] | None, start_s: float, end_s: float) -> str:
    """Return a remark on the window, if the chart has one, because the numbers are of the whole run."""
    if window is None or window == (None, None):
        return ""
    return f"  ·  whole run; shown: {human_duration(seconds(start_s))} to {human_duration(seconds(end_s))}"


def _without_domain(names: list[str]) -> list[str]:
    """Return host names without the domain they all share."""
    domains = {name.partition(".")[2] for name in names}
    return [name.partition(".")[0] for name in names] if len(domains) == 1 else names


def _subtitle(results: MeasuredRun, metrics: Metrics, unplaced: int) -> str:
    count = results.machine_count
    parts = [results.scheduler] if results.scheduler else []
    parts.append(f"{metrics.jobs:,} job{'s' * (metrics.jobs != 1)} on {count:,} machine{'s' * (count != 1)}")
    if metrics.makespan_s is not None:
        parts.append(f"makespan {human_duration(seconds(metrics.makespan_s))}")
    if metrics.wait_s_mean is not None:
        parts.append(f"mean wait {human_duration(seconds(metrics.wait_s_mean))}")
    if metrics.utilisation is not None:
        parts.append(f"utilisation {metrics.utilisation * 100:.1f} %")
    parts += filter(None, (results.failure_remark, results.change_remark))
    if unplaced:
        parts.append(f"{unplaced:,} not drawn: their machines are unknown")
    return "  ·  ".join(parts)
