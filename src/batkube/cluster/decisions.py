"""Decisions: what a scheduler's write means, whoever the scheduler is.

A policy decides about jobs, in the words of `policies.interface`; a program writes to the API. Both come down to the
four decisions about pods below. The change in the store carries its decision (`Batch.decision`), so that nobody has to
guess it from the difference between two objects, and `DecisionLog` writes the one line of the journal that tells it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from batkube.cluster.mapping import POD, REJECTED_BY_SCHEDULER
from batkube.cluster.object_meta import condition_of, is_being_deleted
from batkube.cluster.pods.accessors import is_finished, node_of_pod
from batkube.cluster.store import Batch, Key, KubeObject, Store
from batkube.cluster.world import World
from batkube.kernel.instants import Instant, rfc3339
from batkube.kernel.intervals import format_intervals, mask_of


class Decision(msgspec.Struct, frozen=True):
    """What a scheduler decided: about pods, as below, or about jobs, as policies do."""


class Binding(Decision, frozen=True):
    """Pods go to nodes: index i of both lists is one pod."""

    keys: Sequence[Key]
    nodes: Sequence[str]
    #: What a scheduler writes on the pods besides.
    annotations: Mapping[str, str] = {}


class Eviction(Decision, frozen=True):
    """Pods that have a node are stopped: at once, or within their grace period."""

    keys: Sequence[Key]
    reason: str = ""


class Rejection(Decision, frozen=True):
    """Pods that wait are never to run."""

    keys: Sequence[Key]
    reason: str


class Nomination(Decision, frozen=True):
    """Room is being made for a pod on a node."""

    keys: Sequence[Key]
    node: str


_POD_DECISIONS = (Binding, Eviction, Rejection, Nomination)


def bind(store: Store, binding: Binding, now: Instant, author: object = None, *, in_full: bool) -> None:
    """Give pods their nodes; `in_full` with the condition that says so, which nobody reads where nobody watches."""
    pods = store.objects(POD, binding.keys)
    bound = [{**pod, "spec": {**pod["spec"], "nodeName": node}} for pod, node in zip(pods, binding.nodes, strict=True)]
    if in_full:
        for pod in bound:
            _set_scheduled(pod, binding.annotations, now)
    store.replace(POD, binding.keys, bound, now, author, binding)


def _set_scheduled(pod: KubeObject, annotations: Mapping[str, str], now: Instant) -> None:
    """Have a new pod say that it is bound (Kubernetes: pkg/registry/core/pod/storage, setPodNodeAndMetadata)."""
    metadata, status = pod["metadata"], pod.get("status", {})
    if annotations:
        pod["metadata"] = {**metadata, "annotations": {**metadata.get("annotations", {}), **annotations}}
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": rfc3339(now)}
    if metadata.get("generation") and "observedGeneration" in status:
        scheduled["observedGeneration"] = metadata["generation"]
    others = [condition for condition in status.get("conditions", []) if condition["type"] != "PodScheduled"]
    pod["status"] = {**status, "conditions": [*others, scheduled]}


def evict(store: Store, eviction: Eviction, now: Instant, author: object = None) -> None:
    """Stop pods at once, as Batsim kills jobs; the API lets them end within their grace period instead."""
    store.delete(POD, eviction.keys, now, author, eviction)


def reject(store: Store, rejection: Rejection, now: Instant, author: object = None) -> None:
    """Let pods fail before they ran."""
    store.set_status(POD, rejection.keys, scheduler_rejection_status(rejection.reason), now, author, rejection)


def scheduler_rejection_status(reason: str) -> KubeObject:
    """Return the status of a pod that a scheduler refuses to run at all."""
    return {"phase": "Failed", "reason": REJECTED_BY_SCHEDULER, "message": reason}


def decision_of(kind: str, key: Key, before: KubeObject, after: KubeObject) -> Decision | None:
    """Return what it means that the API puts `after` in the place of `before`; None if that decides nothing."""
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
    """Writes each decision into the journal, in the words of jobs where pods belong to one.

    It must hear of pods before those who act on decisions do, so that the journal tells a decision before what follows.
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
        for whose, positions in self._subjects(decision.keys):
            match decision:
                case Binding():
                    is_whole = len(positions) == len(decision.nodes)
                    nodes = decision.nodes if is_whole else [decision.nodes[position] for position in positions]
                    self._journal.append(now, "bind", **whose, **self._placement(whose, nodes))
                case Eviction():
                    why = {"reason": decision.reason} if decision.reason else {}
                    self._journal.append(now, "evict", **whose, **why)
                case Rejection():
                    self._journal.append(now, "reject", **whose, reason=decision.reason)
                case Nomination():
                    self._journal.append(now, "nominate", **whose, node=decision.node)

    def _subjects(self, keys: Sequence[Key]) -> Iterator[tuple[dict[str, str], Sequence[int]]]:
        """Yield whom a decision about the pods `keys` concerns, and where their pods stand in the list.

        That is a job, with the ranks of its pods if they are not all; or a pod of no job.
        """
        known = 0
        for course, positions, ranks in self._executions.group_by_execution(keys):
            known += len(positions)
            which = {} if len(ranks) == len(course.keys) else {"pods": format_intervals(mask_of(ranks))}
            yield {"job": course.job.key, **which}, positions
        if known < len(keys):
            for position, key in enumerate(keys):
                if self._executions.find(key) is None:
                    yield {"pod": key}, [position]

    def _placement(self, whose: Mapping[str, str], nodes: Sequence[str]) -> dict[str, str]:
        if "pod" in whose:
            return {"node": nodes[0]}
        known = [number for number in map(self._machine_ids.get, nodes) if number is not None]
        return {"machines": format_intervals(mask_of(known))}
