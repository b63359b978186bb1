"""Select jobs of a workload, and adjust the notes of its reader to the selection."""

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

#: In a note on the whole trace, after the number of occurrences and before the original note.
_WHOLE_TRACE_MARK = " in the whole trace, of which a part was selected: "
#: The number of existing users, queues or partitions in a message when a filter matches none.
_MAX_NAMES_IN_MESSAGE = 10


def window(workload: Workload, begin: Instant, end: Instant | None) -> Workload:
    """Keep the jobs submitted from `begin` on and before `end` (None: to the last)."""
    jobs = [job for job in workload.jobs if begin <= job.submit and (end is None or job.submit < end)]
    return _with_jobs(workload, jobs, "is submitted in the time window")


def first_jobs(workload: Workload, count: int) -> Workload:
    """Keep the first `count` jobs."""
    return _with_jobs(workload, workload.jobs[:count], f"is among the first {count}")


def drop_zero_run_times(workload: Workload) -> Workload:
    """Remove the jobs with a run time of 0."""
    return _with_jobs(workload, [job for job in workload.jobs if run_time(job.profile) != 0], "has a run time above 0")


def filter_jobs(
    workload: Workload,
    *,
    sizes: tuple[int | None, int | None] = (None, None),
    users: Collection[str] = (),
    queues: Collection[str] = (),
    partitions: Collection[str] = (),
) -> Workload:
    """Keep the jobs with a size in the range (None: no bound) and of these users, queues and partitions (empty: all).

    Numbered queues and partitions can also be selected by their names in the trace's header. A name that no job has is
    noted, because it may be a typing error.
    """
    least, most = sizes
    header = workload.header
    filters = [
        _NameFilter("user", users, Counter(job.user for job in workload.jobs), {}),
        _NameFilter("queue", queues, Counter(job.queue for job in workload.jobs), header.queue_names),
        _NameFilter("partition", partitions, Counter(job.partition for job in workload.jobs), header.partition_names),
    ]
    of_users, of_queues, of_partitions = (name_filter.matching() for name_filter in filters)
    selected = [
        job
        for job in workload.jobs
        if (least is None or job.size >= least)
        and (most is None or job.size <= most)
        and job.user in of_users
        and job.queue in of_queues
        and job.partition in of_partitions
    ]
    available = [name_filter.describe_available() for name_filter in filters if name_filter.names]
    if least is not None or most is not None:
        extent = [job.size for job in workload.jobs]
        available.append(f"sizes are {min(extent):,} to {max(extent):,}")
    part = _with_jobs(workload, selected, "matches the size, user, queue and partition", "; ".join(available))
    for note in (note for name_filter in filters for note in name_filter.unknown_name_notes()):
        part = with_note(part, note, 1)
    return part


class _NameFilter(NamedTuple):
    """A filter by users, queues or partitions."""

    kind: str
    #: The selected names; empty for all.
    names: Collection[str]
    #: The number of jobs of each existing user, queue or partition.
    counts: Counter[str]
    #: Names of numbered queues or partitions.
    display_names: Mapping[str, str]

    def matching(self) -> set[str]:
        """Return the existing values that match."""
        return {value for value in self.counts if not self.names or self._aliases(value) & set(self.names)}

    def unknown_name_notes(self) -> list[FidelityNote]:
        """Return a note for each selected name that no job has."""
        existing = {name for value in self.counts for name in self._aliases(value)}
        missing = [name for name in dict.fromkeys(self.names) if name not in existing]
        return [FidelityNote("workload", f"no job has the {self.kind} {name!r}") for name in missing]

    def describe_available(self) -> str:
        """Describe the existing values, those with most jobs first."""
        described = [
            f"{value} ({self.display_names[value]})" if value in self.display_names else value
            for value, _ in self.counts.most_common()
        ]
        titles = [title for title in described if title]
        more = f" and {len(titles) - _MAX_NAMES_IN_MESSAGE:,} more" if len(titles) > _MAX_NAMES_IN_MESSAGE else ""
        return (
            f"{self.kind}s are {', '.join(titles[:_MAX_NAMES_IN_MESSAGE])}{more}"
            if titles
            else f"no job has a {self.kind}"
        )

    def _aliases(self, value: str) -> set[str]:
        return {value, self.display_names.get(value, value)}


def recount_overruns(workload: Workload) -> Workload:
    """Recount the jobs that will be killed at their walltimes.

    The reader counted them in the whole trace; a selection of jobs, or changed walltimes, change the number.
    """
    if not any(note == WALLTIME_OVERRUN for note, _ in workload.notes):
        return workload
    lengths = ((run_time(job.profile), job.walltime) for job in workload.jobs)
    count = sum(run is not None and walltime is not None and run >= walltime for run, walltime in lengths)
    return with_note(without_note(workload, WALLTIME_OVERRUN), WALLTIME_OVERRUN, count)


def mark_notes_of_whole_trace(workload: Workload) -> Workload:
    """Mark the reader's notes as notes on the whole trace, because only a part of its jobs is left.

    The affected jobs are not known any more, and a note on 1,081 cancelled jobs among 300 would be wrong.
    """

    def mark(note: FidelityNote, count: int) -> tuple[FidelityNote, int]:
        if note == WALLTIME_OVERRUN or _WHOLE_TRACE_MARK in note.message:
            return note, count
        how_often = "once" if count == 1 else f"{count:,} times"
        return FidelityNote(note.subject, f"{how_often}{_WHOLE_TRACE_MARK}{note.message}", note.severity), 1

    return replace(workload, notes=tuple(mark(note, count) for note, count in workload.notes))


def _with_jobs(workload: Workload, jobs: Iterable[Job], condition: str, remedy: str = "") -> Workload:
    selected = list(jobs)
    if not selected:
        first_s, last_s = (workload.jobs[place].submit // NANOSECONDS_PER_SECOND for place in (0, -1))
        times = f"its {len(workload.jobs):,} jobs are submitted from {first_s} s to {last_s} s"
        raise InputError(workload.source, problem=f"no job {condition}", remedy=remedy or times)
    part = replace(workload, jobs=selected)
    return part if len(selected) == len(workload.jobs) else mark_notes_of_whole_trace(part)
