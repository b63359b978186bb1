"""Making room for a pod by deleting less important ones.

Kubernetes: pkg/scheduler/framework/preemption and the plugin DefaultPreemption. On each node that could hold the pod,
the pods of lower priority are taken away in thought and as many as possible put back, the most important first; the
node whose victims are the least important is chosen. The pod is nominated to it, and others of no higher priority keep
off.
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
    """Room on a node that is kept for a pod."""

    column: int
    demand: Amounts
    priority: int


class _Victims(NamedTuple):
    """What it would take to make room on one node."""

    column: int
    pods: list[tuple[Key, KubeObject]]

    def cost(self) -> tuple[int, int, int, str]:
        """Return how bad it would be: the most important victim, all of them, how many, and who began last."""
        priorities = [priority_of(pod) for _, pod in self.pods]
        highest = max(priorities)
        begun = [pod["status"].get("startTime", "") for _, pod in self.pods if priority_of(pod) == highest]
        return highest, sum(priority + 2**31 for priority in priorities), len(priorities), _inverted(min(begun))


def _inverted(timestamp: str) -> str:
    """Return a text that sorts in the opposite order."""
    return "".join(chr(255 - ord(letter)) for letter in timestamp)


class Preemption:
    """Chooses victims and keeps promises."""

    def __init__(self, framework: SchedulingFramework) -> None:
        self._framework = framework
        self._store = framework.store
        self._table = framework.table
        #: By the pod that room was made for and that is not bound yet.
        self._nominations: dict[Key, _Nomination] = {}

    def forget(self, key: Key) -> None:
        """Drop the promise to a pod that is bound or gone."""
        self._nominations.pop(key, None)

    def is_nominated(self, key: Key) -> bool:
        """Return whether room was made for this pod."""
        return key in self._nominations

    def reserved_for_nominated(self, key: Key | None, priority: int) -> dict[int, Amounts]:
        """Return what a pod of this priority must leave free, by column: for others at least as important."""
        kept: dict[int, Amounts] = {}
        for other, promise in self._nominations.items():
            if other != key and promise.priority >= priority:
                add_amounts(kept.setdefault(promise.column, {}), promise.demand)
        return kept

    def preempt(self, key: Key, pod: KubeObject, demand: Amounts, now: Instant) -> tuple[int | None, str]:
        """Delete what is in the way of `pod` on some node; return that column, or None and why there is none."""
        if pod["spec"].get("preemptionPolicy") == "Never":
            return None, "not eligible due to preemptionPolicy=Never."
        promise = self._nominations.get(key)
        if promise is not None and self._has_terminating_victims(promise.column, promise.priority):
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
        self, pod: KubeObject, demand: Amounts, kept: dict[int, Amounts]
    ) -> tuple[list[_Victims], dict[str, int]]:
        """Return the nodes on which room can be made beside what is `kept`; otherwise why not, by how many nodes."""
        accepted = self._table.acceptance(pod)
        possible = accepted.mask & ~self._table.too_small(demand)
        candidates: list[_Victims] = []
        reasons: dict[str, int] = {}
        hopeless = self._table.count - int(possible.sum())
        if hopeless:
            reasons["Preemption is not helpful for scheduling"] = hopeless
        pods_by_column = self._lower_priority_pods(priority_of(pod))
        for column in np.flatnonzero(possible).tolist():
            victims = self._victims(column, pods_by_column.get(column, []), demand, kept.get(column, {}))
            if isinstance(victims, _Victims):
                candidates.append(victims)
            else:
                reasons[victims] = reasons.get(victims, 0) + 1
        return candidates, reasons

    def _lower_priority_pods(self, priority: int) -> dict[int, list[tuple[Key, KubeObject]]]:
        """Return the bound pods of lower priority by column."""
        by_node: dict[int, list[tuple[Key, KubeObject]]] = {}
        for key, held in self._table.allocations.items():
            pod = self._store.get(POD, key)
            if pod is not None and priority_of(pod) < priority:
                by_node.setdefault(held.column, []).append((key, pod))
        return by_node

    def _victims(
        self, column: int, lesser: list[tuple[Key, KubeObject]], demand: Amounts, kept: Amounts
    ) -> _Victims | str:
        """Return which of the `lesser` pods must go, or why that would not help."""
        if not lesser:
            return "No preemption victims found for incoming pod"
        free = self._table.free(column)
        add_amounts(free, kept, -1)
        for _, pod in lesser:
            add_amounts(free, demand_of(pod))
        add_amounts(free, demand, -1)
        short = sorted(resource for resource in demand if free[resource] < 0)
        if short:
            return f"Insufficient {short[0]}"
        victims = []
        # Those to put back first: the most important, and of these the ones that began earliest.
        for key, pod in sorted(
            lesser, key=lambda pair: (-priority_of(pair[1]), pair[1]["status"].get("startTime", ""))
        ):
            amounts = demand_of(pod)
            if all(free.get(resource, 0) >= count for resource, count in amounts.items()):
                add_amounts(free, amounts, -1)
            else:
                victims.append((key, pod))
        return _Victims(column, victims) if victims else "No preemption victims found for incoming pod"

    def _evict_victim(self, key: Key, victim: KubeObject, pod: KubeObject, column: int, now: Instant) -> None:
        why = "default-scheduler: preempting to accommodate a higher priority pod"
        status = disruption_status(victim, "PreemptionByScheduler", why, now)
        if self._framework.write_status(victim, status, now) and self._framework.evict(key, now):
            message = f"Preempted by pod {pod['metadata']['uid']} on node {self._table.name_of(column)}"
            note = EventNote("Normal", "Preempted", message, action="Preempting")
            self._framework.events.record(victim, POD, note, now)

    def _nominate(self, key: Key, column: int | None, now: Instant) -> None:
        """Write into the pod's status for which node it waits; None when there is no longer any hope for one."""
        pod = self._store.get(POD, key)
        if pod is None:
            return
        status = {name: value for name, value in pod.get("status", {}).items() if name != "nominatedNodeName"}
        if column is not None:
            status["nominatedNodeName"] = self._table.name_of(column)
        self._framework.write_status(pod, status, now)
