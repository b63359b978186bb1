"""Executes the events of a timeline: node failures, cordons and drains, added and removed machines, and others.

Administrators' actions go through the API. The failure of a node is not a request; it only stops the node's heartbeats
(`cluster.nodes.heartbeats`). Only the next event is on the agenda at any time, so a timeline may be endless.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import cast

from batkube.cluster.client import ApiError, Client
from batkube.cluster.mapping import NODE, POD
from batkube.cluster.object_meta import key_of, labels_of, with_metadata
from batkube.cluster.pods.accessors import eviction_of, is_evicted_by_drain, pods_on
from batkube.cluster.store import Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.execution.nodes.cordon_log import CordonLog
from batkube.execution.timeline.events import TimelineEvent
from batkube.kernel.agenda import Rank
from batkube.kernel.fidelity import FidelityNote
from batkube.kernel.instants import Duration, Instant, seconds
from batkube.platforms.model import Machine
from batkube.workloads.timeline.entries import EventAction, Taint

#: `kubectl drain` retries after this time if a disruption budget forbids an eviction (kubectl: pkg/drain/drain.go).
_DRAIN_RETRY_INTERVAL: Duration = seconds(5)
#: The runner stops after this many events in a row without any effect, while no other appointment exists.
_MAX_IDLE_EVENTS = 10_000

_TOO_MANY_REQUESTS = 429
_REFUSED = FidelityNote("events", "the API server rejected the request of an event")

ObjectAction = Callable[[TimelineEvent], str]
"""Applies, deletes or scales API objects, and returns their names for the journal."""

NodeAction = Callable[[KubeObject, TimelineEvent, Instant], bool]
"""Acts on an existing node, and returns whether it changed anything."""


class EventRunner:
    """Executes events, each at its time."""

    def __init__(
        self,
        world: World,
        client: Client,
        events: Iterator[TimelineEvent],
        machines: Mapping[str, Machine],
        add_node: Callable[[Machine, Instant], None],
        objects: ObjectAction | None = None,
        cordons: CordonLog | None = None,
    ) -> None:
        """`machines` are all machines of the run by node name; `add_node` creates the node of one.

        `objects` executes the actions on API objects. `cordons` records the cordons of others.
        """
        self._store = world.store
        self._agenda = world.agenda
        self._journal = world.journal
        self._notes = world.notes
        self._heartbeats = world.heartbeats
        self._client = client
        self._events = events
        self._next = next(events, None)
        self._machines = machines
        self._add_node = add_node
        self._object_action = objects
        self._cordons = cordons
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
        """Book the next event."""
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

    def _run_event(self, event: TimelineEvent, now: Instant) -> None:
        try:
            if event.action not in (*self._node_actions, EventAction.ADD):
                assert self._object_action is not None, f"{event.action} needs an API"
                self._journal.append(now, event.action, object=self._object_action(event))
                return
            with contextlib.nullcontext() if self._cordons is None else self._cordons.paused():
                changed = [node for node in event.nodes if self._run_on_node(node, event, now)]
            if changed:
                self._journal.append(now, event.action, nodes=" ".join(changed))
        except ApiError as refusal:
            self._notes.add(_REFUSED, example=f"{event.action}: {refusal.message}")

    def _run_on_node(self, name: str, event: TimelineEvent, now: Instant) -> bool:
        """Execute an event on a node; return whether it changed anything. A missing node can only be added."""
        node = self._store.get(NODE, Key(name))
        if event.action is EventAction.ADD:
            return node is None and self._add(name, now)
        return node is not None and self._node_actions[event.action](node, event, now)

    # Failures

    def _fail(self, node: KubeObject, event: TimelineEvent, now: Instant) -> bool:
        name = node["metadata"]["name"]
        was_alive = name not in self._heartbeats.silent
        self._heartbeats.stop(name, now)
        return was_alive

    def _recover(self, node: KubeObject, event: TimelineEvent, now: Instant) -> bool:
        name = node["metadata"]["name"]
        was_silent = name in self._heartbeats.silent
        self._heartbeats.resume(name, now)
        return was_silent

    # Administrators' actions

    def _drain(self, node: KubeObject, event: TimelineEvent, now: Instant) -> bool:
        """Cordon a node and evict its pods, as `kubectl drain --ignore-daemonsets --force` does."""
        self._change_spec(node, now, unschedulable=True)
        self._evict_pods(node["metadata"]["name"], now)
        return True

    def _evict_pods(self, node: str, now: Instant) -> None:
        """Evict the pods of a cordoned node; retry those that a disruption budget protects."""
        current = self._store.get(NODE, Key(node))
        if current is None or not current["spec"].get("unschedulable"):
            return
        pods = [key for key, pod in pods_on(self._store, [node]) if is_evicted_by_drain(pod)]
        if not all([self._evict(key, now) for key in pods]):
            self._agenda.book(
                Instant(now + _DRAIN_RETRY_INTERVAL), Rank.TIMELINE, functools.partial(self._evict_pods, node)
            )

    def _evict(self, key: Key, now: Instant) -> bool:
        """Evict a pod; return False if a disruption budget forbids it for now."""
        try:
            self._client.create(POD, eviction_of(key), now, subresource="eviction")
        except ApiError as refusal:
            return refusal.code != _TOO_MANY_REQUESTS
        return True

    def _taint(self, node: KubeObject, event: TimelineEvent, now: Instant) -> bool:
        taint = cast("Taint", event.detail)
        value = {"value": taint.value} if taint.value else {}
        new = {"key": taint.key, **value, "effect": taint.effect}
        other_taints = _taints_without(node, taint._replace(value=""))
        return self._change_spec(node, now, taints=[*other_taints, new])

    def _untaint(self, node: KubeObject, event: TimelineEvent, now: Instant) -> bool:
        taint = cast("Taint", event.detail)
        return self._change_spec(node, now, taints=_taints_without(node, taint) or None)

    def _label(self, node: KubeObject, event: TimelineEvent, now: Instant) -> bool:
        labels = {**labels_of(node), **cast("Mapping[str, str | None]", event.detail)}
        remaining = {key: value for key, value in labels.items() if value is not None}
        self._client.update(NODE, with_metadata(node, labels=remaining), now)
        return True

    def _change_spec(self, node: KubeObject, now: Instant, **fields: object) -> bool:
        """Set these fields of a node's spec, removing those that are None; return whether that changes anything."""
        spec = {key: value for key, value in {**node["spec"], **fields}.items() if value is not None}
        has_changed = bool(spec != node["spec"])
        if has_changed:
            self._client.update(NODE, {**node, "spec": spec}, now)
        return has_changed

    # Machines

    def _add(self, name: str, now: Instant) -> bool:
        self._add_node(self._machines[name], now)
        return True

    def _remove(self, node: KubeObject, event: TimelineEvent, now: Instant) -> bool:
        self._client.delete(NODE, key_of(node), now)
        return True


def _taints_without(node: KubeObject, taint: Taint) -> list[KubeObject]:
    """Return a node's taints without those that have the key of `taint` and, if it has one, its effect."""
    return [
        other
        for other in node["spec"].get("taints") or ()
        if other["key"] != taint.key or (taint.effect and other["effect"] != taint.effect)
    ]
