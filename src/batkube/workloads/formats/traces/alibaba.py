"""Read the batch jobs of Alibaba's cluster traces of 2017 and 2018: batch_task.csv and batch_instance.csv.

These are CSV files without a header. A task has instances: independent processes, each on one machine. Each instance
becomes a job of one pod. batch_task.csv has the requests of the instances and the times of the task. batch_instance.csv
has the times and the usage of each instance, but no requests, so it needs the batch_task.csv in the same folder.

Columns: repository alibaba/clusterdata, cluster-trace-v2017/schema.csv and cluster-trace-v2018/schema.md. CPU is in
hundredths of a core in both (2017: see issue 11 there). Memory is a share of the largest machine, in 2018 in percent.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

from batkube.kernel.errors import InputError
from batkube.kernel.fidelity import FidelityNote
from batkube.kernel.instants import Duration, Instant, seconds
from batkube.workloads.files import open_lines
from batkube.workloads.formats.traces.cloud_tasks import (
    EARLIER_ATTEMPT,
    FAILED,
    NEVER_STARTED,
    NO_END,
    STARTED_BEFORE_TRACE,
    CloudTraceTasks,
    companion_table,
)
from batkube.workloads.model import Requests, Workload

STATUSES = frozenset({"Ready", "Waiting", "Running", "Terminated", "Failed", "Cancelled", "Interrupted"})
_WAITING, _RUNNING, _DONE, _BACKUP = ("Ready", "Waiting"), "Running", "Terminated", "Interrupted"

TASK_RUN_TIMES = FidelityNote(
    "workload", "each instance runs as long as its task; batch_instance.csv has the run times of instances"
)
SUBMITTED_AT_START = FidelityNote(
    "workload", "the trace has no submission time of a task or instance; here it is submitted when it started"
)
UNKNOWN_TASK = FidelityNote(
    "workload", "the task of an instance is not in batch_task.csv; here the instance requests nothing"
)


class _TableColumns(NamedTuple):
    """The columns of a table. `job` and `task` identify a task; only a table of tasks has `instances`."""

    width: int
    begin: int
    end: int
    job: int
    task: int
    status: int
    instances: int | None = None
    cpu: int | None = None
    memory: int | None = None
    #: The number of the attempt, and the number of attempts.
    attempts: tuple[int, int] | None = None
    #: GiB per unit of memory in the table.
    gib: Decimal = Decimal(1)
    #: Whether `begin` is the creation of a task, and not its start.
    has_creation_times: bool = False


_TASKS = (
    _TableColumns(
        8,
        begin=0,
        end=1,
        job=2,
        task=3,
        instances=4,
        status=5,
        cpu=6,
        memory=7,
        gib=Decimal(100),
        has_creation_times=True,
    ),
    _TableColumns(9, begin=5, end=6, job=2, task=0, instances=1, status=4, cpu=7, memory=8),
)
_INSTANCES = (
    _TableColumns(12, begin=0, end=1, job=2, task=3, status=5, attempts=(6, 7)),
    _TableColumns(14, begin=5, end=6, job=2, task=1, status=4, attempts=(8, 9)),
)
#: Cores per unit of CPU in the tables.
_UNIT_CORES = Decimal("0.01")
_REMEDY = "use batch_task.csv or batch_instance.csv of cluster-trace-v2017 or -v2018, as published"


def is_alibaba(first_line: str) -> bool:
    """Return whether the first line of a file belongs to one of these tables."""
    cells = first_line.strip().split(",")
    is_row = any(len(cells) == table.width and cells[table.status] in STATUSES for table in _TASKS + _INSTANCES)
    return is_row or _is_header(cells)


def _is_header(cells: Sequence[str]) -> bool:
    """Return whether a line is a header. The published tables have none, but copies of them often do."""
    tables = [table for table in _TASKS + _INSTANCES if len(cells) == table.width]
    return any(cells[table.status].strip().lower() == "status" for table in tables)


def read_alibaba(path: Path, name: str) -> Workload:
    """Read the instances of a table as the workload `name`. Raises InputError."""
    tasks = CloudTraceTasks(path, name)
    rows = _rows(path)
    first = next(rows, None)
    if first is None:
        raise InputError(path, problem="is empty")
    table = _table(tasks, first[1])
    if table.instances is None:
        _read_instances(tasks, table, first, rows)
    else:
        _read_tasks(tasks, table, first, rows)
    return tasks.workload()


def _rows(path: Path) -> Iterator[tuple[str, list[str]]]:
    with open_lines(path) as text:
        for number, row in enumerate(csv.reader(text), 1):
            if row and not (number == 1 and _is_header(row)):
                yield f"line {number}", row


def _table(tasks: CloudTraceTasks, row: Sequence[str]) -> _TableColumns:
    for table in _TASKS + _INSTANCES:
        if len(row) == table.width:
            return table
    problem = f"has {len(row)} columns; batch_task.csv has 8 (2017) or 9 (2018), batch_instance.csv 12 or 14"
    return tasks.reject("line 1", problem, _REMEDY)


def _check_row(tasks: CloudTraceTasks, table: _TableColumns, at: str, row: Sequence[str]) -> None:
    if len(row) != table.width:
        tasks.reject(at, f"has {len(row)} columns, but the first line has {table.width}", _REMEDY)
    if row[table.status] not in STATUSES:
        tasks.reject(at, f"status {row[table.status]!r} is not one of {', '.join(sorted(STATUSES))}", _REMEDY)


def _times(
    tasks: CloudTraceTasks, table: _TableColumns, at: str, row: Sequence[str]
) -> tuple[Instant, Duration] | None:
    """Return the start and the run time of a row; None, with a note, if the trace lacks one of them."""
    status = row[table.status]
    begin = tasks.parse_integer(at, "the start", row[table.begin] or "0")
    end = tasks.parse_integer(at, "the end", row[table.end] or "0")
    if status in _WAITING:
        tasks.notes[NEVER_STARTED] += 1
    elif status == _RUNNING or end == 0 or (end < begin and begin > 0):
        tasks.notes[NO_END] += 1
    elif begin <= 0:
        # 0 means a time before the trace (cluster-trace-v2017/trace_201708.md), and so do negative times.
        tasks.notes[STARTED_BEFORE_TRACE] += 1
    else:
        if status != _DONE:
            tasks.notes[FAILED] += 1
        return Instant(seconds(begin)), seconds(end - begin)
    return None


def _read_tasks(
    tasks: CloudTraceTasks, table: _TableColumns, first: tuple[str, list[str]], rows: Iterator[tuple[str, list[str]]]
) -> None:
    for at, row in _chained(first, rows):
        _check_row(tasks, table, at, row)
        times = _times(tasks, table, at, row)
        if times is None:
            continue
        requests = _requests(tasks, table, at, row)
        name = tasks.checked_name(at, f"{row[table.job]}.{row[table.task]}")
        count = tasks.parse_integer(at, "the number of instances", row[table.instances or 0])
        for number in range(1, count + 1):
            tasks.add(name if count == 1 else f"{name}.{number}", *times, requests)
        tasks.notes[TASK_RUN_TIMES] += count if count > 1 else 0
        tasks.notes[SUBMITTED_AT_START] += 0 if table.has_creation_times else count


def _read_instances(
    tasks: CloudTraceTasks, table: _TableColumns, first: tuple[str, list[str]], rows: Iterator[tuple[str, list[str]]]
) -> None:
    task_table = companion_table(tasks.path)
    if task_table is None:
        problem = "has no requests of instances, and there is no batch_task.csv in its folder"
        raise InputError(tasks.path, problem=problem, remedy="put both files into one folder under their own names")
    requests_of = _requests_by_task(CloudTraceTasks(task_table, ""))
    instance_counts: dict[str, int] = {}
    for at, row in _chained(first, rows):
        _check_row(tasks, table, at, row)
        number, last = (row[place] for place in table.attempts or ())
        if row[table.status] == _BACKUP or (number and last and number != last):
            tasks.notes[EARLIER_ATTEMPT] += 1
            continue
        times = _times(tasks, table, at, row)
        if times is None:
            continue
        key = (row[table.job], row[table.task])
        if key not in requests_of:
            tasks.notes[UNKNOWN_TASK] += 1
        name = tasks.checked_name(at, ".".join(key))
        instance_counts[name] = instance_counts.get(name, 0) + 1
        tasks.add(f"{name}.{instance_counts[name]}", *times, requests_of.get(key, ()))
        tasks.notes[SUBMITTED_AT_START] += 1


def _requests_by_task(tasks: CloudTraceTasks) -> dict[tuple[str, str], Requests]:
    requests_of: dict[tuple[str, str], Requests] = {}
    table: _TableColumns | None = None
    for at, row in _rows(tasks.path):
        table = table or _table(tasks, row)
        if table.instances is None:
            tasks.reject(at, "is a table of instances, but a table of tasks is needed here", _REMEDY)
        _check_row(tasks, table, at, row)
        requests_of[row[table.job], row[table.task]] = _requests(tasks, table, at, row)
    return requests_of


def _requests(tasks: CloudTraceTasks, table: _TableColumns, at: str, row: Sequence[str]) -> Requests:
    return tasks.requests(at, row[table.cpu or 0], _UNIT_CORES, row[table.memory or 0], table.gib)


def _chained(first: tuple[str, list[str]], rows: Iterator[tuple[str, list[str]]]) -> Iterator[tuple[str, list[str]]]:
    yield first
    yield from rows
