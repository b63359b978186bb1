"""What every in-process scheduler of a served cluster does: it knows which pods wait, binds them, or says why not.

How to choose is left to its kinds: `default_scheduler` chooses as kube-scheduler does, `served_policy` asks a policy.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from batkube.cluster.client import Client, Refused
from batkube.cluster.event_recorder import EventRecorder
from batkube.cluster.pods import is_finished, node_of_pod
from batkube.cluster.references import is_being_deleted, name_of, namespace_of, with_condition
from batkube.cluster.resources import Amounts
from batkube.cluster.store import DELETED, Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.kernel.agenda import Rank
from batkube.kernel.instants import Instant
from batkube.kernel.quantities import PODS
from batkube.policies.neighbours import Neighbours
from batkube.policies.node_table import Mask, NodeTable

POD = "pods"
DEFAULT_NAME = "default-scheduler"


class Judgement(NamedTuple):
    """Where a pod fits, and how many of the other nodes it does not fit for each reason."""

    fits: Mask
    counts: dict[str, int]


class ServedScheduler:
    """Takes care of the pods that ask for a scheduler of one of `names`."""

    def __init__(
        self,
        world: World,
        client: Client,
        events: EventRecorder,
        table: NodeTable,
        names: Collection[str] = (DEFAULT_NAME,),
    ) -> None:
        self.store = store = world.store
        self.agenda = world.agenda
        self.client = client
        self.events = events
        self.table = table
        self.neighbours = Neighbours(store, table)
        self._names = frozenset(names)
        #: Pods that wait, in the order they came; with the message of their last attempt, "" before the first.
        self.waiting: dict[Key, str] = {}
        #: Whether pods that did not fit may fit now.
        self.has_news = False
        self._is_awake = False
        self._is_other: Callable[[Key], bool] = lambda key: False
        store.listen(POD, self._hear_pods)
        store.listen("nodes", self._hear_nodes)

    # What it hears

    def _is_ours(self, pod: KubeObject) -> bool:
        spec = pod["spec"]
        return (
            spec.get("schedulerName", DEFAULT_NAME) in self._names
            and not node_of_pod(pod)
            and not spec.get("schedulingGates")
            and not is_being_deleted(pod)
            and not is_finished(pod)
        )

    def leave_out(self, is_other: Callable[[Key], bool]) -> None:
        """Leave the pods to others of which `is_other` says so."""
        self._is_other = is_other

    def _hear_pods(self, batch: Batch, now: Instant) -> None:
        for change in batch.changes():
            pod, before = change.object, change.previous
            if self._is_other(change.key):
                continue
            if batch.type is DELETED or not self._is_ours(pod):
                is_over = batch.type is DELETED or is_finished(pod)
                self.waiting.pop(change.key, None)
                self.has_news |= is_over
                self.left(change.key, is_over=is_over)
            elif change.key not in self.waiting or (before is not None and before["spec"] != pod["spec"]):
                self.waiting[change.key] = ""
                self.arrived_pod(change.key, pod)
        self.wake_soon(now)

    def _hear_nodes(self, batch: Batch, now: Instant) -> None:
        self.has_news = True
        self.wake_soon(now)

    def wake_soon(self, now: Instant) -> None:
        """Decide at the end of this instant, if there is anything to decide."""
        if self.waiting and not self._is_awake:
            self._is_awake = True
            self.agenda.book(now, Rank.WAKE, self._wake)

    def _wake(self, now: Instant) -> None:
        self._is_awake = False
        self.decide(now)

    # What its kinds do

    def decide(self, now: Instant) -> None:
        """Bind pods that wait, or say why not."""
        raise NotImplementedError

    def arrived_pod(self, key: Key, pod: KubeObject) -> None:
        """Take note of a pod that began to wait."""

    def left(self, key: Key, *, is_over: bool) -> None:
        """Take note of a pod that no longer waits: it is bound, or `is_over`."""

    # What it does for them

    def bind(self, key: Key, pod: KubeObject, node_name: str, now: Instant) -> bool:
        """Give the pod its node; return whether the server agreed."""
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name_of(key), "namespace": namespace_of(key), "uid": pod["metadata"]["uid"]},
            "target": {"kind": "Node", "name": node_name},
        }
        try:
            self.client.create(POD, binding, now, subresource="binding")
        except Refused as refusal:
            self.set_aside(key, f"binding rejected: {refusal.message}", now)
            return False
        message = f"Successfully assigned {key} to {node_name}"
        self.events.record(pod, POD, "Normal", "Scheduled", message, now, action="Binding")
        return True

    def judge(self, pod: KubeObject, demand: Amounts, kept: dict[int, Amounts] | None = None) -> Judgement:
        """Return where the pod fits, and why not elsewhere; `kept` is room promised to others, by column."""
        accepted = self.table.acceptance(pod)
        fits = accepted.mask.copy()
        counts = dict(accepted.objections)
        for resource, short in self.table.lacking(demand, kept).items():
            fits &= ~short
            count = int((short & accepted.mask).sum())
            if count:
                counts["Too many pods" if resource == PODS else f"Insufficient {resource}"] = count
        for reason, refused in self.neighbours.objections(pod, fits):
            fits &= ~refused
            counts[reason] = counts.get(reason, 0) + int(refused.sum())
        return Judgement(fits, counts)

    def why_not(self, judgement: Judgement) -> str:
        """Return why a pod fits nowhere (Kubernetes: framework.FitError)."""
        if not self.table.count:
            return "no nodes available to schedule pods"
        reasons = ", ".join(sorted(f"{count} {reason}" for reason, count in judgement.counts.items()))
        return f"0/{self.table.count} nodes are available: {reasons}."

    def set_aside(self, key: Key, message: str, now: Instant) -> None:
        """Say why the pod waits, unless that was said already."""
        if self.waiting.get(key) == message:
            return
        self.waiting[key] = message
        pod = self.store.get(POD, key)
        if pod is None:
            return
        self.events.record(pod, POD, "Warning", "FailedScheduling", message, now, action="Scheduling")
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": None,
            "reason": "Unschedulable",
            "message": message,
        }
        generation = pod["metadata"].get("generation")
        if generation:
            condition["observedGeneration"] = generation
        status = pod.get("status", {})
        conditions = with_condition(status.get("conditions") or [], condition, now)
        try:
            changed = {**pod, "status": {**status, "conditions": conditions}}
            self.client.update(POD, changed, now, subresource="status")
        except Refused:
            return
