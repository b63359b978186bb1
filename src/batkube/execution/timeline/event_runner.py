"""Lets happen what a timetable says: nodes fail and come back, people cordon and drain, machines come and go.

What people do, they do through the API; that a node fails is nobody's request, and only its silence tells
(`cluster.heartbeats`). Only the next happening is on the agenda at any moment, so that a timetable may be endless.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import cast

from batkube.cluster.client import ApiError, Client
from batkube.cluster.mapping import NODE, POD, ResourceModel, node_of
from batkube.cluster.object_meta import controller_of, key_of, labels_of, with_metadata
from batkube.cluster.pods.accessors import eviction_of, is_active, pods_on
from batkube.cluster.store import Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.execution.timeline.events import TimelineEvent
from batkube.kernel.agenda import Rank
from batkube.kernel.fidelity import FidelityNote
from batkube.kernel.instants import Duration, Instant, seconds
from batkube.platforms.model import Machine
from batkube.workloads.events.entries import EventAction, Taint

#: `kubectl drain` asks again after so long when a disruption budget does not let a pod go.
_DRAIN_RETRY_INTERVAL: Duration = seconds(5)
#: When nothing else is due, so many happenings in a row that lead to nothing are the last: whoever waits does in vain.
_MAX_IDLE_EVENTS = 10_000

_TOO_MANY_REQUESTS = 429
_REFUSED = FidelityNote("events", "the server refused what an event asked for")

ObjectAction = Callable[[TimelineEvent], str]
"""Applies, deletes or scales objects of the API, and says which."""

NodeAction = Callable[[KubeObject, TimelineEvent, Instant], bool]
"""Does something to a node that is there, and returns whether there was anything to do."""


class EventRunner:
    """Carries out happenings, each at its time."""

    def __init__(
        self,
        world: World,
        client: Client,
        happenings: Iterator[TimelineEvent],
        machines: Mapping[str, Machine],
        model: ResourceModel,
        objects: ObjectAction | None = None,
    ) -> None:
        """`machines` are all there will ever be, by the name of their node; `objects` is for deeds that need an API."""
        self._store = world.store
        self._agenda = world.agenda
        self._journal = world.journal
        self._notes = world.notes
        self._heartbeats = world.heartbeats
        self._client = client
        self._events = happenings
        self._next = next(happenings, None)
        self._machines = machines
        self._model = model
        self._object_action = objects
        self._idle_events = 0
        world.store.subscribe(POD, self._on_pods_changed)
        self._node_actions: dict[EventAction, NodeAction] = {
            EventAction.FAIL: self._fail,
            EventAction.RETURN: self._recover,
            EventAction.CORDON: lambda node, _, now: self._change_spec(node, now, unschedulable=True),
            EventAction.UNCORDON: lambda node, _, now: self._change_spec(node, now, unschedulable=None),
            EventAction.DRAIN: self._drain,
            EventAction.TAINT: self._taint,
            EventAction.UNTAINT: self._untaint,
            EventAction.LABEL: self._label,
            EventAction.REMOVE: self._remove,
        }

    def start(self) -> None:
        """Book the next happening."""
        if self._next is not None and self._idle_events < _MAX_IDLE_EVENTS:
            self._agenda.book(self._next.at, Rank.TIMELINE, self._run_due_events)

    def _run_due_events(self, now: Instant) -> None:
        self._idle_events += len(self._agenda) == 0
        while self._next is not None and self._next.at == now:
            self._run_event(self._next, now)
            self._next = next(self._events, None)
        self.start()

    def _on_pods_changed(self, batch: Batch, now: Instant) -> None:
        self._idle_events = 0

    def _run_event(self, happening: TimelineEvent, now: Instant) -> None:
        try:
            if happening.action not in (*self._node_actions, EventAction.ADD):
                assert self._object_action is not None, f"{happening.action} needs an API"
                self._journal.append(now, happening.action, object=self._object_action(happening))
                return
            done = [node for node in happening.nodes if self._run_on_node(node, happening, now)]
            if done:
                self._journal.append(now, happening.action, nodes=" ".join(done))
        except ApiError as refusal:
            self._notes.add(_REFUSED, example=f"{happening.action}: {refusal.message}")

    def _run_on_node(self, name: str, happening: TimelineEvent, now: Instant) -> bool:
        """Do something to a node; return whether there was anything to do: nothing to one that is not there."""
        node = self._store.get(NODE, Key(name))
        if happening.action is EventAction.ADD:
            return node is None and self._add(name, now)
        return node is not None and self._node_actions[happening.action](node, happening, now)

    # Nodes fail

    def _fail(self, node: KubeObject, happening: TimelineEvent, now: Instant) -> bool:
        name = node["metadata"]["name"]
        is_heard = name not in self._heartbeats.silent
        self._heartbeats.stop(name, now)
        return is_heard

    def _recover(self, node: KubeObject, happening: TimelineEvent, now: Instant) -> bool:
        name = node["metadata"]["name"]
        is_silent = name in self._heartbeats.silent
        self._heartbeats.resume(name, now)
        return is_silent

    # People look after nodes

    def _drain(self, node: KubeObject, happening: TimelineEvent, now: Instant) -> bool:
        """Cordon a node and ask its pods to leave, as `kubectl drain --ignore-daemonsets --force` does."""
        self._change_spec(node, now, unschedulable=True)
        self._evict_pods(node["metadata"]["name"], now)
        return True

    def _evict_pods(self, node: str, now: Instant) -> None:
        """Ask the pods of a node that is cordoned to leave; those that may not yet are asked again."""
        there = self._store.get(NODE, Key(node))
        if there is None or not there["spec"].get("unschedulable"):
            return
        pods = [key for key, pod in pods_on(self._store, [node]) if _is_evicted_by_drain(pod)]
        if not all([self._evict(key, now) for key in pods]):
            self._agenda.book(
                Instant(now + _DRAIN_RETRY_INTERVAL), Rank.TIMELINE, functools.partial(self._evict_pods, node)
            )

    def _evict(self, key: Key, now: Instant) -> bool:
        """Ask a pod to leave; return whether it does."""
        try:
            self._client.create(POD, eviction_of(key), now, subresource="eviction")
        except ApiError as refusal:
            return refusal.code != _TOO_MANY_REQUESTS
        return True

    def _taint(self, node: KubeObject, happening: TimelineEvent, now: Instant) -> bool:
        taint = cast("Taint", happening.detail)
        value = {"value": taint.value} if taint.value else {}
        new = {"key": taint.key, **value, "effect": taint.effect}
        others = _taints_without(node, taint._replace(value=""))
        return self._change_spec(node, now, taints=[*others, new])

    def _untaint(self, node: KubeObject, happening: TimelineEvent, now: Instant) -> bool:
        taint = cast("Taint", happening.detail)
        return self._change_spec(node, now, taints=_taints_without(node, taint) or None)

    def _label(self, node: KubeObject, happening: TimelineEvent, now: Instant) -> bool:
        labels = {**labels_of(node), **cast("Mapping[str, str | None]", happening.detail)}
        kept = {key: value for key, value in labels.items() if value is not None}
        self._client.update(NODE, with_metadata(node, labels=kept), now)
        return True

    def _change_spec(self, node: KubeObject, now: Instant, **fields: object) -> bool:
        """Give a node's spec these fields, without those that are None; return whether that changes anything."""
        spec = {key: value for key, value in {**node["spec"], **fields}.items() if value is not None}
        is_other = bool(spec != node["spec"])
        if is_other:
            self._client.update(NODE, {**node, "spec": spec}, now)
        return is_other

    # Machines come and go

    def _add(self, name: str, now: Instant) -> bool:
        self._client.create(NODE, node_of(self._machines[name], self._model, now)[1], now)
        return True

    def _remove(self, node: KubeObject, happening: TimelineEvent, now: Instant) -> bool:
        self._client.delete(NODE, key_of(node), now)
        return True


def _taints_without(node: KubeObject, taint: Taint) -> list[KubeObject]:
    """Return a node's taints without those of this key and, if it has one, effect."""
    return [
        one
        for one in node["spec"].get("taints") or ()
        if one["key"] != taint.key or (taint.effect and one["effect"] != taint.effect)
    ]


def _is_evicted_by_drain(pod: KubeObject) -> bool:
    """Return whether a pod leaves a node that is drained; those of DaemonSets stay, and those that have ended."""
    return is_active(pod) and (controller_of(pod) or {}).get("kind") != "DaemonSet"
