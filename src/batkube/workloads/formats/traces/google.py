"""Read Google's cluster traces: task_events of 2011 (CSV) and instance_events of 2019 (JSON lines).

Both contain the events of each task: its submission, and the start and end of each attempt. A task becomes a job of one
pod that runs as long as its last attempt. Earlier attempts were evicted or failed, so they are left out.

2011: document "Google cluster-usage traces: format + schema", v2.1; 13 columns, no header. 2019: document "Google
cluster-usage traces v3" and clusterdata_trace_format_v3.proto of google/cluster-data; BigQuery writes numbers as text.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from enum import Enum, auto
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from batkube.kernel.errors import InputError
from batkube.kernel.fidelity import FidelityNote
from batkube.kernel.instants import Duration, Instant
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
from batkube.workloads.model import Workload

#: The time that means "after the trace" in both.
_AFTER_TRACE = 2**63 - 1
_NS_PER_US = 1000
#: The largest machine, in cores and in GiB.
_FULL_SHARE = Decimal(100)
_COLUMNS_2011 = 13
_REMEDY = "use a file of task_events (2011) or instance_events (2019), as published"
_ALLOC_SET, _NO_ALLOC = ("1", "ALLOC_SET"), ("0", "", "None")

RESERVATION = FidelityNote("workload", "an alloc instance only reserves resources for tasks and is left out")
IN_RESERVATION = FidelityNote("workload", "a task runs inside an alloc, a reservation; here it has requests of its own")
DIFFERENT_MACHINE = FidelityNote(
    "workload", "a task must not share a machine with tasks of its job (different-machine); here it may"
)


class _TraceEventKind(Enum):
    SUBMIT = auto()
    SCHEDULE = auto()
    FINISH = auto()
    #: Evicted, failed or killed.
    STOP = auto()
    LOST = auto()
    OTHER = auto()


#: The names of the event types, by number.
_NAMES_2011 = ("SUBMIT", "SCHEDULE", "EVICT", "FAIL", "FINISH", "KILL", "LOST", "UPDATE_PENDING", "UPDATE_RUNNING")
_NAMES_2019 = ("SUBMIT", "QUEUE", "ENABLE", *_NAMES_2011[1:])
_STOPS = ("EVICT", "FAIL", "KILL")


class _TraceEvent(NamedTuple):
    """One event of a task; times in microseconds."""

    time: int
    #: Line number: events of one instant happened in this order.
    number: int
    kind: _TraceEventKind
    cpu: str
    memory: str
    priority: int
    user: str
    scheduling_class: str
    needs_different_machine: bool = False
    is_in_alloc: bool = False


def is_task_events(first_line: str) -> bool:
    """Return whether the first line of a file is one of task_events (2011)."""
    cells = first_line.strip().split(",")
    needed = (cells[place] for place in (0, 2, 3, 5)) if len(cells) == _COLUMNS_2011 else ()
    return len(cells) == _COLUMNS_2011 and all(cell.isdecimal() for cell in needed)


def is_instance_events(first_line: str) -> bool:
    """Return whether the first line of a file is one of instance_events (2019)."""
    return first_line.startswith("{") and '"collection_id"' in first_line and '"instance_index"' in first_line


def read_google(path: Path, name: str) -> Workload:
    """Read the tasks that started and ended as the workload `name`. Raises InputError."""
    tasks = CloudTraceTasks(path, name)
    with open_lines(path) as text:
        is_json = next(text, "").startswith("{")
    events_of: dict[str, list[_TraceEvent]] = {}
    for task, event in _events_2019(tasks) if is_json else _events_2011(tasks):
        events_of.setdefault(task, []).append(event)
    for task, events in events_of.items():
        _add_task(tasks, task, sorted(events))
    return tasks.workload()


def _add_task(tasks: CloudTraceTasks, task: str, events: list[_TraceEvent]) -> None:
    begin: int | None = None
    attempts: list[tuple[int, int, _TraceEventKind]] = []
    for event in events:
        if event.kind is _TraceEventKind.SCHEDULE:
            begin = event.time
        elif begin is not None and event.kind in (_TraceEventKind.FINISH, _TraceEventKind.STOP, _TraceEventKind.LOST):
            attempts.append((begin, event.time, event.kind))
            begin = None
    if begin is not None or (attempts and (attempts[-1][1] >= _AFTER_TRACE or attempts[-1][2] is _TraceEventKind.LOST)):
        tasks.notes[NO_END] += 1
    elif not attempts:
        tasks.notes[NEVER_STARTED] += 1
    elif attempts[-1][0] == 0:
        tasks.notes[STARTED_BEFORE_TRACE] += 1
    else:
        begin, end, outcome = attempts[-1]
        tasks.notes[EARLIER_ATTEMPT] += len(attempts) - 1
        tasks.notes[FAILED] += outcome is not _TraceEventKind.FINISH
        last = events[-1]
        tasks.notes[DIFFERENT_MACHINE] += last.needs_different_machine
        tasks.notes[IN_RESERVATION] += last.is_in_alloc
        # Requests can be in the submission only, or be updated later.
        requests = ((event.cpu, event.memory) for event in reversed(events) if event.cpu or event.memory)
        cpu, memory = next(requests, ("", ""))
        tasks.add(
            task,
            Instant(events[0].time * _NS_PER_US),
            Duration((end - begin) * _NS_PER_US),
            tasks.requests(f"task {task}", cpu, _FULL_SHARE, memory, _FULL_SHARE),
            user=next((event.user for event in events if event.user), ""),
            queue=last.scheduling_class,
            priority=last.priority,
        )


def _events_2011(tasks: CloudTraceTasks) -> Iterator[tuple[str, _TraceEvent]]:
    with open_lines(tasks.path) as text:
        for number, row in enumerate(csv.reader(text), 1):
            if not row:
                continue
            at = f"line {number}"
            if len(row) != _COLUMNS_2011:
                tasks.reject(at, f"has {len(row)} columns, but task_events has {_COLUMNS_2011}", _REMEDY)
            job, task = tasks.parse_integer(at, "job ID", row[2]), tasks.parse_integer(at, "task index", row[3])
            yield (
                f"{job}.{task}",
                _TraceEvent(
                    time=tasks.parse_integer(at, "time", row[0]),
                    number=number,
                    kind=_kind(tasks, at, row[5], _NAMES_2011),
                    cpu=row[9],
                    memory=row[10],
                    priority=tasks.parse_integer(at, "priority", row[8] or "0"),
                    user=tasks.checked_name(at, row[6]),
                    scheduling_class=tasks.checked_name(at, row[7]),
                    needs_different_machine=row[12] == "1",
                ),
            )


def _events_2019(tasks: CloudTraceTasks) -> Iterator[tuple[str, _TraceEvent]]:
    collections = companion_table(tasks.path)
    owners = {} if collections is None else _owners(CloudTraceTasks(collections, ""))
    for number, fields in _json_lines(tasks):
        at = f"line {number}"
        if str(fields.get("collection_type", "")) in _ALLOC_SET:
            tasks.notes[RESERVATION] += str(fields.get("type")) in ("0", "SUBMIT")
            continue
        collection = tasks.parse_integer(at, "collection_id", str(fields.get("collection_id", "")))
        index = tasks.parse_integer(at, "instance_index", str(fields.get("instance_index", "")))
        value = fields.get("resource_request")
        request: Mapping[str, Any] = value if isinstance(value, Mapping) else {}
        yield (
            f"{collection}.{index}",
            _TraceEvent(
                time=tasks.parse_integer(at, "time", str(fields.get("time", ""))),
                number=number,
                kind=_kind(tasks, at, str(fields.get("type", "")), _NAMES_2019),
                cpu=str(request.get("cpus") or ""),
                memory=str(request.get("memory") or ""),
                priority=tasks.parse_integer(at, "priority", str(fields.get("priority") or "0")),
                user=owners.get(str(collection), ""),
                scheduling_class=tasks.checked_name(at, str(fields.get("scheduling_class", ""))),
                is_in_alloc=str(fields.get("alloc_collection_id", "")) not in _NO_ALLOC,
            ),
        )


def _kind(tasks: CloudTraceTasks, at: str, text: str, names: Sequence[str]) -> _TraceEventKind:
    """Return the kind of an event from its type, which is a number or a name."""
    number = names.index(text) if text in names else tasks.parse_integer(at, "the event type", text)
    if not 0 <= number < len(names):
        tasks.reject(at, f"the event type is {text}, which is not between 0 and {len(names) - 1}", _REMEDY)
    name = names[number]
    return _TraceEventKind.STOP if name in _STOPS else _TraceEventKind.__members__.get(name, _TraceEventKind.OTHER)


def _owners(tasks: CloudTraceTasks) -> dict[str, str]:
    """Return the users of collections, by collection id."""
    owners: dict[str, str] = {}
    for number, fields in _json_lines(tasks):
        if fields.get("user"):
            owners[str(fields.get("collection_id"))] = tasks.checked_name(f"line {number}", str(fields["user"]))
    return owners


def _json_lines(tasks: CloudTraceTasks) -> Iterator[tuple[int, Mapping[str, Any]]]:
    with open_lines(tasks.path) as text:
        for number, line in enumerate(text, 1):
            if not line.strip():
                continue
            try:
                document: Any = msgspec.json.decode(line)
            except (msgspec.DecodeError, RecursionError) as error:
                at = f"line {number}"
                raise InputError(tasks.path, at=at, problem=f"is not JSON: {error}", remedy=_REMEDY) from None
            if not isinstance(document, Mapping):
                tasks.reject(f"line {number}", "is not a JSON object", _REMEDY)
            yield number, document
