"""The scheduler of a served cluster: each pod on its own, the most important first, on the node with the most room.

What kube-scheduler does with its default configuration, as far as people at a keyboard see it: requests, node names,
selectors, required and preferred node affinity, taints, cordons, priorities and preemption; and when a pod fits
nowhere, the condition and the event that say why in the same words (Kubernetes: pkg/scheduler).
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from batkube.cluster.client import Client
from batkube.cluster.event_recorder import EventRecorder
from batkube.cluster.resources import Amounts, demand_of
from batkube.cluster.scheduling_rules import rules_key
from batkube.cluster.store import Key, KubeObject
from batkube.cluster.world import World
from batkube.kernel.instants import Instant
from batkube.policies.node_table import Mask, NodeTable
from batkube.policies.preemption import Preemption
from batkube.policies.served_scheduler import DEFAULT_NAME, POD, ServedScheduler

#: What is equal for pods that fit, or do not fit, alike: rules, demand, priority.
_Shape = tuple[bytes, tuple[tuple[str, int], ...], int]


class DefaultScheduler(ServedScheduler):
    """Binds pods as kube-scheduler would."""

    def __init__(
        self,
        world: World,
        client: Client,
        events: EventRecorder,
        table: NodeTable,
        names: Collection[str] = (DEFAULT_NAME,),
    ) -> None:
        super().__init__(world, client, events, table, names)
        self._preemption = Preemption(world.store, client, events, table)

    def left(self, key: Key, *, is_over: bool) -> None:
        """Forget what was promised to a pod that no longer waits."""
        self._preemption.forget(key)

    def decide(self, now: Instant) -> None:
        """Try every pod that may fit: all after news, otherwise those not tried yet."""
        has_news, self.has_news = self.has_news, False
        tried = [key for key, message in self.waiting.items() if has_news or not message]
        # A stable sort: those of equal priority in the order they came.
        tried.sort(key=lambda key: -self._priority(key))
        hopeless: dict[_Shape, str] = {}
        for key in tried:
            pod = self.store.get(POD, key)
            if pod is not None and key in self.waiting:
                self._try(key, pod, hopeless, now)

    def _priority(self, key: Key) -> int:
        pod = self.store.get(POD, key)
        priority: int = 0 if pod is None else pod["spec"].get("priority", 0)
        return priority

    def _try(self, key: Key, pod: KubeObject, hopeless: dict[_Shape, str], now: Instant) -> None:
        """Bind a pod, or make room for it, or set it aside; `hopeless` tells what was seen of its like."""
        demand = demand_of(pod)
        priority = pod["spec"].get("priority", 0)
        shape = rules_key(pod["spec"]), tuple(demand.items()), priority
        is_alone = self._preemption.has_promise(key) or self.neighbours.concern(pod)
        message = None if is_alone else hopeless.get(shape)
        if message is None:
            kept = self._preemption.promised(key, priority)
            judgement = self.judge(pod, demand, kept)
            if judgement.fits.any():
                self.bind(key, pod, self._best_node(pod, demand, judgement.fits), now)
                return
            message = self.why_not(judgement)
            nominated, explanation = self._preemption.make_room(key, pod, demand, now)
            if nominated is None:
                # Both plugins of kube-scheduler that could make room say why not: DynamicResources, DefaultPreemption.
                message = hopeless[shape] = f"{message} no new claims to deallocate, preemption: {explanation}"
        self.set_aside(key, message, now)

    def _best_node(self, pod: KubeObject, demand: Amounts, fits: Mask) -> str:
        """Return the name of the node, of those that take the pod, that it likes best and that has the most room."""
        columns = np.flatnonzero(fits)
        score = self.table.load(demand)[columns] - self.table.acceptance(pod).liking[columns]
        return self.table.name_of(int(columns[int(score.argmin())]))
