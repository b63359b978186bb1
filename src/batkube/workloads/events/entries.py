"""What is to happen to a cluster while jobs come and go: entries of an events file, whatever its format.

An entry says what is done (`EventAction`), to what, and when: at an instant, repeatedly, or drawn from a distribution
for each
node by itself. Which nodes that are, and that they exist, is found out where the platform is known
(`cluster.timetable`).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from batkube.kernel.distributions import Distribution
from batkube.kernel.instants import START, Duration, Instant
from batkube.workloads.fields import Place


class EventAction(enum.StrEnum):
    """What is done; the key of an entry that says so."""

    FAIL = "fail"
    RETURN = "return"
    CORDON = "cordon"
    UNCORDON = "uncordon"
    DRAIN = "drain"
    TAINT = "taint"
    UNTAINT = "untaint"
    LABEL = "label"
    ADD = "add"
    REMOVE = "remove"
    RECLAIM = "reclaim"
    APPLY = "apply"
    DELETE = "delete"
    SCALE = "scale"


NO_NOTICE = Duration(0)
#: What is done to nodes that are there already.
NODE_ACTIONS = frozenset(EventAction) - {EventAction.ADD, EventAction.APPLY, EventAction.DELETE, EventAction.SCALE}
#: What is done to objects of the API.
OBJECT_ACTIONS = frozenset((EventAction.APPLY, EventAction.DELETE, EventAction.SCALE))
#: What undoes a deed that is done for a while only.
INVERSE_ACTIONS = {
    EventAction.FAIL: EventAction.RETURN,
    EventAction.CORDON: EventAction.UNCORDON,
    EventAction.DRAIN: EventAction.UNCORDON,
    EventAction.TAINT: EventAction.UNTAINT,
    EventAction.ADD: EventAction.REMOVE,
    EventAction.REMOVE: EventAction.ADD,
    EventAction.RECLAIM: EventAction.ADD,
}


@dataclass(frozen=True, slots=True)
class EventSchedule:
    """At one instant; or from it on at regular steps; or, per node, after times that are drawn."""

    at: Instant = START
    every: Duration | None = None
    #: How often, and until when at most; None for ever.
    count: int | None = 1
    until: Instant | None = None
    #: Seconds from when a node is as it should be until the next time it happens to it.
    interval: Distribution | None = None


@dataclass(frozen=True, slots=True)
class EventNodes:
    """Which nodes are meant: all, or those with these names, machine ids (an interval set) or labels."""

    names: tuple[str, ...] = ()
    ids: int = 0
    labels: Mapping[str, str] | None = None
    is_all: bool = False


class Taint(NamedTuple):
    """A taint to put on nodes, or to take from them: then an empty effect means any."""

    key: str
    value: str
    effect: str


class Scaling(NamedTuple):
    """An object with replicas, and how many it is to have."""

    kind: str
    namespace: str
    name: str
    replicas: int


class AddedMachines(NamedTuple):
    """Machines to add: a platform, and what their names begin with."""

    platform: str
    name_prefix: str


Manifest = Mapping[str, Any]
ActionDetail = Taint | Mapping[str, str | None] | Scaling | AddedMachines | tuple[Manifest, ...] | None
"""What a deed needs to know besides its nodes: the taint, labels (None to remove), the scaling, machines, manifests."""


@dataclass(frozen=True, slots=True)
class EventEntry:
    """One entry of an events file."""

    #: Where it stands, for messages.
    place: Place
    action: EventAction
    schedule: EventSchedule
    nodes: EventNodes | None = None
    detail: ActionDetail = None
    #: For how many seconds, if not for good.
    duration: Distribution | None = None
    #: How long before it is taken away a reclaimed node is told.
    notice: Duration = NO_NOTICE
