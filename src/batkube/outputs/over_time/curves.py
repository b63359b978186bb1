"""What charts over time show, computed before anything is drawn. Knows no matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from batkube.kernel.errors import InputError
from batkube.outputs.measures.measured_run import MeasuredRun
from batkube.outputs.measures.occupancy.absences import absences_of
from batkube.outputs.measures.occupancy.stays import busy_periods_of, capacity_of, horizon_s, stays_of
from batkube.outputs.measures.occupancy.step_functions import StepFunction, cumulative_steps, queue_length
from batkube.outputs.over_time.chart_kinds import ChartKind


@dataclass(frozen=True, slots=True)
class ChartCurve:
    """One curve of a panel."""

    label: str
    steps: StepFunction


@dataclass(frozen=True, slots=True)
class CurvePanel:
    """Curves over one another, or stacked."""

    #: What is counted: machines, cores, jobs.
    unit: str
    curves: Sequence[ChartCurve]
    title: str = ""
    is_stacked: bool = False
    #: Where all there is ends, if that is known.
    top: float | None = None


_FREE = "free"
#: Columns of machine_states.csv, from the bottom of the stack to its top, and what they are called.
STATES = {
    "nb_computing": "computing",
    "nb_switching_on": "switching on",
    "nb_switching_off": "switching off",
    "nb_sleeping": "sleeping",
    "nb_idle": "idle",
    "nb_unavailable": "not available",
}


def panels_of(kind: ChartKind, runs: Sequence[MeasuredRun]) -> list[CurvePanel]:
    """Return what to draw of runs. Raises InputError when a run does not tell it."""
    if kind is ChartKind.STATES:
        return [_states(run, named=len(runs) > 1) for run in runs]
    if kind is ChartKind.FREE:
        unit = f"free {_unit(runs)}"
        titles = [run.name if len(runs) > 1 else "" for run in runs]
        tops = [float(capacity_of(run).sum()) / 1000 for run in runs]
        return [
            CurvePanel(unit, [ChartCurve(_FREE, _free(run))], title=title, is_stacked=True, top=top)
            for run, title, top in zip(runs, titles, tops, strict=True)
        ]
    jobs = CurvePanel("jobs waiting", [ChartCurve(run.name, queue_length(run)) for run in runs])
    asked = [ChartCurve(run.name, _requested(run)) for run in runs]
    return [jobs, CurvePanel(f"{_unit(runs)} asked for", asked)]


def end_of(runs: Sequence[MeasuredRun]) -> float:
    """Return when the last of the runs ends, in seconds."""
    return max(horizon_s(run.jobs) for run in runs)


def _states(run: MeasuredRun, *, named: bool) -> CurvePanel:
    frame = run.machine_states
    if frame.empty:
        problem = "does not tell the states of its machines: there is no machine_states.csv"
        raise InputError(run.path, problem=problem, remedy="name the output folder of a run")
    times = frame["time"].to_numpy(dtype=np.float64)
    columns = [name for name in STATES if name in frame and (frame[name] > 0).any()]
    curves = [ChartCurve(STATES[name], StepFunction(times, frame[name].to_numpy(dtype=np.float64))) for name in columns]
    top = float(frame[columns].sum(axis=1).max())
    return CurvePanel("machines", curves, title=run.name if named else "", is_stacked=True, top=top)


def _free(run: MeasuredRun) -> StepFunction:
    """Return what is neither in use nor on a machine that takes no work, in machines or cores."""
    capacity = capacity_of(run)
    busy = busy_periods_of(stays_of(run), sharing=run.shares_machines)
    end = horizon_s(run.jobs)
    changes = [(0.0, float(capacity.sum()))]
    changes += [(one.start, -float(capacity[one.machine])) for one in absences_of(run)]
    changes += [(min(one.end, end), float(capacity[one.machine])) for one in absences_of(run)]
    times = np.concatenate(([at for at, _ in changes], busy.start, busy.end))
    amounts = np.concatenate(([amount for _, amount in changes], -busy.milli, busy.milli)) / 1000
    steps = cumulative_steps(times, amounts)
    # On a machine that is not available work may go on: what it uses was counted off twice.
    return StepFunction(steps.times, np.maximum(steps.values, 0.0))


def _requested(run: MeasuredRun) -> StepFunction:
    """Return what the waiting jobs ask for together, in machines or cores."""
    sizes = run.jobs["requested_number_of_resources"].fillna(1).astype(float)
    return queue_length(run, sizes * run.jobs["cpu"].fillna(0) if run.shares_machines else sizes)


def _unit(runs: Sequence[MeasuredRun]) -> str:
    """Return what runs count in. Raises InputError when that differs."""
    if len({run.shares_machines for run in runs}) > 1:
        problem = "some runs give jobs whole machines, and others cores"
        raise InputError("batkube chart", problem=problem, remedy="draw them apart")
    return "cores" if runs[0].shares_machines else "machines"
