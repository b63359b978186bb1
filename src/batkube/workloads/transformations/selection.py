"""Which jobs of a workload are kept, and what is then still true of what was noted when it was read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from batkube.kernel.errors import InputError
from batkube.kernel.fidelity import FidelityNote
from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Instant
from batkube.workloads.model import Job, Workload
from batkube.workloads.run_times import run_time
from batkube.workloads.transformations.conversions import with_note, without_note
from batkube.workloads.walltime_notes import WALLTIME_OVERRUN

#: What begins a note on a trace of which a part is left; how often it is so there stands before it.
_WHOLE_TRACE_MARK = " in the whole trace, of which a part was taken: "
#: So many users, queues or partitions are named where none is as wanted.
_MAX_NAMES_IN_MESSAGE = 10


def window(workload: Workload, begin: Instant, end: Instant | None) -> Workload:
    """Keep the jobs submitted from `begin` on and before `end` (None: to the last)."""
    kept = [job for job in workload.jobs if begin <= job.submit and (end is None or job.submit < end)]
    return _with_jobs(workload, kept, "is submitted in the time window")


def first_jobs(workload: Workload, count: int) -> Workload:
    """Keep the first `count` jobs."""
    return _with_jobs(workload, workload.jobs[:count], f"is among the first {count}")


def drop_zero_run_times(workload: Workload) -> Workload:
    """Leave out the jobs that run for no time at all."""
    return _with_jobs(workload, [job for job in workload.jobs if run_time(job.profile) != 0], "has a run time above 0")


def filter_jobs(
    workload: Workload,
    *,
    sizes: tuple[int | None, int | None] = (None, None),
    users: Collection[str] = (),
    queues: Collection[str] = (),
    partitions: Collection[str] = (),
) -> Workload:
    """Keep the jobs whose size is in a range (None: no bound), and which are of these users, … (none: of all).

    Queues and partitions that have numbers may be called by the names that the trace's header gives them. A name that
    no job has is noted: it may be a slip of the pen.
    """
    least, most = sizes
    header = workload.header
    filters = [
        _NameFilter("user", users, Counter(job.user for job in workload.jobs), {}),
        _NameFilter("queue", queues, Counter(job.queue for job in workload.jobs), header.queue_names),
        _NameFilter("partition", partitions, Counter(job.partition for job in workload.jobs), header.partition_names),
    ]
    of_users, of_queues, of_partitions = (one.matching() for one in filters)
    kept = [
        job
        for job in workload.jobs
        if (least is None or job.size >= least)
        and (most is None or job.size <= most)
        and job.user in of_users
        and job.queue in of_queues
        and job.partition in of_partitions
    ]
    there = [one.describe_available() for one in filters if one.names]
    if least is not None or most is not None:
        extent = [job.size for job in workload.jobs]
        there.append(f"sizes are {min(extent):,} to {max(extent):,}")
    part = _with_jobs(workload, kept, "has such a size, user, queue and partition", "; ".join(there))
    for note in (note for one in filters for note in one.unknown_name_notes()):
        part = with_note(part, note, 1)
    return part


class _NameFilter(NamedTuple):
    """Which users, queues or partitions are wanted, and which there are."""

    kind: str
    #: None at all means all of them.
    names: Collection[str]
    #: How many jobs each has that there is.
    counts: Counter[str]
    #: What numbers are called.
    display_names: Mapping[str, str]

    def matching(self) -> set[str]:
        """Return those that are there and wanted."""
        return {one for one in self.counts if not self.names or self._aliases(one) & set(self.names)}

    def unknown_name_notes(self) -> list[FidelityNote]:
        """Return what to say of names that nothing has."""
        known = {name for one in self.counts for name in self._aliases(one)}
        missing = [name for name in dict.fromkeys(self.names) if name not in known]
        return [FidelityNote("workload", f"no job is of the {self.kind} {name!r}") for name in missing]

    def describe_available(self) -> str:
        """Return what there is, those with most jobs first."""
        titles = [
            f"{one} ({self.display_names[one]})" if one in self.display_names else one
            for one, _ in self.counts.most_common()
        ]
        named = [title for title in titles if title]
        more = f" and {len(named) - _MAX_NAMES_IN_MESSAGE:,} more" if len(named) > _MAX_NAMES_IN_MESSAGE else ""
        return (
            f"{self.kind}s are {', '.join(named[:_MAX_NAMES_IN_MESSAGE])}{more}"
            if named
            else f"no job has a {self.kind}"
        )

    def _aliases(self, one: str) -> set[str]:
        return {one, self.display_names.get(one, one)}


def recount_overruns(workload: Workload) -> Workload:
    """Count those jobs that are killed at their walltimes among the ones there are now, with what they have now.

    A trace's reader counts the jobs of the whole trace; a selection of them, or other walltimes, have another number.
    """
    if not any(note == WALLTIME_OVERRUN for note, _ in workload.notes):
        return workload
    lengths = ((run_time(job.profile), job.walltime) for job in workload.jobs)
    count = sum(run is not None and walltime is not None and run >= walltime for run, walltime in lengths)
    return with_note(without_note(workload, WALLTIME_OVERRUN), WALLTIME_OVERRUN, count)


def mark_notes_of_whole_trace(workload: Workload) -> Workload:
    """Say of what was noted when a trace was read that it is of all its jobs, where only some of them are left.

    Which of them it was is not known any more, and to count 1,081 cancelled jobs among 300 would be wrong.
    """

    def told(note: FidelityNote, count: int) -> tuple[FidelityNote, int]:
        if note == WALLTIME_OVERRUN or _WHOLE_TRACE_MARK in note.message:
            return note, count
        how_often = "once" if count == 1 else f"{count:,} times"
        return FidelityNote(note.subject, f"{how_often}{_WHOLE_TRACE_MARK}{note.message}", note.severity), 1

    return replace(workload, notes=tuple(told(note, count) for note, count in workload.notes))


def _with_jobs(workload: Workload, jobs: Iterable[Job], wanted: str, remedy: str = "") -> Workload:
    kept = list(jobs)
    if not kept:
        first_s, last_s = (workload.jobs[place].submit // NANOSECONDS_PER_SECOND for place in (0, -1))
        there = f"its {len(workload.jobs):,} jobs are submitted from {first_s} s to {last_s} s"
        raise InputError(workload.source, problem=f"no job {wanted}", remedy=remedy or there)
    part = replace(workload, jobs=kept)
    return part if len(kept) == len(workload.jobs) else mark_notes_of_whole_trace(part)
