"""Outputs that are written during the run: pods.csv and machine_states.csv."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import TextIO

from batkube.cluster.jobs.outcomes import JobPodsRecord, PodRecord
from batkube.cluster.mapping import NAMESPACE
from batkube.cluster.store import Key
from batkube.kernel.instants import START, Instant, format_seconds
from batkube.kernel.quantities import CPU, GPU, MEMORY
from batkube.outputs.writers.csv_fields import amount_cells, csv_field
from batkube.workloads.model import Requests

POD_COLUMNS = (
    "pod",
    "job_id",
    "workload_name",
    "node",
    "machine",
    "created",
    "scheduled",
    "started",
    "finished",
    "phase",
    "attempts",
    "last_reason",
    "owner",
    "cpu",
    "memory",
    "gpus",
    "released",
)
MACHINE_STATE_COLUMNS = (
    "time",
    "nb_sleeping",
    "nb_switching_on",
    "nb_switching_off",
    "nb_idle",
    "nb_computing",
    "nb_unavailable",
)

#: The resources whose requests have columns.
_REQUEST_RESOURCES = (CPU, MEMORY, GPU)
#: Returns the name of a pod, given its key: all pods of jobs are in one namespace.
_POD_NAME: Callable[[Key], str] = operator.itemgetter(slice(len(NAMESPACE) + 1, None))

AttemptsLookup = Callable[[Key], tuple[int, str]]
"""Returns how often placing a pod failed, and the reason of the last failure."""


class PodsWriter:
    """pods.csv: a row per pod, in the order in which jobs, and pods without a job, ended."""

    def __init__(self, file: TextIO, node_names: Sequence[str], attempts_of: AttemptsLookup | None = None) -> None:
        """`attempts_of` returns the failed attempts to place a pod; None for policies, which have none."""
        self._file = file
        self._file.write(",".join(POD_COLUMNS) + "\n")
        self._node_names = node_names
        #: The two cells that name a machine, by its id; None for pods that were not placed.
        self._places: dict[int | None, str] = {None: ","}
        self._attempts_of = attempts_of
        #: The cells of requests: many jobs have equal ones.
        self._request_cells: dict[Requests, str] = {}

    def write(self, record: JobPodsRecord) -> None:
        """Write the pods of one job.

        They share most of their cells, so each shared text is formatted once. Only a job's name needs quoting: pod and
        node names are Kubernetes names.
        """
        job = record.job
        owner = f",{csv_field(job.name)},{csv_field(job.workload)},"
        created = format_seconds(record.created)
        end = f"{_time_cell(record.finished)},{record.phase}"
        if self._attempts_of is not None:
            self._write_with_attempts(record, owner, created, end, self._attempts_of)
            return
        last_cells = f"{csv_field(record.reason)},{record.owner}{self._cells_of(job.requests)}"
        ends: Iterable[str]
        if (
            _are_equal(record.scheduled)
            and _are_equal(record.started)
            and None not in record.machine_ids
            and not record.released
        ):
            start = _start_cells(record.scheduled[0], record.started[0])
            ends = itertools.repeat(f",{created},{start},{end},1,{last_cells},{_time_cell(record.finished)}\n")
        else:
            ends = [
                f",{created},{_start_cells(scheduled, started)},{end},{number is not None:d},{last_cells},{released}\n"
                for number, scheduled, started, released in zip(
                    record.machine_ids, record.scheduled, record.started, _release_cells(record), strict=True
                )
            ]
        if len(self._places) <= len(self._node_names):  # clients create nodes during a run
            self._places |= {number: f"{node},{number}" for number, node in enumerate(self._node_names)}
        places = map(self._places.__getitem__, record.machine_ids)
        rows = zip(map(_POD_NAME, record.keys), itertools.repeat(owner), places, ends, strict=False)
        self._file.write("".join(itertools.chain.from_iterable(rows)))

    def _write_with_attempts(
        self, record: JobPodsRecord, owner: str, created: str, end: str, attempts_of: AttemptsLookup
    ) -> None:
        last_cells = f"{record.owner}{self._cells_of(record.job.requests)}"
        for key, number, scheduled, started, released in zip(
            record.keys,
            record.machine_ids,
            record.scheduled,
            record.started,
            _release_cells(record),
            strict=True,
        ):
            failures, last_reason = attempts_of(key)
            node_cells = "," if number is None else f"{self._node_names[number]},{number}"
            times = _start_cells(scheduled, started)
            attempts = failures + (number is not None)
            reason = csv_field(record.reason or last_reason)
            name = _POD_NAME(key)
            self._file.write(
                f"{name}{owner}{node_cells},{created},{times},{end},{attempts},{reason},{last_cells},{released}\n"
            )

    def write_pod(self, record: PodRecord) -> None:
        """Write a pod that does not belong to a workload job."""
        failures, last_reason = (0, "") if self._attempts_of is None else self._attempts_of(record.key)
        name = record.key.removeprefix(f"{NAMESPACE}/")
        node_cells = f"{record.node},{'' if record.machine_id is None else record.machine_id}"
        times = ",".join(map(_time_cell, (record.created, record.scheduled, record.started, record.finished)))
        attempts = failures + (record.scheduled is not None)
        reason = csv_field(record.reason or last_reason)
        released = "" if record.scheduled is None else _time_cell(record.finished)
        self._file.write(
            f"{name},{csv_field(record.job)},{csv_field(record.workload)},{node_cells},{times},{record.phase},"
            f"{attempts},{reason},{record.owner}{self._cells_of(record.requests)},{released}\n"
        )

    def _cells_of(self, requests: Requests) -> str:
        """Return the cells for what a pod requests, each after a comma."""
        cells = self._request_cells.get(requests)
        if cells is None:
            amounts = amount_cells(dict(requests), _REQUEST_RESOURCES)
            cells = self._request_cells[requests] = "".join(f",{cell}" for cell in amounts)
        return cells


def _release_cells(record: JobPodsRecord) -> list[str]:
    """Return when each pod left its node; empty for pods that were not bound."""
    released = record.released or [None] * len(record.keys)
    return [
        "" if scheduled is None else _time_cell(record.finished if instant is None else instant)
        for scheduled, instant in zip(record.scheduled, released, strict=True)
    ]


def _are_equal(instants: Sequence[Instant | None]) -> bool:
    return instants.count(instants[0]) == len(instants)


def _start_cells(scheduled: Instant | None, started: Instant | None) -> str:
    return f"{_time_cell(scheduled)},{_time_cell(started)}"


def _time_cell(instant: Instant | None) -> str:
    return "" if instant is None else format_seconds(instant)


class MachineStatesWriter:
    """machine_states.csv: a row per instant at which the number of machines in some state changed.

    Also sums up how long machines were in these states, and records until when any was busy.
    """

    def __init__(self, file: TextIO, machine_count: int) -> None:
        self._file = file
        self._file.write(",".join(MACHINE_STATE_COLUMNS) + "\n")
        #: Number of machines of the platform.
        self.machine_count = machine_count
        self._since = START
        self._busy = self._absent = self._created = 0
        self._created_machine_ns = 0
        #: Numbers of machines that sleep, are switching on, are switching off.
        self._asleep = (0, 0, 0)
        self._written: tuple[int, ...] | None = None
        #: Machine-nanoseconds with work, up to the last change.
        self.busy_machine_ns = 0
        #: Machine-nanoseconds without use, because the nodes are absent or cordoned.
        self.absent_machine_ns = 0
        #: Machine-nanoseconds asleep, switching on, switching off.
        self.asleep_machine_ns: Sequence[int] = [0, 0, 0]
        #: Until when any machine had work, up to the last change.
        self.busy_until = START
        #: Machine-nanoseconds, up to then, of nodes that programs created beyond the platform.
        self.created_machine_ns = 0

    def record_states(self, busy: int, now: Instant, absent: int = 0, created: int = 0) -> None:
        """Record that from `now` on, `busy` machines have work and `absent` ones take no work.

        `created` is the number of nodes that exist beyond the platform. Several changes at one instant make one row.
        """
        self._advance_to(now)
        self._busy, self._absent, self._created = busy, absent, created

    def record_power_states(self, sleeping: int, switching_on: int, switching_off: int, now: Instant) -> None:
        """Record how many machines are asleep, switching on and switching off from `now` on."""
        self._advance_to(now)
        self._asleep = sleeping, switching_on, switching_off

    def finish(self, now: Instant) -> None:
        """Account for the states until the end of the run at `now`, and write the last row."""
        self._advance_to(now)
        self.flush()

    def _advance_to(self, now: Instant) -> None:
        if now <= self._since:
            return
        self.flush()
        length = now - self._since
        self._created_machine_ns += self._created * length
        if self._busy:
            self.busy_machine_ns += self._busy * length
            self.busy_until = now
            self.created_machine_ns = self._created_machine_ns
        self.absent_machine_ns += self._absent * length
        if any(self._asleep):
            self.asleep_machine_ns = [
                total + count * length for total, count in zip(self.asleep_machine_ns, self._asleep, strict=True)
            ]
        self._since = now

    def flush(self) -> None:
        """Write the state of the last instant, if it differs from the row before."""
        idle = self.machine_count + self._created - self._busy - self._absent - sum(self._asleep)
        state = (*self._asleep, idle, self._busy, self._absent)
        if state != self._written:
            self._file.write(f"{format_seconds(self._since)},{','.join(map(str, state))}\n")
            self._written = state
