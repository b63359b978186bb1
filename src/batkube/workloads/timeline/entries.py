"""Entries of an events file: scheduled changes of the cluster, independent of the file's format.

An entry has an action (`EventAction`), its target, and a schedule: at an instant, repeatedly, or after random times
for each node. `execution.timeline` resolves the nodes, because the platform is available only there.
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
    """The action of an entry. The value is its key in the file."""

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
#: Actions on existing nodes.
NODE_ACTIONS = frozenset(EventAction) - {EventAction.ADD, EventAction.APPLY, EventAction.DELETE, EventAction.SCALE}
#: Actions on API objects.
OBJECT_ACTIONS = frozenset((EventAction.APPLY, EventAction.DELETE, EventAction.SCALE))
#: The action that reverts another one after its `for` has elapsed.
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
    """One instant, or regular times from an instant on, or, per node, random times."""

    at: Instant = START
    every: Duration | None = None
    #: The number of repetitions, and their latest time; None for no limit.
    count: int | None = 1
    until: Instant | None = None
    #: Seconds from a node's recovery (or the beginning) until the next event on it.
    interval: Distribution | None = None


@dataclass(frozen=True, slots=True)
class EventNodes:
    """A selection of nodes: all, or by names, machine ids (a bit set) or labels."""

    names: tuple[str, ...] = ()
    ids: int = 0
    labels: Mapping[str, str] | None = None
    is_all: bool = False


class Taint(NamedTuple):
    """A taint to add or remove. When removing, an empty effect matches any effect."""

    key: str
    value: str
    effect: str


class Scaling(NamedTuple):
    """A workload object, and the number of replicas to scale it to."""

    kind: str
    namespace: str
    name: str
    replicas: int


class AddedMachines(NamedTuple):
    """Machines to add: a platform, and the prefix of their names."""

    platform: str
    name_prefix: str


Manifest = Mapping[str, Any]
ActionDetail = Taint | Mapping[str, str | None] | Scaling | AddedMachines | tuple[Manifest, ...] | None
"""The parameter of an action: taint, labels (None removes one), scaling, machines to add, or manifests."""


@dataclass(frozen=True, slots=True)
class EventEntry:
    """One entry of an events file."""

    #: Its file and position, for messages.
    place: Place
    action: EventAction
    schedule: EventSchedule
    nodes: EventNodes | None = None
    detail: ActionDetail = None
    #: Seconds until the inverse action; None if the action is permanent.
    duration: Distribution | None = None
    #: The time between the notice of reclamation and the removal of the node, as for spot instances.
    notice: Duration = NO_NOTICE
