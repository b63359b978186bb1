"""Read the Standard Workload Format (SWF) of the Parallel Workloads Archive.

A line is a job of 18 numbers separated by white space; -1 means "unknown". A line that starts with `;` is a comment;
the first comments form a header of `; Key: value` lines. Messages count fields from 1, as the definition does
(Parallel Workloads Archive, "The Standard Workload Format", version 2.2).

A trace can have a million lines, so lines are read one by one, and repeated values (run times, requested times, users)
are parsed once and shared.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from decimal import Decimal, InvalidOperation
from operator import attrgetter
from pathlib import Path

from batkube.kernel.errors import InputError
from batkube.kernel.fidelity import FidelityNote
from batkube.kernel.instants import Duration, Instant, TooLong, seconds
from batkube.workloads.delay_profiles import DelayProfiles
from batkube.workloads.files import open_lines
from batkube.workloads.formats.traces.swf_header import header_labels, machine_size, trace_header, unreadable_steps
from batkube.workloads.history import UNREADABLE_STEP
from batkube.workloads.model import Delay, Job, Workload
from batkube.workloads.names import REMEDY, name_problem
from batkube.workloads.walltime_notes import WALLTIME_OVERRUN, WALLTIME_TOO_LONG

FIELD_COUNT = 18
#: Positions in a split line, one less than the format's own numbers.
(
    JOB_NUMBER,
    SUBMIT,
    WAIT,
    RUN_TIME,
    ALLOCATED_PROCESSORS,
    REQUESTED_PROCESSORS,
    REQUESTED_TIME,
    STATUS,
    USER,
    QUEUE,
    PARTITION,
    PRECEDING_JOB,
) = (
    0,
    1,
    2,
    3,
    4,
    7,
    8,
    10,
    11,
    14,
    15,
    16,
)
#: Fields that become names, and their meaning.
_NAME_FIELDS = ((JOB_NUMBER, "job number"), (USER, "user"), (QUEUE, "queue"), (PARTITION, "partition"))

_FIELD_NAMES = {
    SUBMIT: "submit time",
    WAIT: "wait time",
    RUN_TIME: "run time",
    ALLOCATED_PROCESSORS: "allocated processors",
    REQUESTED_PROCESSORS: "requested processors",
    REQUESTED_TIME: "requested time",
}
#: Statuses of partial executions of a preempted job; its summary line has status 0 or 1.
PARTIAL_STATUSES = frozenset({"2", "3", "4"})

STATUS_NOT_SELECTED = FidelityNote("workload", "a job of the trace has another status and is left out")
NO_RUN_TIME = FidelityNote("workload", "a job of the trace has no run time and is left out")
NO_PROCESSORS = FidelityNote("workload", "a job of the trace has no number of processors and is left out")
PARTIAL_EXECUTION = FidelityNote("workload", "a line is a part of a preempted job (status 2 to 4) and is left out")
CANCELLED = FidelityNote("workload", "a job was cancelled in the trace (status 5); it runs for its recorded run time")
DEPENDENCY_IGNORED = FidelityNote(
    "workload", "a job of the trace depends on another (field 17); here it is submitted at its recorded time"
)


def job_lines(path: Path, text: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number, fields) for every job line of `text`, the lines of the trace at `path`."""
    for number, line in enumerate(text, 1):
        fields = line.split()
        if not fields or fields[0].startswith(";"):
            continue
        if len(fields) < FIELD_COUNT:
            raise InputError(
                path,
                at=f"line {number}",
                problem=f"has {len(fields)} fields; a job of the Standard Workload Format has {FIELD_COUNT}",
                remedy="write 18 numbers per job, -1 for unknown ones; comments start with ';'",
            )
        yield number, fields


def time_field(path: Path, number: int, fields: list[str], position: int) -> Duration:
    """Return a time of a job line; negative if it is unknown."""
    return Duration(_field(path, number, fields, position, _seconds))


def count_field(path: Path, number: int, fields: list[str], position: int) -> int:
    """Return a whole number of a job line; negative if it is unknown."""
    return _field(path, number, fields, position, _integer)


def _seconds(text: str) -> int:
    try:
        return seconds(int(text))
    except ValueError:
        return seconds(text)  # scaled or converted traces contain decimals


def _integer(text: str) -> int:
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise ValueError(text) from None
    if not value.is_finite() or value != value.to_integral_value() or value.adjusted() > 15:
        raise ValueError(text)
    return int(value)


def _field(path: Path, number: int, fields: list[str], position: int, read: Callable[[str], int]) -> int:
    try:
        return read(fields[position])
    except ValueError:
        kind = "a whole number" if read is _integer else "a number of seconds up to 292 years"
        raise InputError(
            path,
            at=f"line {number}",
            problem=f"field {position + 1} ({_FIELD_NAMES[position]}) is {fields[position]!r}, which is not {kind}",
        ) from None


def read_swf(path: Path, name: str, statuses: Collection[str] = ()) -> Workload:
    """Read the trace at `path` as the workload `name`: the jobs with these `statuses`, or all."""
    trace = _SwfJobs(path, name)
    with open_lines(path) as text:
        for number, fields in job_lines(path, text):
            if not statuses or fields[STATUS] in statuses:
                trace.add(number, fields)
            else:
                trace.skip()
    return trace.workload()


class _SwfJobs:
    """Converts job lines to jobs. The dictionaries cache parsed values by their text in the file."""

    def __init__(self, path: Path, name: str) -> None:
        self._path = path
        self._name = name
        self._jobs: list[Job] = []
        self._line_of: dict[str, int] = {}
        self._delays = DelayProfiles()
        self._profiles: dict[str, Delay | None] = {}
        self._walltimes: dict[str, Duration | None] = {}
        self._too_long: set[str] = set()
        self._sizes: dict[str, int] = {}
        self._notes: dict[FidelityNote, int] = {}

    def add(self, number: int, fields: list[str]) -> None:
        """Add one job line."""
        if fields[STATUS] in PARTIAL_STATUSES:
            self._note(PARTIAL_EXECUTION)
            return
        profile = self._profile(number, fields)
        if profile is None:
            self._note(NO_RUN_TIME)
            return
        size = self._size(number, fields, ALLOCATED_PROCESSORS)
        if size <= 0:
            size = self._size(number, fields, REQUESTED_PROCESSORS)
        if size <= 0:
            self._note(NO_PROCESSORS)
            return
        job_name = fields[JOB_NUMBER]
        for position, title in _NAME_FIELDS:
            if problem := name_problem(fields[position]):
                raise InputError(
                    self._path, at=f"line {number}", problem=f"field {position + 1} ({title}) {problem}", remedy=REMEDY
                )
        first_line = self._line_of.setdefault(job_name, number)
        if first_line != number:
            raise InputError(
                self._path,
                at=f"line {number}",
                problem=f"job number {job_name} is already used in line {first_line}",
                remedy="give each job a unique number",
            )
        walltime = self._walltime(number, fields)
        self._note_differences(fields, profile, walltime)
        self._jobs.append(
            Job(
                workload=self._name,
                name=job_name,
                submit=self._submit(number, fields),
                size=size,
                profile=profile,
                walltime=walltime,
                user=_interned_name(fields[USER]),
                queue=_interned_name(fields[QUEUE]),
                partition=_interned_name(fields[PARTITION]),
            )
        )

    def skip(self) -> None:
        """Count a job that is left out because of its status."""
        self._note(STATUS_NOT_SELECTED)

    def workload(self) -> Workload:
        """Return the jobs by submission, ties in the order of their lines."""
        self._jobs.sort(key=attrgetter("submit"))
        if not self._jobs:
            skipped_count = sum(self._notes.values())
            if not skipped_count:
                raise InputError(self._path, problem="contains no job: every line is blank or a comment")
            raise InputError(self._path, problem=f"contains no job that can run ({skipped_count} lines were left out)")
        labels = header_labels(self._path)
        if unreadable := unreadable_steps(labels):
            self._notes[UNREADABLE_STEP] = unreadable
        return Workload(
            name=self._name,
            source=str(self._path),
            jobs=self._jobs,
            size_machines=machine_size(labels),
            notes=tuple(self._notes.items()),
            header=trace_header(labels),
        )

    def _note(self, note: FidelityNote) -> None:
        self._notes[note] = self._notes.get(note, 0) + 1

    def _note_differences(self, fields: list[str], profile: Delay, walltime: Duration | None) -> None:
        """Note how the job will differ from its record."""
        # As in Batsim, a job succeeds only if it ends strictly before its walltime.
        if walltime is not None and profile.duration >= walltime:
            self._note(WALLTIME_OVERRUN)
        if fields[STATUS] == "5":
            self._note(CANCELLED)
        if not fields[PRECEDING_JOB].startswith("-") and fields[PRECEDING_JOB] != "0":
            self._note(DEPENDENCY_IGNORED)

    def _submit(self, number: int, fields: list[str]) -> Instant:
        submit = time_field(self._path, number, fields, SUBMIT)
        if submit < 0:
            raise InputError(
                self._path,
                at=f"line {number}",
                problem=f"field 2 (submit time) is {fields[SUBMIT]}, which is negative",
                remedy="remove the line, or add a constant to all submit times",
            )
        return Instant(submit)

    def _profile(self, number: int, fields: list[str]) -> Delay | None:
        text = fields[RUN_TIME]
        if text not in self._profiles:
            run = time_field(self._path, number, fields, RUN_TIME)
            self._profiles[text] = None if run < 0 else self._delays.profile_for(run)
        return self._profiles[text]

    def _walltime(self, number: int, fields: list[str]) -> Duration | None:
        text = fields[REQUESTED_TIME]
        if text not in self._walltimes:
            try:
                requested = _seconds(text)
            except TooLong:
                self._too_long.add(text)
                requested = 0
            except ValueError:
                requested = time_field(self._path, number, fields, REQUESTED_TIME)  # raises InputError
            self._walltimes[text] = None if requested <= 0 else Duration(requested)
        if text in self._too_long:
            self._note(WALLTIME_TOO_LONG)
        return self._walltimes[text]

    def _size(self, number: int, fields: list[str], position: int) -> int:
        text = fields[position]
        size = self._sizes.get(text)
        if size is None:
            size = self._sizes[text] = count_field(self._path, number, fields, position)
        return size


def _interned_name(field: str) -> str:
    """Return a field as a name, empty for -1. Traces have few distinct names, so they are interned."""
    return "" if field == "-1" else sys.intern(field)
