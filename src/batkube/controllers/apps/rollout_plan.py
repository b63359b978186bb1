"""Calculations of a Deployment's rollout: which ReplicaSet is the new one, and the size of each.

Nothing here writes. Kubernetes: pkg/controller/deployment/util/deployment_util.go.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from batkube.cluster.object_meta import annotations_of, controller_reference, int_annotation, parse_digits
from batkube.cluster.store import KubeObject
from batkube.controllers.framework.int_or_percent import scaled_value

REVISION = "deployment.kubernetes.io/revision"
REVISION_HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"
ROLLBACK_TO = "deprecated.deployment.rollback.to"
HASH_LABEL = "pod-template-hash"

#: Annotations of a Deployment that are not copied to its ReplicaSets.
_OWN_ANNOTATIONS = frozenset(
    (
        "kubectl.kubernetes.io/last-applied-configuration",
        REVISION,
        REVISION_HISTORY,
        DESIRED_REPLICAS,
        MAX_REPLICAS,
        ROLLBACK_TO,
    )
)
#: Alphabet of generated names, without vowels so that they contain no words (apimachinery: util/rand,
#: SafeEncodeString).
_SAFE_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
#: Maximum length of a revision history; the oldest entries are dropped.
_MAX_HISTORY_CHARACTERS = 2000

_encode = msgspec.json.Encoder(order="sorted").encode


def replicas_of(replica_set: KubeObject) -> int:
    """Return the requested number of pods of a ReplicaSet or Deployment."""
    count: int = replica_set["spec"].get("replicas", 1)
    return count


def total_replicas(replica_sets: Sequence[KubeObject]) -> int:
    """Return the total requested number of pods."""
    return sum(replicas_of(replica_set) for replica_set in replica_sets)


def is_rolling_update(deployment: KubeObject) -> bool:
    """Return whether the strategy is RollingUpdate."""
    return bool(deployment["spec"].get("strategy", {}).get("type", "RollingUpdate") == "RollingUpdate")


def _resolve_fenceposts(deployment: KubeObject) -> tuple[int, int]:
    """Return maxSurge and maxUnavailable as numbers; if both are 0, maxUnavailable becomes 1 (ResolveFenceposts)."""
    rolling = deployment["spec"].get("strategy", {}).get("rollingUpdate") or {}
    surge = scaled_value(rolling.get("maxSurge", 0), replicas_of(deployment), round_up=True)
    unavailable = scaled_value(rolling.get("maxUnavailable", 0), replicas_of(deployment), round_up=False)
    return (surge, unavailable) if surge or unavailable else (0, 1)


def max_surge(deployment: KubeObject) -> int:
    """Return by how many pods a rollout may exceed the size."""
    return _resolve_fenceposts(deployment)[0] if is_rolling_update(deployment) else 0


def max_unavailable(deployment: KubeObject) -> int:
    """Return how many pods may be unavailable during a rollout."""
    if not is_rolling_update(deployment) or replicas_of(deployment) == 0:
        return 0
    return min(_resolve_fenceposts(deployment)[1], replicas_of(deployment))


def template_hash(template: KubeObject, collisions: int) -> str:
    """Return the hash of a pod template, for the name of its ReplicaSet and the label of its pods.

    It differs from Kubernetes' hash, which is that of Go's dump of the structure (controller_utils.go, ComputeHash).
    """
    digest = hashlib.sha256(_encode(template) + (str(collisions).encode() if collisions else b"")).digest()
    return "".join(_SAFE_LETTERS[ord(digit) % 27] for digit in str(int.from_bytes(digest[:4])))


def same_template(one: KubeObject, other: KubeObject) -> bool:
    """Return whether two pod templates are equal, apart from the hash label (Kubernetes: EqualIgnoreHash)."""
    return one["spec"] == other["spec"] and _template_metadata(one) == _template_metadata(other)


def _template_metadata(template: KubeObject) -> dict[str, Any]:
    metadata = dict(template.get("metadata") or {})
    metadata.pop("creationTimestamp", None)
    metadata["labels"] = {name: value for name, value in (metadata.get("labels") or {}).items() if name != HASH_LABEL}
    return metadata


def template_without_hash(template: KubeObject) -> KubeObject:
    """Return the template without the hash label."""
    return {**template, "metadata": _template_metadata(template)}


def by_age(replica_sets: Sequence[KubeObject]) -> list[KubeObject]:
    """Sort by creation time, then by name."""
    return sorted(
        replica_sets,
        key=lambda replica_set: (replica_set["metadata"]["creationTimestamp"], replica_set["metadata"]["name"]),
    )


class OwnedReplicaSets(NamedTuple):
    """The ReplicaSets of a deployment: that of its current template, if any, and the others, oldest first."""

    new: KubeObject | None
    old: list[KubeObject]

    @property
    def all(self) -> list[KubeObject]:
        """All ReplicaSets, the new one last."""
        return self.old if self.new is None else [*self.old, self.new]


def split_replica_sets(deployment: KubeObject, replica_sets: Sequence[KubeObject]) -> OwnedReplicaSets:
    """Split a deployment's ReplicaSets into that of the current template and the others.

    Kubernetes: FindNewReplicaSet.
    """
    template = deployment["spec"]["template"]
    ordered = by_age(replica_sets)
    new = next(
        (replica_set for replica_set in ordered if same_template(replica_set["spec"]["template"], template)), None
    )
    return OwnedReplicaSets(new, [replica_set for replica_set in ordered if replica_set is not new])


def revision_of(obj: KubeObject) -> int:
    """Return the revision annotation of an object; 0 if it has none."""
    return int_annotation(obj, REVISION) or 0


def annotations_for_new(deployment: KubeObject, current: dict[str, str] | None, revision: int) -> dict[str, str]:
    """Return the annotations of the new ReplicaSet; `current` are its current ones, None if it does not exist.

    If an old ReplicaSet becomes the new one again, its former revisions are appended to its revision history.
    """
    annotations = dict(current or {})
    annotations |= {name: text for name, text in annotations_of(deployment).items() if name not in _OWN_ANNOTATIONS}
    old_text = annotations.get(REVISION)
    if (parse_digits(old_text or "") or 0) < revision:
        annotations[REVISION] = str(revision)
        if old_text is not None:
            annotations[REVISION_HISTORY] = _append_to_history(annotations.get(REVISION_HISTORY, ""), old_text)
    return annotations if current is not None else annotations | replicas_annotations(deployment)


def _append_to_history(history: str, revision: str) -> str:
    entries = [*filter(None, history.split(",")), revision]
    while len(",".join(entries)) > _MAX_HISTORY_CHARACTERS:
        entries.pop(0)
    return ",".join(entries)


def annotations_after_rollback(deployment: KubeObject, replica_set: KubeObject) -> dict[str, str]:
    """Return the deployment's annotations after a rollback to `replica_set`."""
    own = {name: text for name, text in annotations_of(deployment).items() if name in _OWN_ANNOTATIONS}
    copied = {name: text for name, text in annotations_of(replica_set).items() if name not in _OWN_ANNOTATIONS}
    return {name: text for name, text in (own | copied).items() if name != ROLLBACK_TO}


def replicas_annotations(deployment: KubeObject) -> dict[str, str]:
    """Return the size annotations of a ReplicaSet, which distinguish scaling from a rollout.

    Kubernetes: SetReplicasAnnotations.
    """
    count = replicas_of(deployment)
    return {DESIRED_REPLICAS: str(count), MAX_REPLICAS: str(count + max_surge(deployment))}


def is_scaling_event(deployment: KubeObject, replica_sets: Sequence[KubeObject]) -> bool:
    """Return whether the deployment's size differs from that in the annotations of an active ReplicaSet.

    Kubernetes: sync.go, isScalingEvent.
    """
    recorded = [
        int_annotation(replica_set, DESIRED_REPLICAS) for replica_set in replica_sets if replicas_of(replica_set)
    ]
    return any(count is not None and count != replicas_of(deployment) for count in recorded)


def desired_new_replicas(deployment: KubeObject, old: Sequence[KubeObject], current: int) -> int:
    """Return the allowed size of the new ReplicaSet, which has `current` pods now (Kubernetes: NewRSNewReplicas)."""
    if not is_rolling_update(deployment):
        return replicas_of(deployment)
    allowed_increase = replicas_of(deployment) + max_surge(deployment) - total_replicas(old) - current
    return current + max(0, min(allowed_increase, replicas_of(deployment) - current))


def is_saturated(deployment: KubeObject, replica_set: KubeObject | None) -> bool:
    """Return whether the new ReplicaSet has all pods of the deployment, and all are available (IsSaturated)."""
    if replica_set is None:
        return False
    desired = replicas_of(deployment)
    return (
        replicas_of(replica_set) == desired
        and int_annotation(replica_set, DESIRED_REPLICAS) == desired
        and replica_set.get("status", {}).get("availableReplicas", 0) == desired
    )


def proportional_replicas(deployment: KubeObject, replica_sets: Sequence[KubeObject]) -> list[tuple[KubeObject, int]]:
    """Return the size of each active ReplicaSet after the deployment was scaled during a rollout.

    The change is distributed in proportion to the sizes, largest first; the largest also gets the remainder.
    Kubernetes: sync.go, scale.
    """
    active = by_age([replica_set for replica_set in replica_sets if replicas_of(replica_set)])
    allowed = replicas_of(deployment) + max_surge(deployment) if replicas_of(deployment) else 0
    change = allowed - total_replicas(active)
    if change > 0:
        active.reverse()
    active.sort(key=replicas_of, reverse=True)
    sizes, distributed = [], 0
    for replica_set in active:
        fraction = _proportional_change(deployment, replica_set)
        remaining = change - distributed
        share = 0 if change == 0 else min(fraction, remaining) if change > 0 else max(fraction, remaining)
        sizes.append(replicas_of(replica_set) + share)
        distributed += share
    if sizes:
        sizes[0] = max(0, sizes[0] + change - distributed)
    return list(zip(active, sizes, strict=True))


def _proportional_change(deployment: KubeObject, replica_set: KubeObject) -> int:
    """Return the change of `replica_set` in exact proportion, rounded half away from zero.

    Kubernetes: GetReplicaSetProportion.
    """
    current = replicas_of(replica_set)
    if replicas_of(deployment) == 0:
        return -current
    size_before = int_annotation(replica_set, MAX_REPLICAS) or deployment.get("status", {}).get("replicas", 0)
    if not size_before:
        return 0
    size_after = replicas_of(deployment) + max_surge(deployment)
    return (2 * current * size_after + size_before) // (2 * size_before) - current


def new_replica_set(deployment: KubeObject, old: Sequence[KubeObject]) -> KubeObject:
    """Return the ReplicaSet to create for the current template; `old` are the existing ones."""
    metadata, spec = deployment["metadata"], deployment["spec"]
    template = spec["template"]
    digest = template_hash(template, deployment.get("status", {}).get("collisionCount", 0))
    labels = {**((template.get("metadata") or {}).get("labels") or {}), HASH_LABEL: digest}
    selector = spec["selector"]
    revision = max((revision_of(replica_set) for replica_set in old), default=0) + 1
    replica_set_spec: KubeObject = {
        "replicas": desired_new_replicas(deployment, old, 0),
        "selector": {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), HASH_LABEL: digest}},
        "template": {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}},
    }
    if spec.get("minReadySeconds"):
        replica_set_spec["minReadySeconds"] = spec["minReadySeconds"]
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{metadata['name']}-{digest}",
            "namespace": metadata["namespace"],
            "labels": labels,
            "annotations": annotations_for_new(deployment, None, revision),
            "ownerReferences": [controller_reference(deployment)],
        },
        "spec": replica_set_spec,
    }
