"""Watch events, decoded to the fields that a run needs.

The time of an event is that of its arrival, on the local clock. The API's timestamps are not precise enough: they are
whole seconds, and each component writes those of its own clock.
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
    #: Whether its container is running or has terminated.
    has_started: bool
    #: The kubelet's startedAt of its container, in whole seconds; "" if unset.
    started_at: str
    exit_code: int
    #: The reason why it is pending or has failed, with its message; "" if there is none.
    reason: str
    #: Whether it has the condition DisruptionTarget (preemption, eviction).
    is_disrupted: bool
    #: Whether it was deleted.
    is_deleted: bool

    @property
    def has_finished(self) -> bool:
        """Whether it was deleted or has a terminal phase."""
        return self.is_deleted or self.phase in TERMINAL_PHASES


class PodProgress(NamedTuple):
    """The progress of a pod through its life cycle."""

    phase: str
    #: Whether a container is running or has terminated.
    has_started: bool
    #: The kubelet's earliest startedAt and latest finishedAt, in whole seconds; "" if unset.
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
    #: The number of occurrences, including this one.
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
    """Return metadata.resourceVersion of an object, a list or a bookmark."""
    return _decode_version(content).metadata.resource_version


def items_of(content: bytes) -> list[msgspec.Raw]:
    """Return the objects of a list."""
    return msgspec.json.decode(content, type=_List).items


def pod_update_of(content: msgspec.Raw, at: Instant, is_deletion: bool = False) -> PodUpdate | None:
    """Return the state of a pod, given as JSON; None if the pod does not belong to a job."""
    pod = _decode_pod(content)
    number = pod.metadata.labels.get(LABEL_NUMBER, "")
    if not number.isdigit():
        return None
    status = pod.status
    states = _states(status)
    progress = _progress(status, states)
    return PodUpdate(
        at,
        int(number),
        pod.metadata.name,
        pod.spec.node_name,
        progress.phase,
        progress.has_started,
        progress.started_at,
        progress.exit_code,
        _reason(status, states),
        any(each.type == "DisruptionTarget" and each.status == "True" for each in status.conditions or ()),
        is_deletion,
    )


def pod_progress_of(content: msgspec.Raw) -> PodProgress:
    """Return the progress of a pod, given as JSON."""
    status = _decode_pod(content).status
    return _progress(status, _states(status))


def _states(status: _Status) -> list[_State]:
    return [container.state for container in status.container_statuses or ()]


def _progress(status: _Status, states: list[_State]) -> PodProgress:
    terminated = [state.terminated for state in states if state.terminated is not None]
    started = [state.running for state in states if state.running is not None] + terminated
    return PodProgress(
        status.phase,
        bool(started) or status.phase == "Running",
        min((each.started_at for each in started if each.started_at), default=""),
        max((each.finished_at for each in terminated if each.finished_at), default=""),
        max((each.exit_code for each in terminated), default=0),
    )


def pod_event_of(content: msgspec.Raw, at: Instant, is_deletion: bool = False) -> PodEvent | None:
    """Return an Event, given as JSON; None if it is not about a pod, or was deleted."""
    if is_deletion:
        return None
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
    unscheduled = [each for each in status.conditions or () if each.type == "PodScheduled" and each.status == "False"]
    return unscheduled[0].message or unscheduled[0].reason if unscheduled else ""


def _reason_and_message(reason: str, message: str) -> str:
    return f"{reason}: {message}" if message else reason
