"""Convert workloads: scale, clip and shift them before they run.

All functions are pure: they return a new workload that shares unchanged parts with the old one. Jobs keep sharing
profiles. Factors are exact fractions, so that rounding never changes the order of submissions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from msgspec.structs import replace as replace_fields

from batkube.kernel.errors import InputError
from batkube.kernel.fidelity import FidelityNote
from batkube.kernel.instants import LATEST_NS, NANOSECONDS_PER_SECOND, Duration, Instant
from batkube.kernel.quantities import CPU
from batkube.workloads.model import WHOLE_GANG, Delay, Job, Profile, Requests, Workload
from batkube.workloads.run_times import run_time
from batkube.workloads.walltime_notes import WALLTIME_OVERRUN

NOT_TRIMMED = FidelityNote("workload", "a job's run time depends on the machines and could not be trimmed")
NOT_COMPRESSED = FidelityNote("workload", "a job's run time depends on the machines and was not compressed")
SIZE_CLIPPED = FidelityNote("workload", "a job's size was above --clip-size and was reduced to it")
WALLTIME_RAISED = FidelityNote("workload", "a job's walltime was not above its run time and was raised above it")
RUN_TIME_UNKNOWN = FidelityNote("workload", "a job's run time depends on the machines, so its walltime is unchanged")
GANG_TERMS_LOST = FidelityNote("workload", "a job's size changed, so its min_member and min_resources were removed")


def shift_to_zero(workload: Workload) -> Workload:
    """Shift all submissions so that the first job is submitted at 0."""
    first = workload.jobs[0].submit
    shifted = _map_jobs(workload, lambda job: replace_fields(job, submit=Instant(job.submit - first)))
    return replace(shifted, header=workload.header.shifted(first))


def clip_sizes(workload: Workload, max_size: int) -> Workload:
    """Reduce the size of larger jobs to `max_size` machines; keep their run times."""
    larger = sum(job.size > max_size for job in workload.jobs)
    clipped = _resize_jobs(workload, lambda job: replace_fields(job, size=max_size) if job.size > max_size else job)
    return with_note(clipped, SIZE_CLIPPED, larger)


def raise_walltimes(workload: Workload) -> Workload:
    """Raise each walltime that is not above the run time to the next whole second above it.

    Then no job is killed at its walltime: as in Batsim, a job succeeds only if it ends strictly before its walltime.
    """
    short = 0

    def raise_walltime(job: Job) -> Job:
        nonlocal short
        length = run_time(job.profile)
        if length is None or job.walltime is None or job.walltime > length:
            return job
        short += 1
        above = (length // NANOSECONDS_PER_SECOND + 1) * NANOSECONDS_PER_SECOND
        return replace_fields(job, walltime=Duration(_rounded_ns(above)))

    return with_note(without_note(_map_jobs(workload, raise_walltime), WALLTIME_OVERRUN), WALLTIME_RAISED, short)


def trim_run_times(workload: Workload, longest: Duration) -> Workload:
    """Reduce longer run times to `longest`. Profiles keep their names, as in the published Batkube workloads."""
    trimmed, untrimmed = _map_delays(workload, lambda length: min(length, longest))
    too_long = sum(run is None or run > longest for run in map(run_time, untrimmed))
    return with_note(trimmed, NOT_TRIMMED, too_long)


def scale_arrival_rate(workload: Workload, factor: Fraction) -> Workload:
    """Divide the submission times, relative to the first, by `factor`; keep run times."""
    _require_positive(workload, factor, "arrival rate")
    first = workload.jobs[0].submit
    scaled = _map_jobs(
        workload, lambda job: replace_fields(job, submit=Instant(_rounded_ns(first + (job.submit - first) / factor)))
    )
    return replace(scaled, header=workload.header.without_start_time())


def compress_time(workload: Workload, factor: Fraction) -> Workload:
    """Divide submission times (relative to the first), run times and walltimes by `factor`.

    The offered load stays the same. Fixed periods do not scale: a scheduler that runs once per second then runs less
    often per job.
    """
    compressed = scale_walltimes(scale_arrival_rate(workload, factor), 1 / factor)
    scaled, others = _map_delays(compressed, lambda length: Duration(_rounded_ns(length / factor)))
    return with_note(scaled, NOT_COMPRESSED, len(others))


def _map_delays(workload: Workload, new_length: Callable[[Duration], Duration]) -> tuple[Workload, list[Profile]]:
    """Change the length of each delay; jobs keep sharing profiles. Also return the profiles of all other jobs."""
    changed: dict[int, Profile] = {}
    others: list[Profile] = []

    def change(job: Job) -> Job:
        profile = job.profile
        if not isinstance(profile, Delay):
            others.append(profile)
            return job
        if id(profile) not in changed:
            length = new_length(profile.duration)
            changed[id(profile)] = profile if length == profile.duration else replace_fields(profile, duration=length)
        new = changed[id(profile)]
        return job if new is profile else replace_fields(job, profile=new)

    return _map_jobs(workload, change), others


def pack_machines(workload: Workload, cores: int) -> Workload:
    """Convert sizes from processors to machines of `cores` processors, rounding up."""
    if cores < 1:
        raise InputError(workload.source, problem=f"a machine cannot have {cores} cores")
    machines = workload.size_machines
    packed = replace(workload, size_machines=None if machines is None else -(-machines // cores))
    return _resize_jobs(packed, lambda job: replace_fields(job, size=-(-job.size // cores)))


def normalise_cpu(workload: Workload, largest_milli: int, max_milli: int | None = None) -> Workload:
    """Convert each job to one pod whose CPU request is proportional to its size; the largest job gets `largest_milli`.

    cpu = size × largest / largest size, rounded to a millicore, at least one, at most `max_milli`. The first Batkube
    fitted traces of large machines to one node in this way; its upper limit left a little of the node free.
    """
    largest_size = max(job.size for job in workload.jobs)
    requests_of: dict[tuple[int, Requests], Requests] = {}

    def normalise(job: Job) -> Job:
        key = (job.size, job.requests)
        if key not in requests_of:
            # Half a millicore rounds up. Integer arithmetic reproduces the published values exactly.
            cpu_milli = max(1, (2 * job.size * largest_milli + largest_size) // (2 * largest_size))
            if max_milli is not None:
                cpu_milli = min(cpu_milli, max_milli)
            requests_of[key] = tuple(sorted({**dict(job.requests), CPU: cpu_milli}.items()))
        return replace_fields(job, size=1, requests=requests_of[key])

    return replace(_resize_jobs(workload, normalise), size_machines=None)


def scale_walltimes(workload: Workload, factor: Fraction) -> Workload:
    """Multiply every walltime by `factor`."""
    _require_positive(workload, factor, "walltime factor")

    def scale(job: Job) -> Job:
        if job.walltime is None:
            return job
        return replace_fields(job, walltime=Duration(max(1, _rounded_ns(job.walltime * factor))))

    return _map_jobs(workload, scale)


def walltimes_from_run_times(workload: Workload, factor: Fraction) -> Workload:
    """Set every walltime to `factor` times the run time, or to one second if that is 0."""
    _require_positive(workload, factor, "walltime factor")
    unknown = 0

    def limit(job: Job) -> Job:
        nonlocal unknown
        length = run_time(job.profile)
        if length is None:
            unknown += 1
            return job
        return replace_fields(job, walltime=Duration(_rounded_ns(length * factor) or NANOSECONDS_PER_SECOND))

    return with_note(without_note(_map_jobs(workload, limit), WALLTIME_OVERRUN), RUN_TIME_UNKNOWN, unknown)


def without_walltimes(workload: Workload) -> Workload:
    """Remove all walltimes, so that every job runs to its end."""
    return without_note(_map_jobs(workload, lambda job: replace_fields(job, walltime=None)), WALLTIME_OVERRUN)


def with_scheduler(workload: Workload, scheduler: str) -> Workload:
    """Set the scheduler of every job."""
    return _map_jobs(workload, lambda job: replace_fields(job, scheduler=scheduler))


def _map_jobs(workload: Workload, change: Callable[[Job], Job]) -> Workload:
    return replace(workload, jobs=[change(job) for job in workload.jobs])


def _resize_jobs(workload: Workload, change: Callable[[Job], Job]) -> Workload:
    """Change sizes, and reset the gang terms of jobs whose size changed: they were meant for the old size."""
    lost = 0

    def resize(job: Job) -> Job:
        nonlocal lost
        changed = change(job)
        if job.gang == WHOLE_GANG or changed.size == job.size:
            return changed
        lost += 1
        return replace_fields(changed, gang=WHOLE_GANG)

    return with_note(_map_jobs(workload, resize), GANG_TERMS_LOST, lost)


def with_note(workload: Workload, note: FidelityNote, count: int) -> Workload:
    """Add a note, unless `count` is 0."""
    return replace(workload, notes=(*workload.notes, (note, count))) if count else workload


def without_note(workload: Workload, note: FidelityNote) -> Workload:
    """Remove a note that does not apply any more."""
    return replace(workload, notes=tuple((other, count) for other, count in workload.notes if other != note))


def _require_positive(workload: Workload, factor: Fraction, name: str) -> None:
    if factor <= 0:
        raise InputError(workload.source, problem=f"the {name} must be larger than 0, not {factor}")


def _rounded_ns(exact: Fraction | int) -> int:
    """Round to a nanosecond. Raises InputError if the time exceeds the longest possible run."""
    ns = round(exact)
    if ns > LATEST_NS:
        raise InputError(
            "scaling", problem="a time would exceed the longest possible run, 292 years", remedy="use another factor"
        )
    return ns
