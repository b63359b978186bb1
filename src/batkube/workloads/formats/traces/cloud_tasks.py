"""Common parts of the readers of cloud traces: tasks of one pod, with requests as shares of the largest machine.

The size of that machine is not published. Batkube counts a hundredth of it as one core, or as one GiB. A machine with
100 cores and 100Gi is therefore as large as the trace's largest machine, and `50,25Gi` has half of its CPU and a
quarter of its memory.
"""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal, InvalidOperation
from operator import attrgetter
from pathlib import Path
from typing import NoReturn

from batkube.kernel.errors import InputError
from batkube.kernel.fidelity import FidelityNote
from batkube.kernel.instants import Duration, Instant
from batkube.kernel.quantities import CPU, MEMORY
from batkube.workloads.delay_profiles import DelayProfiles
from batkube.workloads.model import Job, Requests, Workload
from batkube.workloads.names import name_problem

_GIB, _MILLI = 1 << 30, 1000
#: The names of tables, and of the tables with their requests (Alibaba) or users (Google).
_COMPANION_NAMES = {"batch_instance": "batch_task", "instance_events": "collection_events"}

NORMALISED = FidelityNote(
    "workload", "the trace has requests as shares of its largest machine; here 1 % of it is 1 core, or 1 GiB"
)
STARTED_BEFORE_TRACE = FidelityNote(
    "workload", "a task started before the trace, so its run time is unknown: it is left out"
)
NO_END = FidelityNote("workload", "a task has no end in the trace and is left out")
NEVER_STARTED = FidelityNote("workload", "a task of the trace never started and is left out")
FAILED = FidelityNote(
    "workload", "a task did not succeed in the trace (failed, killed, evicted, …); here it does, after the same time"
)
EARLIER_ATTEMPT = FidelityNote("workload", "an attempt of a task before its last one is left out")
NO_REQUESTS = FidelityNote("workload", "a task of the trace has no requests; here it requests nothing")


def companion_table(path: Path) -> Path | None:
    """Return the second table of a trace, which is in the same folder, gzipped or not; None if there is none."""
    for name, companion_name in _COMPANION_NAMES.items():
        if name in path.name:
            plain = path.with_name(path.name.replace(name, companion_name).removesuffix(".gz"))
            candidates = (plain, plain.with_name(f"{plain.name}.gz"))
            return next((file for file in candidates if file.is_file()), None)
    return None


class CloudTraceTasks:
    """Collects the tasks of a trace as jobs of one pod."""

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self._name = name
        self._jobs: list[Job] = []
        self._delays = DelayProfiles()
        self._requests: dict[tuple[str, str], Requests] = {}
        self.notes: Counter[FidelityNote] = Counter()

    def add(
        self,
        name: str,
        submit: Instant,
        run: Duration,
        requests: Requests,
        *,
        user: str = "",
        queue: str = "",
        priority: int = 0,
    ) -> None:
        """Add a task that ran."""
        if not requests:
            self.notes[NO_REQUESTS] += 1
        self._jobs.append(
            Job(
                workload=self._name,
                name=name,
                submit=submit,
                size=1,
                profile=self._delays.profile_for(run),
                requests=requests,
                user=user,
                queue=queue,
                priority=priority,
            )
        )

    def requests(self, at: str, cpu: str, unit_cores: Decimal, memory: str, unit_gib: Decimal) -> Requests:
        """Return the requests of a task; equal requests are shared.

        The texts `cpu` and `memory` count units of `unit_cores` and `unit_gib`; an empty text means no request.
        """
        key = (cpu, memory)
        if key not in self._requests:
            cpu_milli = self._amount(at, "cpu", cpu, unit_cores * _MILLI)
            amount = self._amount(at, "memory", memory, unit_gib * _GIB)
            self._requests[key] = tuple((kind, value) for kind, value in ((CPU, cpu_milli), (MEMORY, amount)) if value)
        return self._requests[key]

    def checked_name(self, at: str, name: str) -> str:
        """Return `name`, or raise InputError if it is invalid."""
        if problem := name_problem(name):
            self.reject(at, f"name {problem}")
        return name

    def parse_integer(self, at: str, column: str, text: str) -> int:
        """Return a whole number, or raise InputError."""
        if not text.removeprefix("-").isdecimal():
            self.reject(at, f"{column} is {text!r}, which is not a whole number")
        return int(text)

    def reject(self, at: str, problem: str, remedy: str | None = None) -> NoReturn:
        """Raise InputError for the place `at` in the file."""
        raise InputError(self.path, at=at, problem=problem, remedy=remedy)

    def workload(self) -> Workload:
        """Return the tasks by submission, ties in the order of the file. Raises InputError if none ran."""
        if not self._jobs:
            skipped = sum(self.notes[note] for note in (STARTED_BEFORE_TRACE, NO_END, NEVER_STARTED, EARLIER_ATTEMPT))
            raise InputError(self.path, problem=f"contains no task that started and ended ({skipped} were left out)")
        self._jobs.sort(key=attrgetter("submit"))
        self.notes[NORMALISED] += sum(bool(job.requests) for job in self._jobs)
        notes = tuple((note, count) for note, count in self.notes.items() if count)
        return Workload(name=self._name, source=str(self.path), jobs=self._jobs, notes=notes)

    def _amount(self, at: str, column: str, text: str, unit: Decimal) -> int:
        if not text:
            return 0
        try:
            amount = Decimal(text) * unit
            if not amount.is_finite() or amount < 0:
                raise ValueError(text)
            return math.ceil(amount)
        except (InvalidOperation, ValueError):
            self.reject(at, f"{column} is {text!r}, which is not a non-negative number")
