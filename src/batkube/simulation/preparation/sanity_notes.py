"""Notes on runs whose numbers are right but say little: the platform does not suit the workload, or no job waited.

Schedulers can hardly be compared by such runs. Each note has the numbers concerned, and a remedy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from batkube.cluster.jobs.outcomes import Outcome
from batkube.cluster.mapping import ResourceModel
from batkube.kernel.fidelity import FidelityNote, FidelityNotes
from batkube.kernel.instants import NANOSECONDS_PER_SECOND, human_duration
from batkube.platforms.model import Platform
from batkube.simulation.preparation.feasibility import machines_instead_of_cores
from batkube.simulation.preparation.inputs import Inputs
from batkube.workloads.model import Job
from batkube.workloads.run_times import run_time

#: Smaller workloads are examples, about which load and waits say nothing.
_FEW_JOBS = 30
#: Offered loads within these bounds are usual; outside, queues stay empty, or grow from the first job to the last.
_LOAD_MIN, _LOAD_MAX = 0.25, 2.0
_HOUR_NS = 3600 * NANOSECONDS_PER_SECOND

OTHER_SIZE = FidelityNote(
    "workload", "was recorded on a machine of another size than the platform, so load and waits differ from the trace"
)
LATE_START = FidelityNote(
    "workload",
    "its first job is submitted late, so makespan and utilisation include the idle time before it; "
    "`batkube workload convert --shift` moves it to 0",
)
UNUSUAL_LOAD = FidelityNote(
    "workload",
    f"its offered load on this platform is far from 1 (below {_LOAD_MIN} or above {_LOAD_MAX:g}), so "
    "schedulers hardly matter, or waits grow with the length of the workload",
)
NOTHING_WAITED = FidelityNote(
    "workload", "no job ever waited, so most schedulers give the same numbers; raise the load, as with --rate"
)


def note_unsuitable_inputs(inputs: Inputs, notes: FidelityNotes) -> None:
    """Note a platform of another size than the workload's, a late first submission, and an unusual load."""
    _note_size(inputs, notes)
    jobs = inputs.jobs
    if not jobs:
        return
    first, last = min(job.submit for job in jobs), max(job.submit for job in jobs)
    if first > max(last - first, _HOUR_NS):
        notes.add(LATE_START, example=f"the jobs are submitted from {human_duration(first)} to {human_duration(last)}")
    load = offered_load(jobs, inputs.platform) if inputs.model is ResourceModel.MACHINES else None
    if load is not None and len(jobs) >= _FEW_JOBS and not _LOAD_MIN <= load <= _LOAD_MAX:
        notes.add(UNUSUAL_LOAD, example=f"{load:.2f} of {len(inputs.platform.machines):,} machines")


def note_unsuitable_results(outcomes: Iterable[Outcome], notes: FidelityNotes) -> None:
    """Note that no job waited."""
    waits = [outcome.started - outcome.job.submit for outcome in outcomes if outcome.started is not None]
    if len(waits) >= _FEW_JOBS and not any(waits):
        notes.add(NOTHING_WAITED, example=f"{len(waits):,} jobs")


def offered_load(jobs: Sequence[Job], platform: Platform) -> float | None:
    """Return the work per machine and time between the first and the last submission; None if it is unknown.

    It is unknown for bursts: if all jobs are submitted within less than the longest run time.
    """
    run_times = [run_time(job.profile) for job in jobs]
    fixed = [run for run in run_times if run is not None]
    span = max(job.submit for job in jobs) - min(job.submit for job in jobs)
    if len(fixed) < len(run_times) or span <= max(fixed):
        return None
    return sum(run * job.size for run, job in zip(fixed, jobs, strict=True)) / (span * len(platform.machines))


def _note_size(inputs: Inputs, notes: FidelityNotes) -> None:
    is_example = inputs.job_count < _FEW_JOBS
    if is_example or inputs.model is not ResourceModel.MACHINES or inputs.may_grow or len(inputs.workloads) != 1:
        return
    size, machines = inputs.workloads[0].size_machines, len(inputs.platform.machines)
    if size is not None and size != machines:
        proposal = machines_instead_of_cores(inputs.platform, size)
        hint = f"; jobs take whole machines: use --platform {proposal}" if proposal else ""
        notes.add(OTHER_SIZE, example=f"{size:,} processors in the workload, {machines:,} machines{hint}")
