"""DaemonSets: one pod on every eligible node.

Each pod has a node affinity for its node and is bound by the scheduler; it tolerates the taints of node conditions.
Kubernetes: pkg/controller/daemon/daemon_controller.go, update.go and util/daemonset_util.go.
"""

from __future__ import annotations

from collections.abc import Sequence

from batkube.cluster.client import Client
from batkube.cluster.event_recorder import EventRecorder
from batkube.cluster.nodes.constraints import NodeConstraints, find_toleration
from batkube.cluster.object_meta import is_being_deleted
from batkube.cluster.pods.accessors import is_finished, is_ready, node_of_pod
from batkube.cluster.store import Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.controllers.apps.daemon_rollouts import hash_of_pod, is_available, max_surge, next_step, surplus_pods
from batkube.controllers.apps.revisions import REVISION_LABEL, ControllerRevisions, hash_of
from batkube.controllers.framework.owner_index import OwnerIndex
from batkube.controllers.framework.pod_control import claim_objects
from batkube.controllers.framework.pod_owner_controller import PodOwnerController
from batkube.kernel.instants import Instant, seconds

DAEMON_SET, NODE = "daemonsets.apps", "nodes"
_TEMPLATE_LABEL = "pod-template-generation"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_TAINT_PREFIX = "node.kubernetes.io/"
_TOLERATED = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)
#: Delay between the failure of a pod and its replacement, so that pods that fail at once are not replaced in a loop.
_FAILED_POD_DELAY = seconds(1)

PodsByNode = dict[str, list[KubeObject]]


class DaemonSetController(PodOwnerController):
    """Creates, deletes and updates the pods of DaemonSets."""

    storage, kind = DAEMON_SET, "DaemonSet"

    def __init__(
        self, world: World, client: Client, events: EventRecorder, pods: OwnerIndex, revisions: ControllerRevisions
    ) -> None:
        super().__init__(world, client, events, pods)
        self._revisions = revisions
        world.store.subscribe(NODE, self._on_nodes_changed)

    def _on_nodes_changed(self, batch: Batch, now: Instant) -> None:
        for key in self.store.entries(DAEMON_SET):
            self.queue.add(key, now)

    def reconcile(self, key: Key, owner: KubeObject, now: Instant) -> None:
        """Create missing pods, delete surplus ones, and continue a rolling update."""
        revision = self._revisions.get_or_create(owner, now)
        claim_objects(self.client, self.pods, owner, now)
        nodes = self.store.all(NODE)
        rules = NodeConstraints({**owner["spec"]["template"]["spec"], "tolerations": _tolerations(owner)})
        eligible = [name for name, node in nodes.items() if rules.rejection_reason(node) is None]
        if not is_being_deleted(owner):
            self._manage_pods(key, owner, nodes, eligible, hash_of(revision), now)
            self._rolling_update(owner, eligible, hash_of(revision), now)
        pods = self._by_node(owner)
        self.requeue_when_available(key, owner, [pod for node_pods in pods.values() for pod in node_pods], now)
        self.write_status(owner, _status(owner, pods, eligible, hash_of(revision), now), now)
        hashes = {
            hash_of(known_revision): known_revision["metadata"]["name"]
            for known_revision in self._revisions.owned_by(owner)
        }
        used = [hashes.get(hash_of_pod(pod), "") for node_pods in pods.values() for pod in node_pods]
        self._revisions.delete_old(owner, {*used, revision["metadata"]["name"]}, now)

    def _by_node(self, owner: KubeObject) -> PodsByNode:
        by_node: PodsByNode = {}
        for pod in self.pods.owned_by(owner["metadata"]["uid"]):
            by_node.setdefault(_target_node(pod), []).append(pod)
        return by_node

    def _manage_pods(
        self,
        key: Key,
        owner: KubeObject,
        nodes: dict[Key, KubeObject],
        eligible: Sequence[str],
        digest: str,
        now: Instant,
    ) -> None:
        # Kubernetes: daemon_controller.go, manage and podsShouldBeOnNode.
        pods, allows_surge = self._by_node(owner), max_surge(owner, len(eligible)) > 0
        tolerations = _tolerations(owner)
        for name, node_pods in pods.items():
            node = nodes.get(Key(name))
            active = [pod for pod in node_pods if not is_being_deleted(pod)]
            failed = [pod for pod in active if is_finished(pod)]
            may_run = name in eligible or (node is not None and _can_stay(node, owner, tolerations))
            running = [pod for pod in active if pod not in failed]
            if not may_run:
                surplus = running
            elif allows_surge:
                surplus = surplus_pods(owner, running, digest, now)
            else:
                surplus = running[1:]  # the oldest pod of the node stays
            for pod in [*failed, *surplus]:
                self.pod_control.delete(owner, pod, now)
            if failed:
                self.queue.add_after(key, now, _FAILED_POD_DELAY)
        self._create(owner, [name for name in eligible if not _has_pod(pods.get(name, ()), allows_surge)], digest, now)

    def _create(self, owner: KubeObject, nodes: Sequence[str], digest: str, now: Instant) -> None:
        _, problem = self.pod_control.create_many(
            owner, [(_template_for_node(owner, name, digest), "") for name in nodes], now
        )
        if problem is not None:
            raise problem

    def _rolling_update(self, owner: KubeObject, eligible: Sequence[str], digest: str, now: Instant) -> None:
        step = next_step(owner, self._by_node(owner), eligible, digest, now)
        for pod in step.pods_to_delete:
            self.pod_control.delete(owner, pod, now)
        self._create(owner, step.nodes_to_surge, digest, now)


def _has_pod(pods: Sequence[KubeObject], allows_surge: bool) -> bool:
    """Return whether the node needs no further pod; with a surge, finished and terminating pods do not count."""
    return any(not allows_surge or not (is_being_deleted(pod) or is_finished(pod)) for pod in pods)


def _tolerations(owner: KubeObject) -> list[KubeObject]:
    """Return the template's tolerations plus those of node conditions (AddOrUpdateDaemonPodTolerations)."""
    spec = owner["spec"]["template"]["spec"]
    added = [*_TOLERATED, *([("network-unavailable", "NoSchedule")] if spec.get("hostNetwork") else [])]
    tolerations = list(spec.get("tolerations") or ())
    for name, effect in added:
        toleration = {"key": f"{_TAINT_PREFIX}{name}", "operator": "Exists", "effect": effect}
        if toleration not in tolerations:
            tolerations.append(toleration)
    return tolerations


def _can_stay(node: KubeObject, owner: KubeObject, tolerations: Sequence[KubeObject]) -> bool:
    """Return whether a pod may stay on a node where no new pod would be created: only taints have been added.

    Kubernetes: daemon_controller.go, NodeShouldRunDaemonPod.
    """
    if not NodeConstraints(owner["spec"]["template"]["spec"]).accepts_labels(node):
        return False
    taints = node["spec"].get("taints") or ()
    return all(taint["effect"] != "NoExecute" or find_toleration(tolerations, taint) is not None for taint in taints)


def _template_for_node(owner: KubeObject, node: str, digest: str) -> KubeObject:
    """Return the pod template for a node."""
    template = owner["spec"]["template"]
    metadata, spec = template.get("metadata") or {}, template["spec"]
    labels = {
        **(metadata.get("labels") or {}),
        REVISION_LABEL: digest,
        _TEMPLATE_LABEL: str(owner["metadata"].get("generation", 1)),
    }
    affinity = spec.get("affinity") or {}
    name = {"key": "metadata.name", "operator": "In", "values": [node]}
    pinned = {**(affinity.get("nodeAffinity") or {}), _REQUIRED: {"nodeSelectorTerms": [{"matchFields": [name]}]}}
    spec = {**spec, "affinity": {**affinity, "nodeAffinity": pinned}, "tolerations": _tolerations(owner)}
    return {"metadata": {**metadata, "labels": labels}, "spec": spec}


def _target_node(pod: KubeObject) -> str:
    """Return the node that the pod is bound to, or has an affinity for."""
    if node_of_pod(pod):
        return node_of_pod(pod)
    affinity = ((pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED) or {}
    for term in affinity.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            return str(field["values"][0])
    return ""


def _status(owner: KubeObject, pods: PodsByNode, eligible: Sequence[str], digest: str, now: Instant) -> KubeObject:
    oldest = [node_pods[0] for name, node_pods in pods.items() if name in eligible]
    available = sum(is_available(owner, pod, now) for pod in oldest)
    status = {
        "currentNumberScheduled": len(oldest),
        "numberMisscheduled": sum(name not in eligible for name in pods),
        "desiredNumberScheduled": len(eligible),
        "numberReady": sum(is_ready(pod) for pod in oldest),
        "observedGeneration": owner["metadata"].get("generation", 0),
    }
    optional = {
        "updatedNumberScheduled": sum(hash_of_pod(pod) == digest for pod in oldest),
        "numberAvailable": available,
        "numberUnavailable": len(eligible) - available,
    }
    return {**status, **{name: count for name, count in optional.items() if count}}
