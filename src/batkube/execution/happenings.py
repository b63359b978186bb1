"""Lets happen what a timetable says: nodes fail and come back, people cordon and drain, machines come and go.

What people do, they do through the API; that a node fails is nobody's request, and only its silence tells
(`cluster.heartbeats`). Only the next happening is on the agenda at any moment, so that a timetable may be endless.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import cast

from batkube.cluster.client import Client, Refused
from batkube.cluster.mapping import NODE, POD, ResourceModel, node_of
from batkube.cluster.pods import is_finished, node_of_pod
from batkube.cluster.references import controller_of, is_being_deleted, name_of, namespace_of, with_metadata
from batkube.cluster.store import Key, KubeObject
from batkube.cluster.timetable import Happening
from batkube.cluster.world import World
from batkube.kernel.agenda import Rank
from batkube.kernel.fidelity import FidelityNote
from batkube.kernel.instants import Duration, Instant, seconds
from batkube.platforms.model import Machine
from batkube.workloads.happenings import Deed, Taint

#: `kubectl drain` asks again after so long when a disruption budget does not let a pod go.
_DRAIN_AGAIN: Duration = seconds(5)
#: When nothing else is due, so many happenings in a row that lead to nothing are the last: whoever waits does in vain.
_IN_VAIN_MAX = 10_000

_NOT_DONE = FidelityNote("events", "the server refused what an event asked for")

Act = Callable[[str, Happening, Instant], bool]
"""Does something to a node, and returns whether there was anything to do."""


class Happenings:
    """Carries out happenings, each at its time."""

    def __init__(
        self,
        world: World,
        client: Client,
        happenings: Iterator[Happening],
        machines: Mapping[str, Machine],
        model: ResourceModel,
        objects: ObjectDeeds | None = None,
    ) -> None:
        """`machines` are all there will ever be, by the name of their node; `objects` is for what needs an API."""
        self._store = world.store
        self._agenda = world.agenda
        self._journal = world.journal
        self._notes = world.notes
        self._heartbeats = world.heartbeats
        self._client = client
        self._happenings = happenings
        self._next = next(happenings, None)
        self._machines = machines
        self._model = model
        self._objects = objects
        self._in_vain = 0
        self._version = world.store.version
        self._acts: dict[Deed, Act] = {
            Deed.FAIL: self._fail,
            Deed.RETURN: self._return,
            Deed.CORDON: functools.partial(self._cordon, is_cordoned=True),
            Deed.UNCORDON: functools.partial(self._cordon, is_cordoned=False),
            Deed.DRAIN: self._drain,
            Deed.TAINT: self._taint,
            Deed.UNTAINT: self._untaint,
            Deed.LABEL: self._label,
            Deed.ADD: self._add,
            Deed.REMOVE: self._remove,
        }

    def begin(self) -> None:
        """Book the next happening."""
        if self._next is not None and self._in_vain < _IN_VAIN_MAX:
            self._agenda.book(self._next.at, Rank.HAPPEN, self._happen)

    def _happen(self, now: Instant) -> None:
        self._count_in_vain()
        while self._next is not None and self._next.at == now:
            self._carry_out(self._next, now)
            self._next = next(self._happenings, None)
        self._version = self._store.version
        self.begin()

    def _count_in_vain(self) -> None:
        """Count how often in a row nothing but our own doings has changed anything, with nothing else to come."""
        is_alone = len(self._agenda) == 0 and self._store.version == self._version
        self._in_vain = self._in_vain + 1 if is_alone else 0

    def _carry_out(self, happening: Happening, now: Instant) -> None:
        try:
            act = self._acts.get(happening.deed)
            if act is None:
                assert self._objects is not None, f"{happening.deed} needs an API"
                self._journal.append(now, happening.deed, object=self._objects.carry_out(happening, now))
                return
            done = [node for node in happening.nodes if act(node, happening, now)]
            if done:
                self._journal.append(now, happening.deed, nodes=" ".join(done))
        except Refused as refusal:
            self._notes.add(_NOT_DONE, example=f"{happening.deed}: {refusal.message}")

    # Nodes fail

    def _fail(self, node: str, happening: Happening, now: Instant) -> bool:
        if self._store.get(NODE, Key(node)) is None or node in self._heartbeats.silent:
            return False
        self._heartbeats.silence(node, now)
        return True

    def _return(self, node: str, happening: Happening, now: Instant) -> bool:
        if node not in self._heartbeats.silent:
            return False
        self._heartbeats.revive(node, now)
        return True

    # People look after nodes

    def _cordon(self, node: str, happening: Happening, now: Instant, *, is_cordoned: bool) -> bool:
        return self._change(node, lambda spec: {**spec, "unschedulable": True} if is_cordoned else _open(spec), now)

    def _drain(self, node: str, happening: Happening, now: Instant) -> bool:
        """Cordon a node and ask its pods to leave, as `kubectl drain --ignore-daemonsets --force` does."""
        if self._store.get(NODE, Key(node)) is None:
            return False
        self._cordon(node, happening, now, is_cordoned=True)
        self._evict_from(node, now)
        return True

    def _evict_from(self, node: str, now: Instant) -> None:
        is_again_needed = False
        for key, (pod, _) in list(self._store.entries(POD).items()):
            if node_of_pod(pod) == node and _must_leave(pod):
                is_again_needed |= not self._evict(key)(now)
        if is_again_needed:
            self._agenda.book(Instant(now + _DRAIN_AGAIN), Rank.HAPPEN, functools.partial(self._drain_on, node))
