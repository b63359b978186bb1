"""Workload → workload: what is done to a trace before it is run.

Every function is pure: it returns a new workload and shares with the old one what it did not change. Profiles stay
shared between jobs. Numbers that scale are exact fractions, so that the order of submissions never changes by rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from fractions import Fraction

from msgspec.structs import replace as replace_fields

from batkube.kernel.errors import InputError
from batkube.kernel.fidelity import FidelityNote
from batkube.kernel.instants import LATEST_NS, NANOSECONDS_PER_SECOND, Duration, Instant
from batkube.kernel.quantities import CPU
from batkube.workloads.model import WHOLE, Delay, Job, Profile, Requests, Workload
from batkube.workloads.run_times import run_time
from batkube.workloads.walltimes import OVERRUN

NOT_TRIMMED = FidelityNote("workload", "a job's run time depends on the machines and could not be trimmed")
NOT_COMPRESSED = FidelityNote("workload", "a job's run time depends on the machines and stayed as it is")
CLIPPED = FidelityNote("workload", "a job asked for more than --clip-size and got that much")
RAISED = FidelityNote("workload", "a job's walltime was not above its run time and was raised above it")
NO_WALLTIME_MADE = FidelityNote("workload", "a job's run time depends on the machines: it got no walltime from it")
#: What begins a note on a trace of which a part is left; how often it is so there stands before it.
_IN_THE_WHOLE = " in the whole trace, of which a part was taken: "
TERMS_LOST = FidelityNote("workload", "a job has another size now, and its min_member and min_resources are gone")


def shift_to_zero(workload: Workload) -> Workload:
    """Let the first job be submitted at 0 and keep the distances."""
    first = workload.jobs[0].submit
    moved = _each(workload, lambda job: replace_fields(job, submit=Instant(job.submit - first)))
    return replace(moved, header=workload.header.moved(first))


def window(workload: Workload, begin: Instant, end: Instant | None) -> Workload:
    """Keep the jobs submitted from `begin` on and before `end` (None: to the last)."""
    kept = [job for job in workload.jobs if begin <= job.submit and (end is None or job.submit < end)]
    return _with_jobs(workload, kept, "is submitted in the time window")


def first_jobs(workload: Workload, count: int) -> Workload:
    """Keep the first `count` jobs."""
    return _with_jobs(workload, workload.jobs[:count], f"is among the first {count}")


def selected_jobs(
    workload: Workload,
    *,
    sizes: tuple[int | None, int | None] = (None, None),
    users: Collection[str] = (),
    queues: Collection[str] = (),
    partitions: Collection[str] = (),
) -> Workload:
    """Keep the jobs whose size is in a range (None: no bound), and which are of these users, … (none: of all).

    Queues and partitions that have numbers may be called by the names that the trace's header gives them.
    """
    least, most = sizes
    queue_names, partition_names = workload.header.queue_names, workload.header.partition_names
    kept = [
        job
        for job in workload.jobs
        if (least is None or job.size >= least)
        and (most is None or job.size <= most)
        and (not users or job.user in users)
        and (not queues or job.queue in queues or queue_names.get(job.queue) in queues)
        and (not partitions or job.partition in partitions or partition_names.get(job.partition) in partitions)
    ]
    return _with_jobs(workload, kept, "has such a size, user, queue and partition")


def clip_sizes(workload: Workload, most: int) -> Workload:
    """Let no job ask for more than `most` machines; its run time stays."""
    larger = sum(job.size > most for job in workload.jobs)
    clipped = _resized(workload, lambda job: replace_fields(job, size=most) if job.size > most else job)
    return _noted(clipped, CLIPPED, larger)


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
        return replace_fields(job, walltime=Duration(_timed(above)))

    return _noted(_without(_each(workload, raise_one), OVERRUN), RAISED, short)


def recount_overruns(workload: Workload) -> Workload:
    """Count those jobs that are killed at their walltimes among the ones there are now, with what they have now.

    A trace's reader counts the jobs of the whole trace; a selection of them, or other walltimes, have another number.
    """
    if not any(note == OVERRUN for note, _ in workload.notes):
        return workload
    lengths = ((run_time(job.profile), job.walltime) for job in workload.jobs)
    count = sum(run is not None and walltime is not None and run >= walltime for run, walltime in lengths)
    return _noted(_without(workload, OVERRUN), OVERRUN, count)


def about_the_whole(workload: Workload) -> Workload:
    """Say of what was noted when a trace was read that it is of all its jobs, where only some of them are left.

    Which of them it was is not known any more, and to count 1,081 cancelled jobs among 300 would be wrong.
    """

    def told(note: FidelityNote, count: int) -> tuple[FidelityNote, int]:
        if note == OVERRUN or _IN_THE_WHOLE in note.message:
            return note, count
        how_often = "once" if count == 1 else f"{count:,} times"
        return FidelityNote(note.subject, f"{how_often}{_IN_THE_WHOLE}{note.message}", note.severity), 1

    return replace(workload, notes=tuple(told(note, count) for note, count in workload.notes))


def drop_zero_run_times(workload: Workload) -> Workload:
    """Leave out the jobs that run for no time at all."""
    return _with_jobs(workload, [job for job in workload.jobs if run_time(job.profile) != 0], "has a run time above 0")


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

    return _noted(_each(workload, trim), NOT_TRIMMED, untrimmed)


def scale_arrival_rate(workload: Workload, factor: Fraction) -> Workload:
    """Let jobs arrive `factor` times as fast, counted from the first one; run times stay."""
    _refuse_unless_positive(workload, factor, "arrival rate")
    first = workload.jobs[0].submit
    scaled = _each(
        workload, lambda job: replace_fields(job, submit=Instant(_timed(first + (job.submit - first) / factor)))
    )
    return replace(scaled, header=workload.header.undated())


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
            length = Duration(_timed(profile.duration / factor))
            shorter[id(profile)] = replace_fields(profile, duration=length)
        return replace_fields(job, profile=shorter[id(profile)])

    return _noted(_each(compressed, compress), NOT_COMPRESSED, untouched)


def pack_machines(workload: Workload, cores: int) -> Workload:
    """Count machines of `cores` processors instead of processors, rounding up."""
    if cores < 1:
        raise InputError(workload.source, problem=f"a machine cannot have {cores} cores")
    machines = workload.size_machines
    packed = replace(workload, size_machines=None if machines is None else -(-machines // cores))
    return _resized(packed, lambda job: replace_fields(job, size=-(-job.size // cores)))


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

    return replace(_resized(workload, normalise), size_machines=None)


def scale_walltimes(workload: Workload, factor: Fraction) -> Workload:
    """Multiply every walltime by `factor`."""
    _refuse_unless_positive(workload, factor, "walltime factor")

    def scale(job: Job) -> Job:
        if job.walltime is None:
            return job
        return replace_fields(job, walltime=Duration(max(1, _timed(job.walltime * factor))))

    return _each(workload, scale)


def walltimes_from_run_times(workload: Workload, factor: Fraction) -> Workload:
    """Give every job a walltime of `factor` times its run time, and one second where that is 0."""
    _refuse_unless_positive(workload, factor, "walltime factor")
    unknown = 0

    def limit(job: Job) -> Job:
        nonlocal unknown
        length = run_time(job.profile)
        if length is None:
            unknown += 1
            return job
        return replace_fields(job, walltime=Duration(_timed(length * factor) or NANOSECONDS_PER_SECOND))

    return _noted(_without(_each(workload, limit), OVERRUN), NO_WALLTIME_MADE, unknown)


def without_walltimes(workload: Workload) -> Workload:
    """Let every job run to its end."""
    return _without(_each(workload, lambda job: replace_fields(job, walltime=None)), OVERRUN)


def with_scheduler(workload: Workload, scheduler: str) -> Workload:
    """Let every job ask for the scheduler of that name."""
    return _each(workload, lambda job: replace_fields(job, scheduler=scheduler))


def _each(workload: Workload, change: Callable[[Job], Job]) -> Workload:
    return replace(workload, jobs=[change(job) for job in workload.jobs])


def _resized(workload: Workload, change: Callable[[Job], Job]) -> Workload:
    """Give jobs other sizes; what their PodGroups would say was meant for the old ones."""
    lost = 0

    def resize(job: Job) -> Job:
        nonlocal lost
        changed = change(job)
        if job.gang == WHOLE or changed.size == job.size:
            return changed
        lost += 1
        return replace_fields(changed, gang=WHOLE)

    return _noted(_each(workload, resize), TERMS_LOST, lost)


def _with_jobs(workload: Workload, jobs: Iterable[Job], wanted: str) -> Workload:
    kept = list(jobs)
    if not kept:
        last_s = workload.jobs[-1].submit // NANOSECONDS_PER_SECOND
        raise InputError(
            workload.source,
            problem=f"no job {wanted}",
            remedy=f"its {len(workload.jobs)} jobs are submitted from "
            f"{workload.jobs[0].submit // NANOSECONDS_PER_SECOND} s to {last_s} s",
        )
    part = replace(workload, jobs=kept)
    return part if len(kept) == len(workload.jobs) else about_the_whole(part)


def _noted(workload: Workload, note: FidelityNote, count: int) -> Workload:
    return replace(workload, notes=(*workload.notes, (note, count))) if count else workload


def _without(workload: Workload, note: FidelityNote) -> Workload:
    """Return a workload of which what was noted is not so any more."""
    return replace(workload, notes=tuple((one, count) for one, count in workload.notes if one != note))


def _refuse_unless_positive(workload: Workload, factor: Fraction, name: str) -> None:
    if factor <= 0:
        raise InputError(workload.source, problem=f"the {name} must be larger than 0, not {factor}")


def _timed(exact: Fraction | int) -> int:
    """Return the nearest nanosecond, which must fit a run."""
    ns = round(exact)
    if ns > LATEST_NS:
        raise InputError("scaling", problem="a time would be more than the 292 years a run can last")
    return ns
