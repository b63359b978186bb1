"""Read the pod lists of openb, Alibaba's GPU cluster trace of 2023.

A CSV file with a header and one pod per line: its requests and the times of its creation, scheduling and deletion, in
seconds since the start of the trace. Format: repository alibaba/clusterdata, folder cluster-trace-gpu-v2023.
"""

from __future__ import annotations

import csv
from operator import attrgetter
from pathlib import Path
from typing import NoReturn

from batkube.kernel.errors import InputError
from batkube.kernel.fidelity import FidelityNote
from batkube.kernel.instants import Duration, Instant, seconds
from batkube.kernel.quantities import CPU, GPU, MEMORY
from batkube.workloads.delay_profiles import DelayProfiles
from batkube.workloads.files import open_lines
from batkube.workloads.model import Job, Requests, Workload
from batkube.workloads.names import name_problem

COLUMNS = (
    "name",
    "cpu_milli",
    "memory_mib",
    "num_gpu",
    "gpu_milli",
    "gpu_spec",
    "pod_phase",
    "creation_time",
    "deletion_time",
    "scheduled_time",
)
_NODE_COLUMN = "sn"
#: Columns of output files of Batkube and Batsim (jobs and pods, schedule, machine states), to recognise these files.
_OUTPUT_COLUMNS = frozenset({"job_id", "makespan", "nb_computing"})
_BYTES_PER_MIB = 1 << 20

NEVER_SCHEDULED = FidelityNote("workload", "a pod of the trace was never scheduled (Pending) and is left out")
NO_TIMES = FidelityNote("workload", "a pod of the trace has no creation or deletion time and is left out")
SHARED_GPU = FidelityNote(
    "workload", "a pod requests a fraction of a GPU (gpu_milli below 1000); here it requests a whole one"
)
GPU_MODEL_IGNORED = FidelityNote("workload", "a pod requires certain GPU models (gpu_spec); here any GPU is accepted")
FAILED = FidelityNote("workload", "a pod failed in the trace; here it succeeds after the same time")


def read_openb(path: Path, name: str) -> Workload:
    """Read the pod list at `path` as the workload `name`. Raises InputError."""
    pods = _OpenbPods(path, name)
    with open_lines(path) as text:
        rows = csv.DictReader(text)
        try:
            _check_header(path, rows.fieldnames)
            for row in rows:
                pods.add(rows.line_num, row)
        except csv.Error as error:
            raise InputError(path, at=f"line {rows.line_num}", problem=f"is not CSV: {error}") from None
    return pods.workload()


def _check_header(path: Path, header: object) -> None:
    columns = list(header) if isinstance(header, list | tuple) else []
    missing = [column for column in COLUMNS if column not in columns]
    if missing:
        if _OUTPUT_COLUMNS.intersection(columns):
            raise InputError(
                path,
                problem="is the output of a run and not a workload",
                remedy="use the workload of that run; the run's manifest.json contains its path",
            )
        remedy = "use an openb_pod_list file, or name another format with `batkube workload convert --format NAME`"
        if _NODE_COLUMN in columns:
            remedy = "it is a list of nodes: use it with --platform"
        raise InputError(
            path,
            at="line 1",
            problem=f"is not an openb pod list: the header lacks {', '.join(missing)}",
            remedy=remedy,
        )


class _OpenbPods:
    """Converts rows to jobs."""

    def __init__(self, path: Path, name: str) -> None:
        self._path = path
        self._name = name
        self._jobs: list[Job] = []
        self._delays = DelayProfiles()
        self._line_of: dict[str, int] = {}
        self._shared: dict[Requests, Requests] = {}
        self._notes: dict[FidelityNote, int] = {}

    def add(self, line: int, row: dict[str, str | None]) -> None:
        """Add one pod."""
        name = row["name"] or self._reject(line, "has no name")
        if problem := name_problem(name):
            self._reject(line, f"name {problem}")
        first = self._line_of.setdefault(name, line)
        if first != line:
            self._reject(line, f"pod {name!r} is a duplicate of line {first}")
        if row["pod_phase"] == "Pending":
            self._note(NEVER_SCHEDULED)
            return
        created, deleted = self._time(line, row, "creation_time"), self._time(line, row, "deletion_time")
        if created is None or deleted is None:
            self._note(NO_TIMES)
            return
        scheduled = self._time(line, row, "scheduled_time")
        run = deleted - (created if scheduled is None else scheduled)
        if run < 0:
            self._reject(line, f"pod {name!r} was deleted before it was scheduled")
        if row["pod_phase"] == "Failed":
            self._note(FAILED)
        requests = self._requests(line, row)
        self._jobs.append(
            Job(
                workload=self._name,
                name=name,
                submit=Instant(created),
                size=1,
                profile=self._delays.profile_for(Duration(run)),
                requests=self._shared.setdefault(requests, requests),
            )
        )

    def workload(self) -> Workload:
        """Return the pods by creation, ties in the order of the file."""
        if not self._jobs:
            raise InputError(
                self._path, problem=f"contains no pod that ran ({sum(self._notes.values())} were left out)"
            )
        self._jobs.sort(key=attrgetter("submit"))
        return Workload(name=self._name, source=str(self._path), jobs=self._jobs, notes=tuple(self._notes.items()))

    def _requests(self, line: int, row: dict[str, str | None]) -> Requests:
        cpu_milli, memory_mib, gpus = (self._count(line, row, key) for key in ("cpu_milli", "memory_mib", "num_gpu"))
        requests = [(CPU, cpu_milli), (MEMORY, memory_mib * _BYTES_PER_MIB)]
        if gpus:
            requests.append((GPU, gpus))
            if self._count(line, row, "gpu_milli") < 1000:
                self._note(SHARED_GPU)
            if row["gpu_spec"]:
                self._note(GPU_MODEL_IGNORED)
        return tuple(sorted(requests))

    def _time(self, line: int, row: dict[str, str | None], column: str) -> Duration | None:
        text = row[column]
        if not text:
            return None
        try:
            time = seconds(text)
        except ValueError as error:
            self._reject(line, f"{column}: {error}")
        if time < 0:
            self._reject(line, f"{column} is {text}, which is negative")
        return time

    def _count(self, line: int, row: dict[str, str | None], column: str) -> int:
        text = row[column] or "0"
        if not text.isdecimal():
            self._reject(line, f"{column} is {text!r}, which is not a whole number")
        return int(text)

    def _note(self, note: FidelityNote) -> None:
        self._notes[note] = self._notes.get(note, 0) + 1

    def _reject(self, line: int, problem: str) -> NoReturn:
        raise InputError(self._path, at=f"line {line}", problem=problem)
