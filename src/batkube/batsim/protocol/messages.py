"""The words of Batsim's protocol, version 4.1: a message is a date and events, and each event has its own type.

What Batsim says and what a scheduler says are two lists; three kinds of event go both ways. Dates are instants here
and decimal seconds on the wire; resources are sets of ids here (`kernel.intervals`) and interval sets on the wire. What
only passes through (descriptions of jobs and profiles, messages of jobs) stays the JSON that it is.

Source: Batsim documentation, "Protocol"; where Batsim 4.2.1 does otherwise, it is followed, and said here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import msgspec

from batkube.kernel.instants import Instant

Json = object
"""What JSON can say: None, bool, int, float or Decimal, str, list, dict."""

JsonObject = Mapping[str, Json]


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Something that one side tells the other."""

    #: What the protocol calls it.
    TYPE: ClassVar[str]
    #: When it happened, or is to be done.
    at: Instant


# From Batsim


class SimulationBegins(Event, frozen=True, kw_only=True):
    """The first event: what there is. `description` is its data whole, which Batsim only ever passes on."""

    TYPE = "SIMULATION_BEGINS"
    description: JsonObject


class SimulationEnds(Event, frozen=True, kw_only=True):
    """The last event."""

    TYPE = "SIMULATION_ENDS"


class JobSubmitted(Event, frozen=True, kw_only=True):
    """A job arrived, or a registration is acknowledged; `profile` is there if profiles are forwarded."""

    TYPE = "JOB_SUBMITTED"
    job_id: str
    job: JsonObject | None = None
    profile: JsonObject | None = None


class JobCompleted(Event, frozen=True, kw_only=True):
    """A job ended, in whatever way; one that was killed too."""

    TYPE = "JOB_COMPLETED"
    job_id: str
    state: str
    return_code: int
    machines: int


class JobKilled(Event, frozen=True, kw_only=True):
    """The kills of one request are done; `progress` says how far each job was that had not ended by itself."""

    TYPE = "JOB_KILLED"
    job_ids: Sequence[str]
    progress: Mapping[str, JsonObject]


class FromJobMessage(Event, frozen=True, kw_only=True):
    """A job speaks to the scheduler."""

    TYPE = "FROM_JOB_MSG"
    job_id: str
    message: Json


class ResourceStateChanged(Event, frozen=True, kw_only=True):
    """All machines of one request are in the state that was asked for."""

    TYPE = "RESOURCE_STATE_CHANGED"
    machines: int
    state: str


class RequestedCall(Event, frozen=True, kw_only=True):
    """The call that was asked for by CALL_ME_LATER."""

    TYPE = "REQUESTED_CALL"


# From the scheduler


class ExecuteJob(Event, frozen=True, kw_only=True):
    """Run a job on machines.

    `mapping` gives for each executor which machine of the allocation it uses; `storage` which host a label means;
    `io_job` is a profile that runs together with the job's own, on machines of its own.
    """

    TYPE = "EXECUTE_JOB"
    job_id: str
    machines: int
    mapping: Sequence[int] | None = None
    storage: Mapping[str, int] | None = None
    io_job: JsonObject | None = None


class RejectJob(Event, frozen=True, kw_only=True):
    """Never run a job."""

    TYPE = "REJECT_JOB"
    job_id: str


class KillJob(Event, frozen=True, kw_only=True):
    """Stop jobs that run."""

    TYPE = "KILL_JOB"
    job_ids: Sequence[str]


class CallMeLater(Event, frozen=True, kw_only=True):
    """Send a REQUESTED_CALL at a date."""

    TYPE = "CALL_ME_LATER"
    call_at: Instant


class RegisterJob(Event, frozen=True, kw_only=True):
    """A job of the scheduler's own; `subtime` is required, whatever the documentation's example says."""

    TYPE = "REGISTER_JOB"
    job_id: str
    job: JsonObject


class RegisterProfile(Event, frozen=True, kw_only=True):
    """A profile of the scheduler's own."""

    TYPE = "REGISTER_PROFILE"
    workload: str
    name: str
    profile: JsonObject


class SetResourceState(Event, frozen=True, kw_only=True):
    """Bring machines into a pstate: another speed, or to sleep and back."""

    TYPE = "SET_RESOURCE_STATE"
    machines: int
    state: int


class SetJobMetadata(Event, frozen=True, kw_only=True):
    """A text for the job's row of the outputs."""

    TYPE = "SET_JOB_METADATA"
    job_id: str
    metadata: str


class ChangeJobState(Event, frozen=True, kw_only=True):
    """Say what state a job is in, without having it run."""

    TYPE = "CHANGE_JOB_STATE"
    job_id: str
    state: str


class ToJobMessage(Event, frozen=True, kw_only=True):
    """The scheduler speaks to a job."""

    TYPE = "TO_JOB_MSG"
    job_id: str
    message: str


# Both ways


class Notify(Event, frozen=True, kw_only=True):
    """Something to know of; `more` are further members, of external events for example."""

    TYPE = "NOTIFY"
    kind: str
    more: JsonObject = {}


class Query(Event, frozen=True, kw_only=True):
    """Questions by name: `consumed_energy` to Batsim, `estimate_waiting_time` to the scheduler."""

    TYPE = "QUERY"
    requests: JsonObject


class Answer(Event, frozen=True, kw_only=True):
    """Answers by the name of their question."""

    TYPE = "ANSWER"
    answers: JsonObject


class Message(msgspec.Struct, frozen=True):
    """What goes over the wire at once.

    From Batsim `now` is when decisions can take effect at the earliest; from a scheduler, when it has done deciding,
    and before which it is not called again.
    """

    now: Instant
    events: Sequence[Event] = ()
