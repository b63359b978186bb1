"""Encodes messages byte for byte as Batsim does.

Dates and other floats have six decimals, and members have Batsim's order.

Imitated: Batsim 4.2.1, JsonProtocolWriter in src/protocol.cpp.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from json.encoder import encode_basestring

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
from batkube.kernel.instants import Instant, as_float_s
from batkube.kernel.intervals import format_intervals


def encode(message: Message) -> str:
    """Return the JSON of a message."""
    events = ",".join(_encode_event(event) for event in message.events)
    return f'{{"now":{_timestamp(message.now)},"events":[{events}]}}'


def _encode_event(event: Event) -> str:
    data = json_text(event_data(event))
    return f'{{"timestamp":{_timestamp(event.at)},"type":"{event.TYPE}","data":{data}}}'


def _timestamp(instant: Instant) -> str:
    return f"{as_float_s(instant):.6f}"


def json_text(value: Json) -> str:
    """Return the JSON text of a value, as RapidJSON writes it for Batsim: no spaces, six decimals."""
    match value:
        case str():
            return encode_basestring(value)
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float() | Decimal():
            return f"{value:.6f}"
        case Mapping():
            return "{" + ",".join(f"{encode_basestring(key)}:{json_text(part)}" for key, part in value.items()) + "}"
        case Sequence():
            return "[" + ",".join(map(json_text, value)) + "]"
    raise TypeError(f"{type(value).__name__} is not a JSON type")


def event_data(event: Event) -> JsonObject:
    """Return the data of an event, with its members in Batsim's order."""
    match event:
        case SimulationBegins():
            return event.description
        case SimulationEnds() | RequestedCall():
            return {}
        case JobSubmitted():
            job = {} if event.job is None else {"job": event.job}
            profile = {} if event.profile is None else {"profile": event.profile}
            return {"job_id": event.job_id, **job, **profile}
        case JobCompleted():
            return {
                "job_id": event.job_id,
                "job_state": event.state,
                "return_code": event.return_code,
                "alloc": format_intervals(event.machines),
            }
        case JobKilled():
            return {"job_ids": event.job_ids, "job_progress": event.progress}
        case FromJobMessage() | ToJobMessage():
            return {"job_id": event.job_id, "msg": event.message}
        case ResourceStateChanged() | SetResourceState():
            return {"resources": format_intervals(event.machines), "state": str(event.state)}
        case ExecuteJob():
            return _execute_job_data(event)
        case RejectJob():
            return {"job_id": event.job_id}
        case KillJob():
            return {"job_ids": event.job_ids}
        case CallMeLater():
            return {"timestamp": as_float_s(event.call_at)}
        case RegisterJob():
            return {"job_id": event.job_id, "job": event.job}
        case RegisterProfile():
            return {"workload_name": event.workload, "profile_name": event.name, "profile": event.profile}
        case SetJobMetadata():
            return {"job_id": event.job_id, "metadata": event.metadata}
        case ChangeJobState():
            return {"job_id": event.job_id, "job_state": event.state}
        case Notify():
            return {"type": event.kind, **event.more}
        case Query():
            return {"requests": event.requests}
        case Answer():
            return event.answers
    raise TypeError(f"{type(event).__name__} is not an event of the protocol")


def _execute_job_data(event: ExecuteJob) -> JsonObject:
    data: dict[str, Json] = {"job_id": event.job_id, "alloc": format_intervals(event.machines)}
    if event.mapping is not None:
        data["mapping"] = {str(executor): str(position) for executor, position in enumerate(event.mapping)}
    if event.storage is not None:
        data["storage_mapping"] = event.storage
    if event.io_job is not None:
        data["additional_io_job"] = event.io_job
    return data
