"""An in-process kube-scheduler: pods one by one, by priority, each on the node with most free capacity.

It imitates the default configuration as far as users of kubectl can observe it: requests, node
names, selectors, required and preferred node affinity, taints, cordons, priorities and preemption.
If a pod fits nowhere, its condition and an event state the reason in the same words. Imitates
kube-scheduler's pkg/scheduler/schedule_one.go and pkg/scheduler/eventhandlers.go.
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

#: The constraints, demand and priority of a pod. Pods with equal shapes fit the same nodes.
_Shape = tuple[bytes, tuple[tuple[str, int], ...], int]


class DefaultScheduler:
    """Binds the pods that request the default scheduler, as kube-scheduler would."""

    def __init__(self, world: World, client: Client, events: EventRecorder) -> None:
        self._store = world.store
        self._agenda = world.agenda
        self._framework = framework = SchedulingFramework(world, client, events)
        self._table = framework.table
        self._preemption = Preemption(framework)
        #: Pending pods in the order of their arrival, and whether they were tried.
        self._pending: dict[Key, bool] = {}
        #: Whether pods that did not fit are tried again, because they may fit now.
        self._retries_all = False
        self._is_booked = False
        world.store.subscribe(POD, self._on_pods_changed)
        world.store.subscribe(NODE, self._on_nodes_changed)

    def _on_pods_changed(self, batch: Batch, now: Instant) -> None:
        pending = self._pending
        for change in batch.changes():
            key, pod, before = change.key, change.object, change.previous
            status = scheduling_status_of(pod, batch.type)
            if status is not PodSchedulingStatus.PENDING:
                pending.pop(key, None)
                self._preemption.forget(key)
                is_resized = has_changed_spec(pod) and before is not None and demand_of(before) != demand_of(pod)
                self._retries_all |= is_resized or status is PodSchedulingStatus.FINISHED
            elif key not in pending or (before is not None and before["spec"] != pod["spec"]):
                pending[key] = False
        self._book_scheduling(now)

    def _on_nodes_changed(self, batch: Batch, now: Instant) -> None:
        self._retries_all = True
        self._book_scheduling(now)

    def _book_scheduling(self, now: Instant) -> None:
        """Book a scheduling round at the end of this instant, if pods are pending."""
        if self._pending and not self._is_booked:
            self._is_booked = True
            self._agenda.book(now, Rank.WAKE, self._schedule_pending)

    def _schedule_pending(self, now: Instant) -> None:
        """Try all pending pods after a change that may help them, and otherwise the new ones."""
        self._is_booked = False
        retries_all, self._retries_all = self._retries_all, False
        keys = [key for key, is_tried in self._pending.items() if retries_all or not is_tried]
        # A stable sort keeps pods of equal priority in the order of their arrival.
        keys.sort(key=lambda key: -self._priority(key))
        messages: dict[_Shape, str] = {}
        is_turn_over = self._agenda.start_turn()
        for position, key in enumerate(keys):
            if position and is_turn_over():
                self._pending |= dict.fromkeys([rest for rest in keys[position:] if rest in self._pending], False)
                self._book_scheduling(now)
                return
            pod = self._store.get(POD, key)
            if pod is not None and key in self._pending:
                self._pending[key] = True
                self._schedule_pod(key, pod, messages, now)

    def _priority(self, key: Key) -> int:
        pod = self._store.get(POD, key)
        return 0 if pod is None else priority_of(pod)

    def _schedule_pod(self, key: Key, pod: KubeObject, messages: dict[_Shape, str], now: Instant) -> None:
        """Bind a pod, preempt others for it, or mark it unschedulable.

        `messages` has the failures of this round by shape (constraints, requests, priority): equal pods are not tried
        again.
        """
        demand = demand_of(pod)
        priority = priority_of(pod)
        shape = constraints_key(pod["spec"]), tuple(demand.items()), priority
        is_unique = self._preemption.is_nominated(key) or self._framework.inter_pod_constraints.apply_to(pod)
        message = None if is_unique else messages.get(shape)
        if message is None:
            reserved = self._preemption.reserved_for_nominated(key, priority)
            result = self._framework.filter(pod, demand, reserved)
            if result.fits.any():
                self._framework.bind(key, pod, self._best_node(pod, demand, result.fits), now)
                return
            message = self._framework.fit_error(result.counts)
            nominated, explanation = self._preemption.preempt(key, pod, demand, now)
            if nominated is None and self._table.count:
                # The PostFilter plugins DynamicResources and DefaultPreemption add their reasons. They do
                # not run if there are no nodes at all (ErrNoNodesAvailable).
                message = messages[shape] = f"{message} no new claims to deallocate, preemption: {explanation}"
        self._framework.mark_unschedulable(key, message, now)

    def _best_node(self, pod: KubeObject, demand: Amounts, fits: Mask) -> str:
        """Return the fitting node with the most free capacity and the highest preference."""
        columns = np.flatnonzero(fits)
        score = self._table.least_allocated_score(demand)[columns] - self._table.acceptance(pod).preference[columns]
        return self._table.name_of(int(columns[int(score.argmin())]))
