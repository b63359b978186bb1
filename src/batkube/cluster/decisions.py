"""Decisions: the meaning of a scheduler's write, for policies and for attached programs alike.

A policy decides about jobs (`policies.interface`); a program writes to the API. Both result in one of the four
decisions about pods below. The change in the store carries its decision (`Batch.decision`), so subscribers need not
infer it from the difference between two objects. `DecisionLog` writes one line of the journal per decision.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from batkube.cluster.mapping import POD, REJECTED_BY_SCHEDULER
from batkube.cluster.object_meta import condition_of, is_being_deleted
from batkube.cluster.pods.accessors import is_finished, node_of_pod
from batkube.cluster.pods.pod_groups import without_none
from batkube.cluster.store import Batch, Key, KubeObject, Store
from batkube.cluster.world import World
from batkube.kernel.instants import Instant, rfc3339
from batkube.kernel.intervals import format_intervals, mask_of


class Decision(msgspec.Struct, frozen=True):
    """A scheduler's decision, about pods (the classes below) or about jobs (those of policies)."""


class Binding(Decision, frozen=True):
    """Bind pods to nodes: index i of both lists is one pod."""

    keys: Sequence[Key]
    nodes: Sequence[str]
    #: Annotations that the scheduler adds to the pods.
    annotations: Mapping[str, str] = {}


class Eviction(Decision, frozen=True):
    """Stop bound pods: at once, or within their grace period."""

    keys: Sequence[Key]
    reason: str = ""


class Rejection(Decision, frozen=True):
    """Mark pending pods as failed: they will never run."""

    keys: Sequence[Key]
    reason: str


class Nomination(Decision, frozen=True):
    """Nominate a node for a pod, where preemption frees resources for it (`status.nominatedNodeName`)."""

    keys: Sequence[Key]
    node: str


_POD_DECISIONS = (Binding, Eviction, Rejection, Nomination)


def bind(store: Store, binding: Binding, now: Instant, *, in_full: bool) -> None:
    """Bind pods to their nodes; `in_full` also sets the PodScheduled condition, which only API clients read."""
    pods = store.objects(POD, binding.keys)
    bound = [pod | {"spec": pod["spec"] | {"nodeName": node}} for pod, node in zip(pods, binding.nodes, strict=True)]
    if in_full:
        for pod in bound:
            _set_scheduled(pod, binding.annotations, now)
    store.replace(POD, binding.keys, bound, now, decision=binding)


def _set_scheduled(pod: KubeObject, annotations: Mapping[str, str], now: Instant) -> None:
    """Add the PodScheduled condition and `annotations` to a pod that is being bound.

    Kubernetes: pkg/registry/core/pod/storage/storage.go, setPodNodeAndMetadata.
    """
    metadata, status = pod["metadata"], pod.get("status", {})
    if annotations:
        pod["metadata"] = {**metadata, "annotations": {**metadata.get("annotations", {}), **annotations}}
    generation = metadata.get("generation") if "observedGeneration" in status else None
    pod["status"] = _scheduled_statuses.status_of(status, generation, now)


class _ScheduledStatuses:
    """Statuses with the PodScheduled condition.

    The pods of a workload share their first status, so those that are bound at one instant share the next one, too: it
    takes less memory, and it is encoded and compared once.
    """

    def __init__(self) -> None:
        #: The latest result, and what it was made from.
        self._inputs: tuple[KubeObject, int | None, Instant] = {}, None, Instant(0)
        self._status: KubeObject = {}

    def status_of(self, status: KubeObject, generation: int | None, now: Instant) -> KubeObject:
        """Return a pod's status after its binding; `generation` is set if the status has one."""
        latest = self._inputs
        if status is not latest[0] or generation != latest[1] or now != latest[2]:
            scheduled = {
                "type": "PodScheduled",
                "status": "True",
                "lastProbeTime": None,
                "lastTransitionTime": rfc3339(now),
                **({"observedGeneration": generation} if generation else {}),
            }
            others = [condition for condition in status.get("conditions", []) if condition["type"] != "PodScheduled"]
            self._inputs, self._status = (status, generation, now), {**status, "conditions": [*others, scheduled]}
        return self._status


_scheduled_statuses = _ScheduledStatuses()


def scheduler_rejection_status(reason: str) -> KubeObject:
    """Return the status of a pod that a scheduler has rejected for good."""
    return {"phase": "Failed", "reason": REJECTED_BY_SCHEDULER, "message": reason}


def decision_of(kind: str, key: Key, before: KubeObject, after: KubeObject) -> Decision | None:
    """Return the decision that replacing `before` by `after` through the API expresses; None if it is not one."""
    if kind != POD:
        return None
    old, new = before.get("status", {}), after.get("status", {})
    if is_being_deleted(after) and not is_being_deleted(before) and node_of_pod(after) and not is_finished(after):
        disruption = condition_of(after, "DisruptionTarget") or {}
        return Eviction([key], disruption.get("message", "") if disruption.get("status") == "True" else "")
    nominated = new.get("nominatedNodeName")
    if nominated and nominated != old.get("nominatedNodeName"):
        return Nomination([key], nominated)
    if new.get("reason") == REJECTED_BY_SCHEDULER != old.get("reason"):
        return Rejection([key], new.get("message", ""))
    return None


class DecisionLog:
    """Writes each decision into the journal, by job for the pods of workload jobs.

    It must subscribe before the components that act on decisions: the journal has a decision before its consequences.
    """

    def __init__(self, world: World) -> None:
        self._journal = world.journal
        self._executions = world.executions
        self._machine_ids = world.machines.ids
        world.store.subscribe(POD, self._on_pods_changed)

    def _on_pods_changed(self, batch: Batch, now: Instant) -> None:
        decision = batch.decision
        if decision is None or not isinstance(decision, _POD_DECISIONS):
            return
        for subject, positions in self._subjects(decision.keys):
            match decision:
                case Binding():
                    is_whole = len(positions) == len(decision.nodes)
                    nodes = decision.nodes if is_whole else [decision.nodes[position] for position in positions]
                    self._journal.append(now, "bind", **subject, **self._placement(subject, nodes))
                case Eviction():
                    fields = {"reason": decision.reason} if decision.reason else {}
                    self._journal.append(now, "evict", **subject, **fields)
                case Rejection():
                    self._journal.append(now, "reject", **subject, reason=decision.reason)
                case Nomination():
                    self._journal.append(now, "nominate", **subject, node=decision.node)

    def _subjects(self, keys: Sequence[Key]) -> Iterator[tuple[dict[str, str], Sequence[int]]]:
        """Yield the journal fields that name each job or pod concerned, with the positions of its pods in `keys`.

        A job is named with the ranks of its pods, unless all of them are concerned.
        """
        grouped = 0
        for execution, positions, ranks in self._executions.group_by_execution(keys):
            grouped += len(positions)
            ranks_field = {} if len(ranks) == len(execution.keys) else {"pods": format_intervals(mask_of(ranks))}
            yield {"job": execution.job.key, **ranks_field}, positions
        if grouped < len(keys):
            for position, key in enumerate(keys):
                if self._executions.find(key) is None:
                    yield {"pod": key}, [position]

    def _placement(self, subject: Mapping[str, str], nodes: Sequence[str]) -> dict[str, str]:
        if "pod" in subject:
            return {"node": nodes[0]}
        machine_ids = without_none(list(map(self._machine_ids.get, nodes)))
        return {"machines": format_intervals(mask_of(machine_ids))}
