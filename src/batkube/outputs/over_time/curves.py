"""Curves of charts over time, computed without matplotlib before anything is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from batkube.kernel.errors import InputError
from batkube.outputs.measures.fairness import has_single_resource, share_steps, shares_of_jobs
from batkube.outputs.measures.measured_run import MeasuredRun
from batkube.outputs.measures.metrics import finished_jobs
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
    """Curves in one pair of axes, possibly stacked."""

    #: Label of the y axis: machines, cores, jobs.
    unit: str
    curves: Sequence[ChartCurve]
    title: str = ""
    is_stacked: bool = False
    #: Total capacity, the upper end of the y axis, if known.
    top: float | None = None


_FREE = "free"
#: Users with curves of their own.
_MAX_USERS = 5
#: Columns of machine_states.csv, from the bottom of the stack to its top, with their labels.
STATES = {
    "nb_computing": "computing",
    "nb_switching_on": "switching on",
    "nb_switching_off": "switching off",
    "nb_sleeping": "sleeping",
    "nb_idle": "idle",
    "nb_unavailable": "not available",
}


def panels_of(kind: ChartKind, runs: Sequence[MeasuredRun]) -> list[CurvePanel]:
    """Return the panels of a chart. Raises InputError if a run lacks the data."""
    if kind is ChartKind.STATES:
        return [_states(run, with_title=len(runs) > 1) for run in runs]
    if kind is ChartKind.FREE:
        unit = f"free {_unit(runs)}"
        titles = [run.name if len(runs) > 1 else "" for run in runs]
        tops = [float(capacity_of(run).sum()) / 1000 for run in runs]
        return [
            CurvePanel(unit, [ChartCurve(_FREE, _free(run))], title=title, is_stacked=True, top=top)
            for run, title, top in zip(runs, titles, tops, strict=True)
        ]
    if kind is ChartKind.USERS:
        return [_users(run, with_title=len(runs) > 1) for run in runs]
    jobs = CurvePanel("jobs waiting", [ChartCurve(run.name, queue_length(run)) for run in runs])
    requested = [ChartCurve(run.name, _requested(run)) for run in runs]
    return [jobs, CurvePanel(f"{_unit(runs)} requested", requested)]


def end_of(runs: Sequence[MeasuredRun]) -> float:
    """Return when the last of the runs ends, in seconds."""
    return max(horizon_s(run.jobs) for run in runs)


def _states(run: MeasuredRun, *, with_title: bool) -> CurvePanel:
    frame = run.machine_states
    if frame.empty:
        problem = "has no machine_states.csv, so the states of its machines are unknown"
        raise InputError(run.path, problem=problem, remedy="use the output folder of a run")
    times = frame["time"].to_numpy(dtype=np.float64)
    columns = [name for name in STATES if name in frame and (frame[name] > 0).any()]
    curves = [ChartCurve(STATES[name], StepFunction(times, frame[name].to_numpy(dtype=np.float64))) for name in columns]
    top = float(frame[columns].sum(axis=1).max())
    return CurvePanel("machines", curves, title=run.name if with_title else "", is_stacked=True, top=top)


def _users(run: MeasuredRun, *, with_title: bool) -> CurvePanel:
    """Return stacked areas: the share of the platform that each of the largest users holds, and that of all others."""
    if not has_single_resource(run):
        problem = "jobs hold several resources, but jobs.csv has only cpu, so the users' dominant shares are unknown"
        raise InputError(run.path, problem=problem, remedy="use a run of whole machines, or with requests of cpu alone")
    done = finished_jobs(run.jobs)
    work = (shares_of_jobs(run, done) * done["execution_time"]).groupby(done["user"]).sum()
    largest = [str(user) for user in work.sort_values(ascending=False, kind="stable").index[:_MAX_USERS]]
    others = sorted(set(done["user"]) - set(largest))
    groups = {f"user {user}" if user else "no user": [user] for user in largest}
    groups |= {f"{len(others):,} others": others} if others else {}
    times = np.union1d(done["starting_time"].to_numpy(), done["finish_time"].to_numpy()).astype(np.float64)
    curves = [
        ChartCurve(label, StepFunction(times, 100 * share_steps(run, users).at(times)))
        for label, users in groups.items()
    ]
    return CurvePanel("% of the platform", curves, title=run.name if with_title else "", is_stacked=True, top=100.0)


def _free(run: MeasuredRun) -> StepFunction:
    """Return the capacity that is neither in use nor on an absent machine, in machines or cores."""
    capacity = capacity_of(run)
    busy = busy_periods_of(stays_of(run), sharing=run.shares_machines)
    end = horizon_s(run.jobs)
    changes = [(0.0, float(capacity.sum()))]
    for absence in absences_of(run):
        amount = float(capacity[absence.machine])
        changes += [(absence.start, -amount), (min(absence.end, end), amount)]
    times = np.concatenate(([at for at, _ in changes], busy.start, busy.end))
    amounts = np.concatenate(([amount for _, amount in changes], -busy.milli, busy.milli)) / 1000
    steps = cumulative_steps(times, amounts)
    # Work may continue on a machine that is not available; its usage was subtracted twice.
    return StepFunction(steps.times, np.maximum(steps.values, 0.0))


def _requested(run: MeasuredRun) -> StepFunction:
    """Return the sum of the waiting jobs' requests, in machines or cores."""
    sizes = run.jobs["requested_number_of_resources"].fillna(1).astype(float)
    return queue_length(run, sizes * run.jobs["cpu"].fillna(0) if run.shares_machines else sizes)


def _unit(runs: Sequence[MeasuredRun]) -> str:
    """Return the unit of capacity of the runs. Raises InputError if they have different ones."""
    if len({run.shares_machines for run in runs}) > 1:
        problem = "some runs allocate whole machines, others cores"
        raise InputError("batkube chart", problem=problem, remedy="draw them in separate charts")
    return "cores" if runs[0].shares_machines else "machines"
