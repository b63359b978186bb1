"""The messages of Batsim's protocol, version 4.1: a message is a date and events, with a class per type of event.

Some events are sent by Batsim, some by a scheduler, and three by both. Dates are instants here and decimal seconds in
JSON; resources are sets of ids here (`kernel/intervals.py`) and interval sets in JSON. Values that are only forwarded
(descriptions of jobs and profiles, messages of jobs) remain JSON.

Source: Batsim's docs/protocol.rst. Where Batsim 4.2.1 differs from it, this module follows Batsim, and says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import msgspec

from batkube.kernel.instants import Instant

Json = object
"""A JSON value: None, bool, int, float or Decimal, str, list, dict."""

JsonObject = Mapping[str, Json]


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """An event of a message."""

    #: Its type in the protocol.
    TYPE: ClassVar[str]
    #: Its timestamp: when it happened, or when Batsim handles it.
    at: Instant


# From Batsim


class SimulationBegins(Event, frozen=True, kw_only=True):
    """The simulation begins; `description` is the data of the event."""

    TYPE = "SIMULATION_BEGINS"
    description: JsonObject


class SimulationEnds(Event, frozen=True, kw_only=True):
    """The simulation ends."""

    TYPE = "SIMULATION_ENDS"


class JobSubmitted(Event, frozen=True, kw_only=True):
    """A job was submitted, or its registration is acknowledged; `profile` is set if profiles are forwarded."""

    TYPE = "JOB_SUBMITTED"
    job_id: str
    job: JsonObject | None = None
    profile: JsonObject | None = None


class JobCompleted(Event, frozen=True, kw_only=True):
    """A job has ended in any way, including a kill."""

    TYPE = "JOB_COMPLETED"
    job_id: str
    state: str
    return_code: int
    machines: int


class JobKilled(Event, frozen=True, kw_only=True):
    """A KILL_JOB request is complete; `progress` has the progress of each job that was still running."""

    TYPE = "JOB_KILLED"
    job_ids: Sequence[str]
    progress: Mapping[str, JsonObject]


class FromJobMessage(Event, frozen=True, kw_only=True):
    """A message from a job to the scheduler."""

    TYPE = "FROM_JOB_MSG"
    job_id: str
    message: Json


class ResourceStateChanged(Event, frozen=True, kw_only=True):
    """All machines of a SET_RESOURCE_STATE request are in the requested state."""

    TYPE = "RESOURCE_STATE_CHANGED"
    machines: int
    state: str


class RequestedCall(Event, frozen=True, kw_only=True):
    """The call that CALL_ME_LATER has requested."""

    TYPE = "REQUESTED_CALL"


# From the scheduler


class ExecuteJob(Event, frozen=True, kw_only=True):
    """Execute a job on machines.

    `mapping` is the position in the allocation of each executor, `storage` the machine of each storage label
    (`storage_mapping` in JSON), and `io_job` a profile that runs beside that of the job, with an allocation of its own
    (`additional_io_job`).
    """

    TYPE = "EXECUTE_JOB"
    job_id: str
    machines: int
    mapping: Sequence[int] | None = None
    storage: Mapping[str, int] | None = None
    io_job: JsonObject | None = None


class RejectJob(Event, frozen=True, kw_only=True):
    """Reject a job: it is never executed."""

    TYPE = "REJECT_JOB"
    job_id: str


class KillJob(Event, frozen=True, kw_only=True):
    """Kill running jobs."""

    TYPE = "KILL_JOB"
    job_ids: Sequence[str]


class CallMeLater(Event, frozen=True, kw_only=True):
    """Send a REQUESTED_CALL at a date."""

    TYPE = "CALL_ME_LATER"
    call_at: Instant


class RegisterJob(Event, frozen=True, kw_only=True):
    """Register a job of the scheduler; `subtime` is required, although it is missing in the documentation's example."""

    TYPE = "REGISTER_JOB"
    job_id: str
    job: JsonObject


class RegisterProfile(Event, frozen=True, kw_only=True):
    """Register a profile of the scheduler."""

    TYPE = "REGISTER_PROFILE"
    workload: str
    name: str
    profile: JsonObject


class SetResourceState(Event, frozen=True, kw_only=True):
    """Switch machines to a power state: another speed, or to sleep and back."""

    TYPE = "SET_RESOURCE_STATE"
    machines: int
    state: int


class SetJobMetadata(Event, frozen=True, kw_only=True):
    """Set the text in the `metadata` column of a job."""

    TYPE = "SET_JOB_METADATA"
    job_id: str
    metadata: str


class ChangeJobState(Event, frozen=True, kw_only=True):
    """Change the state of a job without executing it."""

    TYPE = "CHANGE_JOB_STATE"
    job_id: str
    state: str


class ToJobMessage(Event, frozen=True, kw_only=True):
    """A message from the scheduler to a job."""

    TYPE = "TO_JOB_MSG"
    job_id: str
    message: str


# From both


class Notify(Event, frozen=True, kw_only=True):
    """A notification; `more` are the other members of its data, such as those of an external event."""

    TYPE = "NOTIFY"
    kind: str
    more: JsonObject = {}


class Query(Event, frozen=True, kw_only=True):
    """Requests for information, by name: `consumed_energy` from Batsim, `estimate_waiting_time` from a scheduler."""

    TYPE = "QUERY"
    requests: JsonObject


class Answer(Event, frozen=True, kw_only=True):
    """Answers to a QUERY, by the names of the requests."""

    TYPE = "ANSWER"
    answers: JsonObject


class Message(msgspec.Struct, frozen=True):
    """A message.

    From Batsim, `now` is the earliest date of decisions. From a scheduler, it is when the decisions are complete:
    Batsim sends no message before.
    """

    now: Instant
    events: Sequence[Event] = ()
