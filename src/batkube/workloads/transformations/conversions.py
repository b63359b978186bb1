"""Workload → workload: what is done to a trace before it is run.

Every function is pure: it returns a new workload and shares with the old one what it did not change. Profiles stay
shared between jobs. Numbers that scale are exact fractions, so that the order of submissions never changes by rounding.
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
NOT_COMPRESSED = FidelityNote("workload", "a job's run time depends on the machines and stayed as it is")
SIZE_CLIPPED = FidelityNote("workload", "a job asked for more than --clip-size and got that much")
WALLTIME_RAISED = FidelityNote("workload", "a job's walltime was not above its run time and was raised above it")
RUN_TIME_UNKNOWN = FidelityNote("workload", "a job's run time depends on the machines: it got no walltime from it")
GANG_TERMS_LOST = FidelityNote("workload", "a job has another size now, and its min_member and min_resources are gone")


def shift_to_zero(workload: Workload) -> Workload:
    """Let the first job be submitted at 0 and keep the distances."""
    first = workload.jobs[0].submit
    moved = _map_jobs(workload, lambda job: replace_fields(job, submit=Instant(job.submit - first)))
    return replace(moved, header=workload.header.shifted(first))


def clip_sizes(workload: Workload, most: int) -> Workload:
    """Let no job ask for more than `most` machines; its run time stays."""
    larger = sum(job.size > most for job in workload.jobs)
    clipped = _resize_jobs(workload, lambda job: replace_fields(job, size=most) if job.size > most else job)
    return with_note(clipped, SIZE_CLIPPED, larger)


def raise_walltimes(workload: Workload) -> Workload:
    """Let no job be killed at its walltime: one that is not above the run time becomes the next whole second above it.

    Batsim lets a job succeed only if it ends strictly before its walltime.
    """
    short = 0

    def raise_one(job: Job) -> Job:
        nonlocal short
        length = run_time(job.profile)
        if length is None or job.walltime is None or job.walltime > length:
            return job
        short += 1
        above = (length // NANOSECONDS_PER_SECOND + 1) * NANOSECONDS_PER_SECOND
        return replace_fields(job, walltime=Duration(_rounded_ns(above)))

    return with_note(without_note(_map_jobs(workload, raise_one), WALLTIME_OVERRUN), WALLTIME_RAISED, short)


def trim_run_times(workload: Workload, longest: Duration) -> Workload:
    """Let no job run longer than `longest`. Profiles keep their names, as in the published Batkube workloads."""
    trimmed: dict[int, Profile] = {}
    untrimmed = 0

    def trim(job: Job) -> Job:
        nonlocal untrimmed
        profile = job.profile
        if not isinstance(profile, Delay):
            length = run_time(profile)
            untrimmed += length is None or length > longest
            return job
        if profile.duration <= longest:
            return job
        shorter = trimmed.get(id(profile))
        if shorter is None:
            shorter = trimmed[id(profile)] = replace_fields(profile, duration=longest)
        return replace_fields(job, profile=shorter)

    return with_note(_map_jobs(workload, trim), NOT_TRIMMED, untrimmed)


def scale_arrival_rate(workload: Workload, factor: Fraction) -> Workload:
    """Let jobs arrive `factor` times as fast, counted from the first one; run times stay."""
    _require_positive(workload, factor, "arrival rate")
    first = workload.jobs[0].submit
    scaled = _map_jobs(
        workload, lambda job: replace_fields(job, submit=Instant(_rounded_ns(first + (job.submit - first) / factor)))
    )
    return replace(scaled, header=workload.header.without_start_time())


def compress_time(workload: Workload, factor: Fraction) -> Workload:
    """Let everything pass `factor` times as fast, counted from the first job: arrivals, run times and walltimes.

    The offered load stays as it is. What has a pace of its own does not: a scheduler that looks once a second then
    looks that much less often in the life of a job.
    """
    compressed = scale_walltimes(scale_arrival_rate(workload, factor), 1 / factor)
    shorter: dict[int, Profile] = {}
    untouched = 0

    def compress(job: Job) -> Job:
        nonlocal untouched
        profile = job.profile
        if not isinstance(profile, Delay):
            untouched += 1
            return job
        if id(profile) not in shorter:
            length = Duration(_rounded_ns(profile.duration / factor))
            shorter[id(profile)] = replace_fields(profile, duration=length)
        return replace_fields(job, profile=shorter[id(profile)])

    return with_note(_map_jobs(compressed, compress), NOT_COMPRESSED, untouched)


def pack_machines(workload: Workload, cores: int) -> Workload:
    """Count machines of `cores` processors instead of processors, rounding up."""
    if cores < 1:
        raise InputError(workload.source, problem=f"a machine cannot have {cores} cores")
    machines = workload.size_machines
    packed = replace(workload, size_machines=None if machines is None else -(-machines // cores))
    return _resize_jobs(packed, lambda job: replace_fields(job, size=-(-job.size // cores)))


def normalise_cpu(workload: Workload, largest_milli: int, most_milli: int | None = None) -> Workload:
    """Turn each job into one pod whose cpu is its share of the largest job, which gets `largest_milli`.

    cpu = size × largest / largest size, to the nearest millicore, at least one, at most `most_milli`. This is how the
    first Batkube fitted traces of large machines to one node; it left a little of the node free with the upper limit.
    """
    largest_size = max(job.size for job in workload.jobs)
    requests_of: dict[tuple[int, Requests], Requests] = {}

    def normalise(job: Job) -> Job:
        key = (job.size, job.requests)
        if key not in requests_of:
            # Half a millicore rounds up; integers only, so that the published values come out to the last digit.
            cpu_milli = max(1, (2 * job.size * largest_milli + largest_size) // (2 * largest_size))
            if most_milli is not None:
                cpu_milli = min(cpu_milli, most_milli)
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
    """Give every job a walltime of `factor` times its run time, and one second where that is 0."""
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
    """Let every job run to its end."""
    return without_note(_map_jobs(workload, lambda job: replace_fields(job, walltime=None)), WALLTIME_OVERRUN)


def with_scheduler(workload: Workload, scheduler: str) -> Workload:
    """Let every job ask for the scheduler of that name."""
    return _map_jobs(workload, lambda job: replace_fields(job, scheduler=scheduler))


def _map_jobs(workload: Workload, change: Callable[[Job], Job]) -> Workload:
    return replace(workload, jobs=[change(job) for job in workload.jobs])


def _resize_jobs(workload: Workload, change: Callable[[Job], Job]) -> Workload:
    """Give jobs other sizes; what their PodGroups would say was meant for the old ones."""
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
    """Return a workload with one note more, if there is anything to note."""
    return replace(workload, notes=(*workload.notes, (note, count))) if count else workload


def without_note(workload: Workload, note: FidelityNote) -> Workload:
    """Return a workload of which what was noted is not so any more."""
    return replace(workload, notes=tuple((one, count) for one, count in workload.notes if one != note))


def _require_positive(workload: Workload, factor: Fraction, name: str) -> None:
    if factor <= 0:
        raise InputError(workload.source, problem=f"the {name} must be larger than 0, not {factor}")


def _rounded_ns(exact: Fraction | int) -> int:
    """Return the nearest nanosecond, which must fit a run."""
    ns = round(exact)
    if ns > LATEST_NS:
        raise InputError("scaling", problem="a time would be more than the 292 years a run can last")
    return ns
