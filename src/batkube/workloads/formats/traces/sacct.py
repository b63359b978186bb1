"""Read jobs from Slurm's accounting: the output of `sacct --parsable2`, with its header.

    sacct -a -X -P -S 2026-01-01 -o JobID,User,Partition,State,Submit,Start,End,Timelimit,NNodes,AllocCPUS,AllocTRES

A line (`sacct_rows`) is a job; steps (`17.batch`, `17.0`), which `-X` suppresses, are ignored. A job gets one pod per
node. Each pod requests its share of the job's cores, memory and GPUs, so that jobs share nodes as under Slurm. Without
these columns, jobs need whole machines.

Slurm: man sacct, "Job Accounting Fields"; src/common/slurm_time.c and parse_time.c for the format of times. Times are
in the cluster's time zone, which sacct does not print, so they are off by an hour across a change of daylight saving.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from operator import attrgetter
from pathlib import Path
from typing import NoReturn

from msgspec.structs import replace as replace_fields

from batkube.kernel.errors import InputError
from batkube.kernel.fidelity import FidelityNote
from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Duration, Instant, instant_of
from batkube.kernel.quantities import CPU, GPU, MEMORY
from batkube.workloads.delay_profiles import DelayProfiles
from batkube.workloads.files import open_lines
from batkube.workloads.formats.traces.sacct_rows import JOB_ID, REMEDY, SacctRows
from batkube.workloads.model import Job, Requests, Workload
from batkube.workloads.names import name_problem
from batkube.workloads.walltime_notes import WALLTIME_OVERRUN

#: Texts in place of an absent time.
_TIME_PLACEHOLDERS = ("", "Unknown", "None", "N/A")
#: Texts in place of an absent time limit.
_LIMIT_PLACEHOLDERS = ("", "UNLIMITED", "Partition_Limit", "INVALID", "NOT_SET")
_LENGTH = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)(?:\.(\d+))?")
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)([KMGTP]?)")
#: A small amount that --units rounded to 0.
_ROUNDED_TO_ZERO = re.compile(r"0\.0+[KMGTP]")
_BYTES = {"": 1 << 20, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}

NEVER_STARTED = FidelityNote(
    "workload", "a job of the trace never started (pending, or cancelled before) and is left out"
)
NOT_FINISHED = FidelityNote("workload", "a job of the trace has not ended and is left out")
FAILED = FidelityNote(
    "workload", "a job did not complete in the trace (failed, cancelled, …); here it does, after the same time"
)
SUSPENDED = FidelityNote(
    "workload",
    "a job was suspended in the trace; here it is not (its Elapsed excludes that time, its End does not)",
)
HETEROGENEOUS = FidelityNote(
    "workload",
    "a component of a heterogeneous job (17+0, 17+1, …) becomes a separate job; here components start separately",
)


def read_sacct(path: Path, name: str) -> Workload:
    """Read the jobs of an accounting list as the workload `name`. Raises InputError."""
    with open_lines(path) as text:
        rows = SacctRows(path, text)
        jobs = _SacctJobs(path, name, rows.columns)
        for line, cells in rows:
            jobs.add(line, cells)
    return jobs.workload()


class _SacctJobs:
    """Converts rows to jobs."""

    def __init__(self, path: Path, name: str, columns: list[str]) -> None:
        self._path = path
        self._name = name
        for alternatives in (
            (JOB_ID,),
            ("Submit",),
            ("ElapsedRaw", "Elapsed", "End"),
            ("ElapsedRaw", "Elapsed", "Start"),
        ):
            if not any(column in columns for column in alternatives):
                problem = f"has no column {' or '.join(alternatives)}"
                raise InputError(path, at="line 1", problem=problem, remedy=REMEDY)
        self._jobs: list[Job] = []
        self._delays = DelayProfiles()
        #: The number of rows of each job that ran.
        self._occurrences: dict[str, int] = {}
        self._notes: dict[FidelityNote, int] = {}

    def add(self, line: int, cells: Mapping[str, str]) -> None:
        """Add one line."""
        identity = cells[JOB_ID]
        if "." in identity:
            return  # a step of a job
        if not identity or (problem := name_problem(identity)):
            self._reject(line, f"JobID {problem}" if identity else "has no JobID")
        state = cells.get("State", "").partition(" ")[0]
        run = self._run_time(line, cells)
        if state == "PENDING" or "[" in identity or (run in (None, 0) and not self._has_started(cells)):
            self._note(NEVER_STARTED)
            return
        if run is None or state in ("RUNNING", "SUSPENDED", "COMPLETING"):
            self._note(NOT_FINISHED)
            return
        # sacct --duplicates lists a requeued job once per execution, under the same number.
        times = self._occurrences.get(identity, 0) + 1
        self._occurrences[identity] = times
        if state not in ("", "COMPLETED"):
            self._note(FAILED)
        submit = self._time(line, cells, "Submit")
        if submit is None:
            self._reject(line, "has no Submit time")
        if "+" in identity:
            self._note(HETEROGENEOUS)
        if self._was_suspended(line, cells):
            self._note(SUSPENDED)
        size, requests = self._size(line, cells)
        limit = self._time_limit(line, cells)
        if limit is not None and run >= limit:
            self._note(WALLTIME_OVERRUN)
        self._jobs.append(
            Job(
                workload=self._name,
                name=identity if times == 1 else f"{identity}-{times}",
                submit=submit,
                size=size,
                profile=self._delays.profile_for(run),
                walltime=limit,
                requests=requests,
                user=cells.get("User", ""),
                # Slurm's partitions are both: jobs are submitted to one, and run on its nodes.
                queue=(partition := cells.get("Partition", "").partition(",")[0]),
                partition=partition,
            )
        )

    def workload(self) -> Workload:
        """Return the jobs by submission, the first at 0, ties in the order of the file."""
        if not self._jobs:
            skipped_count = sum(self._notes.values())
            raise InputError(
                self._path, problem=f"contains no job that ran ({skipped_count} were left out)", remedy=REMEDY
            )
        self._jobs.sort(key=attrgetter("submit"))
        first = self._jobs[0].submit
        jobs = [replace_fields(job, submit=Instant(job.submit - first)) for job in self._jobs]
        return Workload(name=self._name, source=str(self._path), jobs=jobs, notes=tuple(self._notes.items()))

    def _has_started(self, cells: Mapping[str, str]) -> bool:
        """Return whether a job of run time 0 was started. If not, it has no start time or no allocated resources."""
        return cells.get("Start", "-") not in _TIME_PLACEHOLDERS and cells.get("AllocTRES", "-") != ""

    def _was_suspended(self, line: int, cells: Mapping[str, str]) -> bool:
        text = cells.get("Suspended", "")
        return text not in _TIME_PLACEHOLDERS and self._duration(line, "Suspended", text) > 0

    def _run_time(self, line: int, cells: Mapping[str, str]) -> Duration | None:
        """Return the run time of a job; None if it has not ended."""
        raw = cells.get("ElapsedRaw", "")
        if raw:
            if not raw.isdecimal():
                self._reject(line, f"ElapsedRaw is {raw!r}, which is not a number of seconds")
            return Duration(int(raw) * NANOSECONDS_PER_SECOND)
        elapsed = cells.get("Elapsed", "")
        has_times = all(cells.get(column, "") not in _TIME_PLACEHOLDERS for column in ("Start", "End"))
        # Slurm prints hours, minutes and seconds. Published lists without seconds have more precise Start and End.
        if elapsed and (elapsed.count(":") > 1 or not has_times):
            return self._duration(line, "Elapsed", elapsed)
        start, end = self._time(line, cells, "Start"), self._time(line, cells, "End")
        if start is None or end is None:
            return None
        if end < start:
            self._reject(line, f"End {cells['End']} is before Start {cells['Start']}")
        return Duration(end - start)

    def _time_limit(self, line: int, cells: Mapping[str, str]) -> Duration | None:
        raw = cells.get("TimelimitRaw", "")
        if raw.isdecimal():
            return Duration(int(raw) * 60 * NANOSECONDS_PER_SECOND) or None
        text = cells.get("Timelimit", "")
        return None if text in _LIMIT_PLACEHOLDERS else self._duration(line, "Timelimit", text) or None

    def _duration(self, line: int, column: str, text: str) -> Duration:
        """Parse a duration, `[DAYS-][HOURS:]MINUTES:SECONDS` or `DAYS-HOURS:MINUTES` (Slurm: man sbatch, --time)."""
        match = _LENGTH.fullmatch(text)
        if match is None:
            self._reject(line, f"{column} is {text!r}, which is not [days-]hours:minutes:seconds")
        days, hours, minutes, whole = (int(group or 0) for group in match.groups()[:4])
        if match[1] and match[2] is None:
            hours, minutes, whole = minutes, whole, 0
        part = Fraction(f"0.{match[5] or 0}")
        return Duration(int((((days * 24 + hours) * 60 + minutes) * 60 + whole + part) * NANOSECONDS_PER_SECOND))

    def _time(self, line: int, cells: Mapping[str, str], column: str) -> Instant | None:
        """Parse a time. It is in seconds since 1970 if SLURM_TIME_FORMAT was %s."""
        text = cells.get(column, "")
        if text in _TIME_PLACEHOLDERS:
            return None
        try:
            return Instant(int(text) * NANOSECONDS_PER_SECOND) if text.isdecimal() else instant_of(text)
        except ValueError:
            remedy = "write times as 2026-01-31T12:00:00, Slurm's default, or in seconds (SLURM_TIME_FORMAT=%s)"
            self._reject(line, f"{column} is {text!r}, which is not a time", remedy)

    def _size(self, line: int, cells: Mapping[str, str]) -> tuple[int, Requests]:
        """Return the number of nodes of a job, and its requests on each of them."""
        resources = self._resources(line, cells)
        nodes = self._count(line, cells, "AllocNodes", "NNodes", "ReqNodes") or int(resources.get("node", 1)) or 1
        cores = resources.get("cpu") or self._count(line, cells, "AllocCPUS", "NCPUS", "ReqCPUS")
        requests = []
        if cores:
            requests.append((CPU, -(-cores * 1000 // nodes)))
        memory = resources.get("mem") or self._memory(line, cells, nodes, cores)
        if memory:
            requests.append((MEMORY, -(-memory // nodes)))
        if gpus := resources.get("gres/gpu", 0):
            requests.append((GPU, -(-gpus // nodes)))
        return nodes, tuple(sorted(requests))

    def _resources(self, line: int, cells: Mapping[str, str]) -> dict[str, int]:
        """Parse AllocTRES, or else ReqTRES: `cpu=8,gres/gpu=2,mem=64G,node=2`."""
        text = cells.get("AllocTRES") or cells.get("ReqTRES") or ""
        amounts: dict[str, int] = {}
        for part in filter(None, text.split(",")):
            kind, equals, amount = part.partition("=")
            if not equals:
                self._reject(
                    line, f"{part!r} is not a trackable resource (TRES)", "write RESOURCE=AMOUNT, as sacct does"
                )
            if kind == "mem":
                amounts[kind] = self._bytes(line, "mem", amount)
            elif kind in ("cpu", "node", "gres/gpu"):
                if not amount.isdecimal():
                    self._reject(line, f"{part!r} is not a whole number", "run sacct without --units")
                amounts[kind] = int(amount)
        return amounts

    def _memory(self, line: int, cells: Mapping[str, str], nodes: int, cores: int) -> int:
        """Return ReqMem of the whole job. Before Slurm 21.08, it was per node (`n`) or per core (`c`)."""
        text = cells.get("ReqMem", "")
        if not text or text == "?":
            return 0
        times = {"n": nodes, "c": max(cores, 1)}.get(text[-1], 1)
        return self._bytes(line, "ReqMem", text.rstrip("nc")) * times

    def _bytes(self, line: int, column: str, text: str) -> int:
        match = _AMOUNT.fullmatch(text)
        if match is None:
            self._reject(
                line, f"{column} is {text!r}, which is not an amount of memory", "write, for example, 4000M or 16G"
            )
        if _ROUNDED_TO_ZERO.fullmatch(text):
            self._reject(line, f"{column} is {text!r}, an amount rounded to 0", "run sacct without --units")
        return int(Fraction(match[1]) * _BYTES[match[2]])

    def _count(self, line: int, cells: Mapping[str, str], *columns: str) -> int:
        """Return the first of these columns that is above 0, or 0."""
        for column in columns:
            text = cells.get(column, "")
            if text and not text.isdecimal():
                self._reject(line, f"{column} is {text!r}, which is not a whole number", "run sacct without --units")
            if text and int(text):
                return int(text)
        return 0

    def _note(self, note: FidelityNote) -> None:
        self._notes[note] = self._notes.get(note, 0) + 1

    def _reject(self, line: int, problem: str, remedy: str | None = None) -> NoReturn:
        raise InputError(self._path, at=f"line {line}", problem=problem, remedy=remedy)
