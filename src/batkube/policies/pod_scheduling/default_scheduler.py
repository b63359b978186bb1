"""A scheduler like kube-scheduler: each pod on its own, the most important first, on the node with the most room.

What kube-scheduler does with its default configuration, as far as people at a keyboard see it: requests, node names,
selectors, required and preferred node affinity, taints, cordons, priorities and preemption; and when a pod fits
nowhere, the condition and the event that say why in the same words (Kubernetes: pkg/scheduler).
"""

from __future__ import annotations

import numpy as np

from batkube.cluster.client import Client
from batkube.cluster.event_recorder import EventRecorder
from batkube.cluster.mapping import NODE, POD
from batkube.cluster.nodes.constraints import constraints_key
from batkube.cluster.pods.accessors import priority_of
from batkube.cluster.pods.resources import Amounts, demand_of, has_changed_spec
from batkube.cluster.store import Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.kernel.agenda import Rank
from batkube.kernel.instants import Instant
from batkube.policies.pod_scheduling.framework import SchedulingFramework
from batkube.policies.pod_scheduling.node_table import Mask
from batkube.policies.pod_scheduling.pod_jobs import PodSchedulingStatus, scheduling_status_of
from batkube.policies.pod_scheduling.preemption import Preemption

#: What is equal for pods that fit, or do not fit, alike: rules, demand, priority.
_Shape = tuple[bytes, tuple[tuple[str, int], ...], int]


class DefaultScheduler:
    """Binds the pods that ask for the default scheduler, as kube-scheduler would."""

    def __init__(self, world: World, client: Client, events: EventRecorder) -> None:
        self._store = world.store
        self._agenda = world.agenda
        self._framework = framework = SchedulingFramework(world, client, events)
        self._table = framework.table
        self._preemption = Preemption(framework)
        #: Pods that wait, in the order they came, and whether they were tried.
        self._pending: dict[Key, bool] = {}
        #: Whether pods that did not fit may fit now.
        self._may_retry = False
        self._is_scheduled = False
        world.store.subscribe(POD, self._on_pods_changed)
        world.store.subscribe(NODE, self._on_nodes_changed)

    # What it hears

    def _on_pods_changed(self, batch: Batch, now: Instant) -> None:
        waiting = self._pending
        for change in batch.changes():
            key, pod, before = change.key, change.object, change.previous
            standing = scheduling_status_of(pod, batch.type)
            if standing is not PodSchedulingStatus.PENDING:
                waiting.pop(key, None)
                self._preemption.forget(key)
                is_resized = has_changed_spec(pod) and before is not None and demand_of(before) != demand_of(pod)
                self._may_retry |= is_resized or standing is PodSchedulingStatus.FINISHED
            elif key not in waiting or (before is not None and before["spec"] != pod["spec"]):
                waiting[key] = False
        self._book_scheduling(now)

    def _on_nodes_changed(self, batch: Batch, now: Instant) -> None:
        self._may_retry = True
        self._book_scheduling(now)

    def _book_scheduling(self, now: Instant) -> None:
        """Decide at the end of this instant, if there is anything to decide."""
        if self._pending and not self._is_scheduled:
            self._is_scheduled = True
            self._agenda.book(now, Rank.WAKE, self._schedule_pending)

    # What it does

    def _schedule_pending(self, now: Instant) -> None:
        """Try every pod that may fit: all after news, otherwise those not tried yet."""
        self._is_scheduled = False
        has_news, self._may_retry = self._may_retry, False
        tried = [key for key, is_tried in self._pending.items() if has_news or not is_tried]
        # A stable sort: those of equal priority in the order they came.
        tried.sort(key=lambda key: -self._priority(key))
        hopeless: dict[_Shape, str] = {}
        for key in tried:
            pod = self._store.get(POD, key)
            if pod is not None and key in self._pending:
                self._pending[key] = True
                self._schedule_pod(key, pod, hopeless, now)

    def _priority(self, key: Key) -> int:
        pod = self._store.get(POD, key)
        return 0 if pod is None else priority_of(pod)

    def _schedule_pod(self, key: Key, pod: KubeObject, hopeless: dict[_Shape, str], now: Instant) -> None:
        """Bind a pod, or make room for it, or set it aside; `hopeless` tells what was seen of its like."""
        demand = demand_of(pod)
        priority = priority_of(pod)
        shape = constraints_key(pod["spec"]), tuple(demand.items()), priority
        is_alone = self._preemption.is_nominated(key) or self._framework.inter_pod_constraints.apply_to(pod)
        message = None if is_alone else hopeless.get(shape)
        if message is None:
            kept = self._preemption.reserved_for_nominated(key, priority)
            result = self._framework.filter(pod, demand, kept)
            if result.fits.any():
                self._framework.bind(key, pod, self._best_node(pod, demand, result.fits), now)
                return
            message = self._framework.fit_error(result.counts)
            nominated, explanation = self._preemption.preempt(key, pod, demand, now)
            if nominated is None and self._table.count:
                # Both plugins of kube-scheduler that could make room say why not: DynamicResources, DefaultPreemption;
                # they are not asked where there are no nodes at all (ErrNoNodesAvailable).
                message = hopeless[shape] = f"{message} no new claims to deallocate, preemption: {explanation}"
        self._framework.mark_unschedulable(key, message, now)

    def _best_node(self, pod: KubeObject, demand: Amounts, fits: Mask) -> str:
        """Return the name of the node, of those that take the pod, that it likes best and that has the most room."""
        columns = np.flatnonzero(fits)
        score = self._table.least_allocated_score(demand)[columns] - self._table.acceptance(pod).preference[columns]
        return self._table.name_of(int(columns[int(score.argmin())]))
