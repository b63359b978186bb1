"""What is to happen to a cluster while jobs come and go: entries of an events file, whatever its format.

An entry says what is done (`Deed`), to what, and when: at an instant, repeatedly, or drawn from a distribution for each
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


class Deed(enum.StrEnum):
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


NO_TIME = Duration(0)
#: What is done to nodes that are there already.
NODE_DEEDS = frozenset(Deed) - {Deed.ADD, Deed.APPLY, Deed.DELETE, Deed.SCALE}
#: What is done to objects of the API.
API_DEEDS = frozenset((Deed.APPLY, Deed.DELETE, Deed.SCALE))
#: What undoes a deed that is done for a while only.
UNDOING = {
    Deed.FAIL: Deed.RETURN,
    Deed.CORDON: Deed.UNCORDON,
    Deed.DRAIN: Deed.UNCORDON,
    Deed.TAINT: Deed.UNTAINT,
    Deed.ADD: Deed.REMOVE,
    Deed.REMOVE: Deed.ADD,
    Deed.RECLAIM: Deed.ADD,
}


@dataclass(frozen=True, slots=True)
class When:
    """At one instant; or from it on at regular steps; or, per node, after times that are drawn."""

    at: Instant = START
    every: Duration | None = None
    #: How often, and until when at most; None for ever.
    count: int | None = 1
    until: Instant | None = None
    #: Seconds from when a node is as it should be until the next time it happens to it.
    between: Distribution | None = None


@dataclass(frozen=True, slots=True)
class NodeChoice:
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


class Addition(NamedTuple):
    """Machines to add: a platform, and what their names begin with."""

    platform: str
    prefix: str


Manifest = Mapping[str, Any]
Detail = Taint | Mapping[str, str | None] | Scaling | Addition | tuple[Manifest, ...] | None
"""What a deed needs to know besides its nodes: the taint, labels (None to remove), the scaling, machines, manifests."""


@dataclass(frozen=True, slots=True)
class EventEntry:
    """One entry of an events file."""

    #: Where it stands, for messages.
    place: Place
    deed: Deed
    when: When
    nodes: NodeChoice | None = None
    detail: Detail = None
    #: For how many seconds, if not for good.
    lasts: Distribution | None = None
    #: How long before it is taken away a reclaimed node is told.
    notice: Duration = NO_TIME
