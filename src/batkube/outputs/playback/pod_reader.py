"""Reads the pods of a run from pods.csv, and the attempts to place them from the journal."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from batkube.kernel.instants import Instant
from batkube.kernel.quantities import MACHINE
from batkube.outputs.measures.run_data.run_files import RunFiles
from batkube.outputs.measures.run_data.text_table import read_table
from batkube.outputs.playback.cells import REQUEST_COLUMNS, Cells, at_resolution
from batkube.outputs.playback.deltas import Attempt, Attempts
from batkube.outputs.playback.model import JournalEntry, RecordedJob, RecordedPod
from batkube.version import __version__

_REQUIRED = (
    "pod",
    "job_id",
    "workload_name",
    "node",
    "created",
    "scheduled",
    "started",
    "finished",
    "phase",
    *REQUEST_COLUMNS,
    "released",
)


def read_pods(files: RunFiles, jobs: Sequence[RecordedJob], *, whole_machines: bool) -> tuple[RecordedPod, ...]:
    """Return the pods in order of creation; those of one instant in the order of the file."""
    table = read_table(files.file("pods.csv"))
    table.require(_REQUIRED, f"use a run of Batkube {__version__}, or repeat it with `batkube rerun`")
    cells = Cells(table)
    jobs_by_name = {(job.workload, job.name): job for job in jobs}
    texts = [cells.texts(name) for name in ("pod", "workload_name", "job_id", "node", "phase", "last_reason", "owner")]
    created = cells.present_instants("created")
    times = [cells.instants(name) for name in ("scheduled", "started")]
    ends = [
        finished if released is None else released
        for finished, released in zip(cells.instants("finished"), cells.instants("released"), strict=True)
    ]
    attempts, requests = cells.counts("attempts"), _requests(cells, whole_machines=whole_machines)
    columns = zip(created, *texts, *times, ends, attempts, requests, strict=True)
    pods = []
    for number, row in enumerate(sorted(columns, key=lambda row: row[0])):
        at, name, workload, job_id, node, phase, reason, owner, bound, started, ended, count, amounts = row
        job = jobs_by_name.get((workload, job_id))
        bound, started, ended = _in_order(at, bound, started, ended)
        position = None if job is None else job.number
        pods.append(
            RecordedPod(number, name, position, node, at, bound, started, ended, phase, count, reason, owner, amounts)
        )
    return tuple(pods)


def _requests(cells: Cells, *, whole_machines: bool) -> Sequence[Mapping[str, int]]:
    """Return the amounts that each pod takes from its node; equal ones share a dict."""
    amounts = cells.amounts(REQUEST_COLUMNS)
    if not whole_machines:
        return amounts
    with_machine = {id(requests): {**requests, MACHINE: 1} for requests in amounts}
    return [with_machine[id(requests)] for requests in amounts]


def _in_order(
    created: Instant, bound: Instant | None, started: Instant | None, ended: Instant | None
) -> tuple[Instant | None, Instant | None, Instant | None]:
    """Return the times of a pod, made ascending: those of an emulated run come from watches, which may miss some."""
    bound = started if bound is None else bound
    times: list[Instant | None] = []
    latest = created
    for time in (bound, started, ended):
        latest = latest if time is None else max(latest, time)
        times.append(None if time is None else latest)
    return times[0], times[1], times[2]


def with_pods(jobs: Sequence[RecordedJob], pods: Iterable[RecordedPod]) -> tuple[RecordedJob, ...]:
    """Return the jobs with the numbers of their pods."""
    numbers: defaultdict[int, list[int]] = defaultdict(list)
    for pod in pods:
        if pod.job is not None:
            numbers[pod.job].append(pod.number)
    return tuple(msgspec.structs.replace(job, pods=tuple(numbers.get(job.number, ()))) for job in jobs)


def attempts_of(entries: Iterable[JournalEntry], pods: Sequence[RecordedPod]) -> Attempts:
    """Return the failed attempts to place each pod."""
    by_name: defaultdict[str, list[RecordedPod]] = defaultdict(list)
    for pod in pods:
        by_name[pod.name].append(pod)
    attempts: defaultdict[int, list[Attempt]] = defaultdict(list)
    for entry in entries:
        name = entry.fields.get("pod")
        if entry.event not in ("attempt", "unschedulable") or not isinstance(name, str):
            continue
        at = at_resolution(entry.at)
        candidates = by_name.get(name.removeprefix("default/"), ())
        # A pod may have the name of an earlier one: the latest that existed by then.
        position = bisect_right(candidates, at, key=lambda pod: pod.created)
        if position:
            failed, reason = entry.fields.get("failed"), entry.fields.get("reason")
            attempt = Attempt(at, failed if isinstance(failed, int) else 0, str(reason or ""))
            attempts[candidates[position - 1].number].append(attempt)
    return attempts
