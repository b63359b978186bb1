"""Decodes messages of Batsim's protocol; invalid ones raise MalformedMessage, with Batsim's text where possible.

Both ends of the protocol use it, so it decodes all events.

Imitated: Batsim 4.2.1, JsonProtocolReader in src/protocol.cpp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import NoReturn

import msgspec

from batkube.batsim.protocol.messages import (
    Answer,
    CallMeLater,
    ChangeJobState,
    Event,
    ExecuteJob,
    FromJobMessage,
    JobCompleted,
    JobKilled,
    JobSubmitted,
    Json,
    JsonObject,
    KillJob,
    Message,
    Notify,
    Query,
    RegisterJob,
    RegisterProfile,
    RejectJob,
    RequestedCall,
    ResourceStateChanged,
    SetJobMetadata,
    SetResourceState,
    SimulationBegins,
    SimulationEnds,
    ToJobMessage,
)
from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Instant, seconds
from batkube.kernel.intervals import parse_intervals

#: Decimals are exact: as a float, a date far from the start would lose nanoseconds.
_DECODER = msgspec.json.Decoder(float_hook=Decimal)
#: Sets of ids are integers with as many bits, so the limit bounds the memory that a text can request.
_LARGEST_ID_DIGITS = 7
#: The latest date of a call: some days before the latest date of a run, so that the simulation can continue after it.
_LAST_CALL_S = 9_223_000_000


class MalformedMessage(ValueError):
    """A message that breaks the protocol."""


def decode(raw: bytes | str) -> Message:
    """Return a message. Raise MalformedMessage."""
    try:
        document = _DECODER.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, InvalidOperation):
        raise MalformedMessage("Invalid JSON message: could not be parsed") from None
    if not isinstance(document, dict):
        raise MalformedMessage("Invalid JSON message: not a JSON object")
    now = _instant(document, "now", "message")
    events = document.get("events")
    if not isinstance(events, list):
        raise MalformedMessage(
            "Invalid JSON message: 'events' value should be an array."
            if "events" in document
            else "Invalid JSON message: no 'events' key"
        )
    return Message(now, [_event(number, event) for number, event in enumerate(events)])


def _event(number: int, raw: Json) -> Event:
    if not isinstance(raw, dict):
        raise MalformedMessage(f"Invalid JSON message: event {number} should be an object.")
    at = _instant(raw, "timestamp", f"event {number}")
    kind = raw.get("type")
    if not isinstance(kind, str):
        raise MalformedMessage(f"Invalid JSON message: event {number} should have a 'type' that is a string.")
    reader = _READERS.get(kind)
    if reader is None:
        raise MalformedMessage(f"Invalid JSON message: event {number} has an unknown 'type' value '{kind}'")
    data = raw.get("data")
    if not isinstance(data, dict):
        raise MalformedMessage(f"Invalid JSON message: the 'data' value of event {number} ({kind}) should be an object")
    return reader(_EventData(number, kind, data), at)


def _instant(members: Mapping[str, Json], key: str, owner: str) -> Instant:
    value = members.get(key)
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        problem = f"no '{key}' key" if key not in members else f"'{key}' value should be a number."
        raise MalformedMessage(f"Invalid JSON message: {problem} ({owner})")
    try:
        return Instant(seconds(value))
    except ValueError as error:
        raise MalformedMessage(f"Invalid JSON message: '{key}' of {owner}: {error}") from None


class _EventData:
    """The data of an event; each method returns a member after checking its type."""

    def __init__(self, number: int, kind: str, members: Mapping[str, Json]) -> None:
        self._location = f"event {number} ({kind})"
        self.members = members

    def reject(self, problem: str) -> NoReturn:
        raise MalformedMessage(f"Invalid JSON message: {self._location}: {problem}")

    def check_size(self, *sizes: int) -> None:
        """Check the number of members, as Batsim does."""
        if len(self.members) not in sizes:
            expected = " or ".join(map(str, sizes))
            self.reject(f"the 'data' value should be of size {expected} (size={len(self.members)})")

    def string(self, key: str) -> str:
        value = self.members.get(key)
        if not isinstance(value, str):
            self.reject(f"the 'data' value should contain a '{key}' key that is a string")
        return value

    def object(self, key: str) -> JsonObject:
        value = self.members.get(key)
        if not isinstance(value, dict):
            self.reject(f"the 'data' value should contain a '{key}' key that is an object")
        return value

    def strings(self, key: str) -> Sequence[str]:
        value = self.members.get(key)
        if not isinstance(value, list) or not value or not all(isinstance(part, str) for part in value):
            self.reject(f"'{key}' should be a non-empty array of strings")
        return value

    def integer(self, key: str) -> int:
        value = self.members.get(key)
        if isinstance(value, bool) or not isinstance(value, int):
            self.reject(f"'{key}' should be a whole number")
        return value

    def timestamp(self, key: str) -> Instant:
        return _instant(self.members, key, self._location)

    def timestamp_or_last(self, key: str) -> Instant:
        """Return a date, or the latest possible one for a date that no run reaches.

        Some schedulers request such calls to express "never": batsched's `energy_bf` requests 1e19 s.
        """
        value = self.members.get(key)
        if isinstance(value, int | Decimal) and value > _LAST_CALL_S:
            return Instant(_LAST_CALL_S * NANOSECONDS_PER_SECOND)
        return self.timestamp(key)

    def machines(self, key: str) -> int:
        """Return a non-empty set of machines."""
        text = self.string(key)
        try:
            if any(len(part) > _LARGEST_ID_DIGITS for part in text.replace("-", " ").split()):
                raise ValueError(f"{text[:40]!r} contains an id of more than {_LARGEST_ID_DIGITS} digits")
            machines = parse_intervals(text)
        except ValueError as error:
            self.reject(str(error))
        if not machines:
            self.reject("the number of allocated resources should be strictly positive (got 0).")
        return machines


def _read_rejection(data: _EventData, at: Instant) -> Event:
    data.check_size(1)
    return RejectJob(at=at, job_id=data.string("job_id"))


def _read_kill(data: _EventData, at: Instant) -> Event:
    data.check_size(1)
    return KillJob(at=at, job_ids=data.strings("job_ids"))


def _read_call(data: _EventData, at: Instant) -> Event:
    data.check_size(1)
    return CallMeLater(at=at, call_at=data.timestamp_or_last("timestamp"))


def _read_query(data: _EventData, at: Instant) -> Event:
    data.check_size(1)
    requests = data.object("requests")
    if not requests:
        data.reject("the 'requests' object must be non-empty")
    return Query(at=at, requests=requests)


def _read_answer(data: _EventData, at: Instant) -> Event:
    if not data.members:
        data.reject("the 'data' object must be non-empty")
    return Answer(at=at, answers=data.members)


def _read_execution(data: _EventData, at: Instant) -> Event:
    data.check_size(2, 3)
    machines = data.machines("alloc")
    return ExecuteJob(
        at=at,
        job_id=data.string("job_id"),
        machines=machines,
        mapping=_mapping(data, machines.bit_count()) if "mapping" in data.members else None,
        storage=_storage(data) if "storage_mapping" in data.members else None,
        io_job=data.object("additional_io_job") if "additional_io_job" in data.members else None,
    )


def _mapping(data: _EventData, count: int) -> Sequence[int]:
    """Return the position in the allocation of each executor; Batsim accepts numbers as texts, too."""
    positions: dict[int, int] = {}
    for executor, position in data.object("mapping").items():
        if not executor.isdecimal() or not isinstance(position, str | int) or not str(position).isdecimal():
            data.reject("Invalid 'mapping' object: all keys and values must be integers")
        positions[int(executor)] = int(position)
    if not positions:
        data.reject("the 'mapping' value must be a non-empty object")
    for number in range(len(positions)):
        if number not in positions:
            data.reject(f"Invalid 'mapping' object: no resource associated to executor {number}.")
        if positions[number] >= count:
            data.reject(
                f"Invalid 'mapping' object: executor {number} should use the {positions[number]}-th resource within "
                f"the allocation, but there are only {count} allocated resources."
            )
    return [positions[number] for number in range(len(positions))]


def _storage(data: _EventData) -> Mapping[str, int]:
    storage: dict[str, int] = {}
    for label, machine in data.object("storage_mapping").items():
        if isinstance(machine, bool) or not isinstance(machine, int):
            data.reject("Invalid 'storage_mapping': a value is not an integer")
        storage[label] = machine
    if not storage:
        data.reject("the 'storage_mapping' value must be a non-empty object")
    return storage


def _read_state_change(data: _EventData, at: Instant) -> Event:
    data.check_size(2)
    state = data.string("state")
    if not state.lstrip("-").isdecimal():
        data.reject(f"'state' should be a string corresponding to an integer (got '{state}')")
    return SetResourceState(at=at, machines=data.machines("resources"), state=int(state))


def _read_metadata(data: _EventData, at: Instant) -> Event:
    data.check_size(2)
    metadata = data.string("metadata")
    if '"' in metadata:
        data.reject("the 'metadata' value should not contain double quotes")
    return SetJobMetadata(at=at, job_id=data.string("job_id"), metadata=metadata)


def _read_notification(data: _EventData, at: Instant) -> Event:
    more = {key: value for key, value in data.members.items() if key != "type"}
    return Notify(at=at, kind=data.string("type"), more=more)


def _read_submission(data: _EventData, at: Instant) -> Event:
    job = data.object("job") if "job" in data.members else None
    profile = data.object("profile") if "profile" in data.members else None
    return JobSubmitted(at=at, job_id=data.string("job_id"), job=job, profile=profile)


def _read_kills(data: _EventData, at: Instant) -> Event:
    progress = {job_id: tree for job_id, tree in data.object("job_progress").items() if isinstance(tree, dict)}
    return JobKilled(at=at, job_ids=data.strings("job_ids"), progress=progress)


def _read_completion(data: _EventData, at: Instant) -> Event:
    return JobCompleted(
        at=at,
        job_id=data.string("job_id"),
        state=data.string("job_state"),
        return_code=data.integer("return_code"),
        machines=data.machines("alloc"),
    )


def _event_types(*events: type[Event]) -> Iterable[str]:
    return (event.TYPE for event in events)


_READERS: Mapping[str, Callable[[_EventData, Instant], Event]] = {
    SimulationBegins.TYPE: lambda data, at: SimulationBegins(at=at, description=data.members),
    SimulationEnds.TYPE: lambda data, at: SimulationEnds(at=at),
    JobSubmitted.TYPE: _read_submission,
    JobCompleted.TYPE: _read_completion,
    JobKilled.TYPE: _read_kills,
    FromJobMessage.TYPE: lambda data, at: FromJobMessage(
        at=at, job_id=data.string("job_id"), message=data.members.get("msg")
    ),
    ResourceStateChanged.TYPE: lambda data, at: ResourceStateChanged(
        at=at, machines=data.machines("resources"), state=data.string("state")
    ),
    RequestedCall.TYPE: lambda data, at: RequestedCall(at=at),
    ExecuteJob.TYPE: _read_execution,
    RejectJob.TYPE: _read_rejection,
    KillJob.TYPE: _read_kill,
    CallMeLater.TYPE: _read_call,
    RegisterJob.TYPE: lambda data, at: RegisterJob(at=at, job_id=data.string("job_id"), job=data.object("job")),
    RegisterProfile.TYPE: lambda data, at: RegisterProfile(
        at=at, workload=data.string("workload_name"), name=data.string("profile_name"), profile=data.object("profile")
    ),
    SetResourceState.TYPE: _read_state_change,
    SetJobMetadata.TYPE: _read_metadata,
    ChangeJobState.TYPE: lambda data, at: ChangeJobState(
        at=at, job_id=data.string("job_id"), state=data.string("job_state")
    ),
    ToJobMessage.TYPE: lambda data, at: ToJobMessage(at=at, job_id=data.string("job_id"), message=data.string("msg")),
    Notify.TYPE: _read_notification,
    Query.TYPE: _read_query,
    Answer.TYPE: _read_answer,
}

#: The types of events that a scheduler may send.
SCHEDULER_EVENT_TYPES = frozenset(
    _event_types(
        ExecuteJob,
        RejectJob,
        KillJob,
        CallMeLater,
        RegisterJob,
        RegisterProfile,
        SetResourceState,
        SetJobMetadata,
        ChangeJobState,
        ToJobMessage,
        Notify,
        Query,
        Answer,
    )
)
