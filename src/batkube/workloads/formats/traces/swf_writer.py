"""Write the Standard Workload Format. It has only numbers, so names are numbered, and other values are left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from batkube.kernel.instants import NANOSECONDS_PER_SECOND
from batkube.workloads.delay_profiles import exact_seconds
from batkube.workloads.formats.traces.swf_header import header_text
from batkube.workloads.model import Job, Workload
from batkube.workloads.run_times import fixed_run_time, run_time


def swf_text(workload: Workload) -> Iterator[str]:
    """Yield the lines of `workload`: a header, then 18 fields per job."""
    processors = workload.size_machines or max(job.size for job in workload.jobs)
    yield "; Version: 2.2\n; Conversion: Batkube\n"
    yield from header_text(workload.header)
    yield f"; MaxJobs: {len(workload.jobs)}\n; MaxRecords: {len(workload.jobs)}\n; MaxProcs: {processors}\n"
    yield from _origin_lines(workload)
    keep_names = all(_is_number(job.name) for job in workload.jobs)
    if not keep_names:
        yield "; Note: jobs are numbered in the order of their submission; their names were not numbers\n"
    if any(has_fractional_seconds(job) for job in workload.jobs):
        yield "; Note: times have parts of seconds; the format has whole ones\n"
    users = _assign_numbers(job.user for job in workload.jobs)
    queues = _assign_numbers(job.queue for job in workload.jobs)
    partitions = _assign_numbers(job.partition for job in workload.jobs)
    yield from _name_lines("Note: user {} is", users, {})
    yield from _name_lines("Queue: {}", queues, workload.header.queue_names)
    yield from _name_lines("Partition: {}", partitions, workload.header.partition_names)
    for number, job in enumerate(workload.jobs, 1):
        run = fixed_run_time(job, workload.source, "SWF")
        name = job.name if keep_names else number
        walltime = "-1" if job.walltime is None else exact_seconds(job.walltime)
        user, queue = users.get(job.user, "-1"), queues.get(job.queue, "-1")
        yield (
            f"{name} {exact_seconds(job.submit)} -1 {exact_seconds(run)} {job.size} -1 -1 "
            f"{job.size} {walltime} -1 1 {user} -1 -1 {queue} {partitions.get(job.partition, '-1')} -1 -1\n"
        )


def _name_lines(template: str, numbers: dict[str, str], display_names: Mapping[str, str]) -> Iterator[str]:
    """Yield a header line per number with the name that it replaces, or its name in the trace's header."""
    for name, number in numbers.items():
        meaning = display_names.get(name, name)
        if meaning != number:
            yield f"; {template.format(number)} {_single_line(meaning)}\n"


def _origin_lines(workload: Workload) -> Iterator[str]:
    """Yield header lines with the source of the jobs and the notes on their conversion."""
    yield f"; Note: from {_single_line(Path(workload.source).name)}\n"
    yield from (f"; Note: {_single_line(note.message_with_count(count))}\n" for note, count in workload.notes)


def _single_line(text: str) -> str:
    return " ".join(text.split())


def has_fractional_seconds(job: Job) -> bool:
    """Return whether a time of the job is not a whole number of seconds, as the format requires."""
    times = (job.submit, run_time(job.profile) or 0, job.walltime or 0)
    return any(time % NANOSECONDS_PER_SECOND for time in times)


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdecimal()


def _assign_numbers(names: Iterable[str]) -> dict[str, str]:
    """Map each name to a number: to itself if all names are numbers, else in order of first appearance."""
    distinct = [name for name in dict.fromkeys(names) if name]
    if all(_is_number(name) for name in distinct):
        return {name: name for name in distinct}
    return {name: str(number) for number, name in enumerate(distinct, 1)}
