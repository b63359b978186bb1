"""Preemption: deletes pods of lower priority to make room for a pod.

On each node that could hold the pod, all pods of lower priority are removed hypothetically, and as
many as possible are reprieved, the most important first. The node with the least important victims
is chosen. The pod is nominated to it, and its resources are reserved against pods of lower or equal
priority.

Imitates kube-scheduler's pkg/scheduler/framework/preemption/preemption.go and
pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from batkube.cluster.event_recorder import EventNote
from batkube.cluster.mapping import POD
from batkube.cluster.object_meta import is_being_deleted
from batkube.cluster.pods.accessors import disruption_status, priority_of
from batkube.cluster.pods.resources import Amounts, add_amounts, demand_of
from batkube.cluster.store import Key, KubeObject
from batkube.kernel.instants import Instant
from batkube.policies.pod_scheduling.framework import SchedulingFramework


class _Nomination(NamedTuple):
    """Resources of a node that are reserved for a pod."""

    column: int
    demand: Amounts
    priority: int


class _Victims(NamedTuple):
    """The pods to delete on one node."""

    column: int
    pods: list[tuple[Key, KubeObject]]

    def cost(self) -> tuple[int, int, int, str]:
        """Return the sort key of nodes: highest priority, sum of priorities, number, and latest start.

        Imitates pickOneNodeForPreemption (kube-scheduler:
        pkg/scheduler/framework/preemption/preemption.go).
        """
        priorities = [priority_of(pod) for _, pod in self.pods]
        highest = max(priorities)
        starts = [pod["status"].get("startTime", "") for _, pod in self.pods if priority_of(pod) == highest]
        return highest, sum(priority + 2**31 for priority in priorities), len(priorities), _inverted(min(starts))


def _inverted(timestamp: str) -> str:
    """Return a text that sorts in reverse order."""
    return "".join(chr(255 - ord(character)) for character in timestamp)


class Preemption:
    """Chooses victims, and keeps the nominations of pods."""

    def __init__(self, framework: SchedulingFramework) -> None:
        self._framework = framework
        self._store = framework.store
        self._table = framework.table
        #: By nominated pod that is not bound yet.
        self._nominations: dict[Key, _Nomination] = {}

    def forget(self, key: Key) -> None:
        """Remove the nomination of a pod that is bound or deleted."""
        self._nominations.pop(key, None)

    def is_nominated(self, key: Key) -> bool:
        """Return whether a pod is nominated to a node."""
        return key in self._nominations

    def reserved_for_nominated(self, key: Key, priority: int) -> dict[int, Amounts]:
        """Return the resources, by column, that a pod must leave to nominated pods of at least its priority."""
        reserved: dict[int, Amounts] = {}
        for other, nomination in self._nominations.items():
            if other != key and nomination.priority >= priority:
                add_amounts(reserved.setdefault(nomination.column, {}), nomination.demand)
        return reserved

    def preempt(self, key: Key, pod: KubeObject, demand: Amounts, now: Instant) -> tuple[int | None, str]:
        """Delete victims on a node for `pod`; return its column, or None and the reason."""
        if pod["spec"].get("preemptionPolicy") == "Never":
            return None, "not eligible due to preemptionPolicy=Never."
        nomination = self._nominations.get(key)
        if nomination is not None and self._has_terminating_victims(nomination.column, nomination.priority):
            return None, "not eligible due to a terminating pod on the nominated node."
        candidates, reasons = self._candidates(pod, demand, self.reserved_for_nominated(key, priority_of(pod)))
        if not candidates:
            if self._nominations.pop(key, None) is not None:
                self._nominate(key, None, now)
            return None, self._framework.fit_error(reasons)
        best = min(candidates, key=_Victims.cost)
        for victim_key, victim in best.pods:
            self._evict_victim(victim_key, victim, pod, best.column, now)
        self._nominations[key] = _Nomination(best.column, demand, priority_of(pod))
        self._nominate(key, best.column, now)
        return best.column, ""

    def _has_terminating_victims(self, column: int, priority: int) -> bool:
        pods = self._store.objects(POD, self._table.pods_on(column))
        return any(is_being_deleted(pod) and priority_of(pod) < priority for pod in pods)

    def _candidates(
        self, pod: KubeObject, demand: Amounts, reserved: dict[int, Amounts]
    ) -> tuple[list[_Victims], dict[str, int]]:
        """Return the victims per node where preemption helps, and the number of other nodes by reason.

        Resources in `reserved` are not available.
        """
        accepted = self._table.acceptance(pod)
        possible = accepted.mask & ~self._table.too_small(demand)
        candidates: list[_Victims] = []
        reasons: dict[str, int] = {}
        unhelpful = self._table.count - int(possible.sum())
        if unhelpful:
            reasons["Preemption is not helpful for scheduling"] = unhelpful
        pods_by_column = self._lower_priority_pods(priority_of(pod))
        for column in np.flatnonzero(possible).tolist():
            victims = self._victims(column, pods_by_column.get(column, []), demand, reserved.get(column, {}))
            if isinstance(victims, _Victims):
                candidates.append(victims)
            else:
                reasons[victims] = reasons.get(victims, 0) + 1
        return candidates, reasons

    def _lower_priority_pods(self, priority: int) -> dict[int, list[tuple[Key, KubeObject]]]:
        """Return the bound pods of lower priority by column."""
        pods_by_column: dict[int, list[tuple[Key, KubeObject]]] = {}
        if not self._table.has_lower_priority(priority):
            return pods_by_column
        for key, allocation in self._table.allocations.items():
            pod = self._store.get(POD, key)
            if pod is not None and allocation.priority < priority:
                pods_by_column.setdefault(allocation.column, []).append((key, pod))
        return pods_by_column

    def _victims(
        self, column: int, candidates: list[tuple[Key, KubeObject]], demand: Amounts, reserved: Amounts
    ) -> _Victims | str:
        """Return which of the candidates must be deleted, or why deleting them does not help.

        Imitates SelectVictimsOnNode (default_preemption.go).
        """
        if not candidates:
            return "No preemption victims found for incoming pod"
        free = self._table.free(column)
        add_amounts(free, reserved, -1)
        for _, pod in candidates:
            add_amounts(free, demand_of(pod))
        add_amounts(free, demand, -1)
        insufficient = sorted(resource for resource in demand if free[resource] < 0)
        if insufficient:
            return f"Insufficient {insufficient[0]}"
        victims = []
        # Reprieve the most important first, and of these the one that started earliest.
        for key, pod in sorted(
            candidates, key=lambda pair: (-priority_of(pair[1]), pair[1]["status"].get("startTime", ""))
        ):
            amounts = demand_of(pod)
            if all(free.get(resource, 0) >= count for resource, count in amounts.items()):
                add_amounts(free, amounts, -1)
            else:
                victims.append((key, pod))
        return _Victims(column, victims) if victims else "No preemption victims found for incoming pod"

    def _evict_victim(self, key: Key, victim: KubeObject, pod: KubeObject, column: int, now: Instant) -> None:
        reason = "default-scheduler: preempting to accommodate a higher priority pod"
        status = disruption_status(victim, "PreemptionByScheduler", reason, now)
        if self._framework.write_status(victim, status, now) and self._framework.evict(key, now):
            message = f"Preempted by pod {pod['metadata']['uid']} on node {self._table.name_of(column)}"
            note = EventNote("Normal", "Preempted", message, action="Preempting")
            self._framework.events.record(victim, POD, note, now)

    def _nominate(self, key: Key, column: int | None, now: Instant) -> None:
        """Write the nominated node to the pod's status, or remove it if `column` is None."""
        pod = self._store.get(POD, key)
        if pod is None:
            return
        status = {name: value for name, value in pod.get("status", {}).items() if name != "nominatedNodeName"}
        if column is not None:
            status["nominatedNodeName"] = self._table.name_of(column)
        self._framework.write_status(pod, status, now)
