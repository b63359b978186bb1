"""Events from the watches, reduced to the fields that a run needs.

Times are those of *arrival*, on our own clock. The API's timestamps would not do: they are whole seconds, and every
component writes its own clock's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from batkube.cluster.pods.accessors import TERMINAL_PHASES
from batkube.emulation.manifests import LABEL_NUMBER
from batkube.kernel.instants import Instant


@dataclass(frozen=True, slots=True)
class PodUpdate:
    """The state of a pod in a watch event."""

    at: Instant
    number: int
    name: str
    node: str
    phase: str
    #: Whether its container runs or has run.
    has_started: bool
    #: When its container began, as the kubelet tells: whole seconds, "" if it does not.
    started_at: str
    exit_code: int
    #: Why it is pending, stuck or failed; "" if it is not.
    reason: str
    #: Whether it is being preempted.
    is_disrupted: bool
    #: Whether it is deleted.
    is_gone: bool

    @property
    def has_finished(self) -> bool:
        """Whether it has ended."""
        return self.is_gone or self.phase in TERMINAL_PHASES


class PodProgress(NamedTuple):
    """The progress of a pod's containers."""

    phase: str
    #: Whether one runs or has run.
    has_started: bool
    #: When the first one began and the last one ended, as the kubelet tells: whole seconds, "" if it does not.
    started_at: str
    finished_at: str
    exit_code: int


@dataclass(frozen=True, slots=True)
class PodEvent:
    """An Event of the scheduler or the kubelet about a pod."""

    at: Instant
    pod: str
    name: str
    reason: str
    message: str
    #: How often it has happened, this one included.
    count: int


class _Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    resource_version: str = ""
    labels: dict[str, str] = {}


class _Running(msgspec.Struct, rename="camel"):
    started_at: str | None = None


class _Waiting(msgspec.Struct, rename="camel"):
    reason: str = ""
    message: str = ""


class _Terminated(msgspec.Struct, rename="camel"):
    exit_code: int = 0
    reason: str = ""
    started_at: str | None = None
    finished_at: str | None = None


class _State(msgspec.Struct, rename="camel"):
    running: _Running | None = None
    waiting: _Waiting | None = None
    terminated: _Terminated | None = None


class _Container(msgspec.Struct, rename="camel"):
    state: _State = msgspec.field(default_factory=_State)


class _Condition(msgspec.Struct, rename="camel"):
    type: str
    status: str
    reason: str = ""
    message: str = ""


class _Status(msgspec.Struct, rename="camel"):
    phase: str = "Pending"
    reason: str = ""
    message: str = ""
    conditions: list[_Condition] | None = None
    container_statuses: list[_Container] | None = None


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Pod(msgspec.Struct, rename="camel"):
    metadata: _Meta
    spec: _Spec
    status: _Status = msgspec.field(default_factory=_Status)


class _Reference(msgspec.Struct, rename="camel"):
    kind: str = ""
    name: str = ""


class _Series(msgspec.Struct, rename="camel"):
    count: int = 0


class _Event(msgspec.Struct, rename="camel"):
    metadata: _Meta
    involved_object: _Reference = msgspec.field(default_factory=_Reference)
    reason: str = ""
    message: str | None = ""
    count: int | None = None
    series: _Series | None = None


class WatchEvent(msgspec.Struct):
    """One line of a watch."""

    type: str
    object: msgspec.Raw


class _Versioned(msgspec.Struct):
    metadata: _Meta


class _List(msgspec.Struct):
    metadata: _Meta
    items: list[msgspec.Raw]


_decode_watch_event = msgspec.json.Decoder(WatchEvent).decode
_decode_pod = msgspec.json.Decoder(_Pod).decode
_decode_event = msgspec.json.Decoder(_Event).decode
_decode_version = msgspec.json.Decoder(_Versioned).decode


def decode_watch_event(line: bytes) -> WatchEvent:
    """Decode one line of a watch."""
    return _decode_watch_event(line)


def resource_version_of(content: bytes | msgspec.Raw) -> str:
    """Return the version that an object, a list or a bookmark carries."""
    return _decode_version(content).metadata.resource_version


def items_of(content: bytes) -> list[msgspec.Raw]:
    """Return the objects of a list."""
    return msgspec.json.decode(content, type=_List).items


def pod_update_of(content: msgspec.Raw, at: Instant, *, is_gone: bool = False) -> PodUpdate | None:
    """Return what a pod's JSON tells; None if it is no pod of a job."""
    pod = _decode_pod(content)
    number = pod.metadata.labels.get(LABEL_NUMBER, "")
    if not number.isdigit():
        return None
    status = pod.status
    states = _states(status)
    life = _progress(status, states)
    return PodUpdate(
        at,
        int(number),
        pod.metadata.name,
        pod.spec.node_name,
        life.phase,
        life.has_started,
        life.started_at,
        life.exit_code,
        _reason(status, states),
        any(each.type == "DisruptionTarget" and each.status == "True" for each in status.conditions or ()),
        is_gone,
    )


def pod_progress_of(content: msgspec.Raw) -> PodProgress:
    """Return how far any pod has come, as its JSON tells."""
    status = _decode_pod(content).status
    return _progress(status, _states(status))


def _states(status: _Status) -> list[_State]:
    return [container.state for container in status.container_statuses or ()]


def _progress(status: _Status, states: list[_State]) -> PodProgress:
    ends = [state.terminated for state in states if state.terminated is not None]
    begun = [state.running for state in states if state.running is not None] + ends
    return PodProgress(
        status.phase,
        bool(begun) or status.phase == "Running",
        min((each.started_at for each in begun if each.started_at), default=""),
        max((end.finished_at for end in ends if end.finished_at), default=""),
        max((end.exit_code for end in ends), default=0),
    )


def pod_event_of(content: msgspec.Raw, at: Instant) -> PodEvent | None:
    """Return what an Event's JSON tells; None if it is not about a pod."""
    event = _decode_event(content)
    if event.involved_object.kind != "Pod":
        return None
    count = max(event.count or 0, event.series.count if event.series else 0, 1)
    return PodEvent(at, event.involved_object.name, event.metadata.name, event.reason, event.message or "", count)


def _reason(status: _Status, states: list[_State]) -> str:
    if status.reason:
        return _reason_and_message(status.reason, status.message)
    for state in states:
        if state.waiting is not None and state.waiting.reason not in ("", "ContainerCreating", "PodInitializing"):
            return _reason_and_message(state.waiting.reason, state.waiting.message)
        if state.terminated is not None and state.terminated.exit_code:
            return _reason_and_message(state.terminated.reason, f"exit code {state.terminated.exit_code}")
    unplaced = [each for each in status.conditions or () if each.type == "PodScheduled" and each.status == "False"]
    return unplaced[0].message or unplaced[0].reason if unplaced else ""


def _reason_and_message(reason: str, message: str) -> str:
    return f"{reason}: {message}" if message else reason
