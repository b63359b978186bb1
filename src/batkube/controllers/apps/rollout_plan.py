"""What a rollout of a Deployment should look like: which ReplicaSet is the new one, and how large each may be.

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
#: The letters of generated names, in which no word can be read (apimachinery: util/rand, SafeEncodeString).
_SAFE_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
#: A revision history longer than this loses its oldest entries.
_MAX_HISTORY_CHARACTERS = 2000

_encode = msgspec.json.Encoder(order="sorted").encode


def replicas_of(replica_set: KubeObject) -> int:
    """Return how many pods a ReplicaSet (or Deployment) is asked to have."""
    count: int = replica_set["spec"].get("replicas", 1)
    return count


def total_replicas(replica_sets: Sequence[KubeObject]) -> int:
    """Return how many pods all of them are asked to have."""
    return sum(replicas_of(one) for one in replica_sets)


def is_rolling_update(deployment: KubeObject) -> bool:
    """Return whether its pods are replaced little by little."""
    return bool(deployment["spec"].get("strategy", {}).get("type", "RollingUpdate") == "RollingUpdate")


def _resolve_fenceposts(deployment: KubeObject) -> tuple[int, int]:
    """Return by how many pods it may exceed, and fall short of, its size while it rolls."""
    rolling = deployment["spec"].get("strategy", {}).get("rollingUpdate") or {}
    surge = scaled_value(rolling.get("maxSurge", 0), replicas_of(deployment), round_up=True)
    unavailable = scaled_value(rolling.get("maxUnavailable", 0), replicas_of(deployment), round_up=False)
    return (surge, unavailable) if surge or unavailable else (0, 1)


def max_surge(deployment: KubeObject) -> int:
    """Return by how many pods it may exceed its size."""
    return _resolve_fenceposts(deployment)[0] if is_rolling_update(deployment) else 0


def max_unavailable(deployment: KubeObject) -> int:
    """Return how many of its pods may be missing."""
    if not is_rolling_update(deployment) or replicas_of(deployment) == 0:
        return 0
    return min(_resolve_fenceposts(deployment)[1], replicas_of(deployment))


def template_hash(template: KubeObject, collisions: int) -> str:
    """Return the name of a pod template, as it stands in the names of ReplicaSets and in the label of their pods.

    Of the same look as the real ones; the real hash is over Go's own print of the structure, which nobody else makes.
    """
    digest = hashlib.sha256(_encode(template) + (str(collisions).encode() if collisions else b"")).digest()
    return "".join(_SAFE_LETTERS[ord(digit) % 27] for digit in str(int.from_bytes(digest[:4])))


def same_template(one: KubeObject, other: KubeObject) -> bool:
    """Return whether two pod templates differ in nothing but the hash label."""
    return one["spec"] == other["spec"] and _template_metadata(one) == _template_metadata(other)


def _template_metadata(template: KubeObject) -> dict[str, Any]:
    metadata = dict(template.get("metadata") or {})
    metadata.pop("creationTimestamp", None)
    metadata["labels"] = {name: value for name, value in (metadata.get("labels") or {}).items() if name != HASH_LABEL}
    return metadata


def template_without_hash(template: KubeObject) -> KubeObject:
    """Return the template as a Deployment has it."""
    return {**template, "metadata": _template_metadata(template)}


def by_age(replica_sets: Sequence[KubeObject]) -> list[KubeObject]:
    """Return them oldest first; those of one second by name."""
    return sorted(replica_sets, key=lambda one: (one["metadata"]["creationTimestamp"], one["metadata"]["name"]))


class OwnedReplicaSets(NamedTuple):
    """The ReplicaSets of a deployment: that of its present template, if there is one, and the others, oldest first."""

    new: KubeObject | None
    old: list[KubeObject]

    @property
    def all(self) -> list[KubeObject]:
        """All of them, the new one last."""
        return self.old if self.new is None else [*self.old, self.new]


def split_replica_sets(deployment: KubeObject, replica_sets: Sequence[KubeObject]) -> OwnedReplicaSets:
    """Return the ReplicaSets of a deployment, told apart by its present template."""
    template = deployment["spec"]["template"]
    ordered = by_age(replica_sets)
    new = next((one for one in ordered if same_template(one["spec"]["template"], template)), None)
    return OwnedReplicaSets(new, [one for one in ordered if one is not new])


def revision_of(obj: KubeObject) -> int:
    """Return the revision that an object's annotation tells; 0 when there is none."""
    return int_annotation(obj, REVISION) or 0


def annotations_for_new(deployment: KubeObject, present: dict[str, str] | None, revision: int) -> dict[str, str]:
    """Return the annotations of the new ReplicaSet, which has those `present` or, if None, is to be created.

    When an older ReplicaSet becomes the new one again, the revisions it stood for before are kept as its history.
    """
    made = dict(present or {})
    made |= {name: text for name, text in annotations_of(deployment).items() if name not in _OWN_ANNOTATIONS}
    old_text = made.get(REVISION)
    if (parse_digits(old_text or "") or 0) < revision:
        made[REVISION] = str(revision)
        if old_text is not None:
            made[REVISION_HISTORY] = _append_to_history(made.get(REVISION_HISTORY, ""), old_text)
    return made if present is not None else made | replicas_annotations(deployment)


def _append_to_history(history: str, revision: str) -> str:
    entries = [*filter(None, history.split(",")), revision]
    while len(",".join(entries)) > _MAX_HISTORY_CHARACTERS:
        entries.pop(0)
    return ",".join(entries)


def annotations_after_rollback(deployment: KubeObject, replica_set: KubeObject) -> dict[str, str]:
    """Return the deployment's annotations once it has the template of `replica_set` again."""
    kept = {name: text for name, text in annotations_of(deployment).items() if name in _OWN_ANNOTATIONS}
    taken = {name: text for name, text in annotations_of(replica_set).items() if name not in _OWN_ANNOTATIONS}
    return {name: text for name, text in (kept | taken).items() if name != ROLLBACK_TO}


def replicas_annotations(deployment: KubeObject) -> dict[str, str]:
    """Return what a ReplicaSet notes of its deployment's size, by which scaling is told from rolling."""
    count = replicas_of(deployment)
    return {DESIRED_REPLICAS: str(count), MAX_REPLICAS: str(count + max_surge(deployment))}


def is_scaling_event(deployment: KubeObject, replica_sets: Sequence[KubeObject]) -> bool:
    """Return whether the deployment's size changed since a ReplicaSet that has pods noted it."""
    noted = [int_annotation(one, DESIRED_REPLICAS) for one in replica_sets if replicas_of(one)]
    return any(count is not None and count != replicas_of(deployment) for count in noted)


def desired_new_replicas(deployment: KubeObject, others: Sequence[KubeObject], current: int) -> int:
    """Return how large the new ReplicaSet, which has `current` pods, may become beside the others."""
    if not is_rolling_update(deployment):
        return replicas_of(deployment)
    room = replicas_of(deployment) + max_surge(deployment) - total_replicas(others) - current
    return current + max(0, min(room, replicas_of(deployment) - current))


def is_saturated(deployment: KubeObject, replica_set: KubeObject | None) -> bool:
    """Return whether the new ReplicaSet has all pods of the deployment, and all are available."""
    if replica_set is None:
        return False
    wanted = replicas_of(deployment)
    return (
        replicas_of(replica_set) == wanted
        and int_annotation(replica_set, DESIRED_REPLICAS) == wanted
        and replica_set.get("status", {}).get("availableReplicas", 0) == wanted
    )


def proportional_replicas(deployment: KubeObject, replica_sets: Sequence[KubeObject]) -> list[tuple[KubeObject, int]]:
    """Return the ReplicaSets that have pods with the size of each after the deployment was scaled in mid-rollout.

    What is added or taken is shared in proportion to their sizes, the largest first; it also gets what is left over.
    """
    active = by_age([one for one in replica_sets if replicas_of(one)])
    allowed = replicas_of(deployment) + max_surge(deployment) if replicas_of(deployment) else 0
    change = allowed - total_replicas(active)
    if change > 0:
        active.reverse()
    active.sort(key=replicas_of, reverse=True)
    sizes, changed = [], 0
    for one in active:
        fraction = _proportional_change(deployment, one)
        left = change - changed
        share = 0 if change == 0 else min(fraction, left) if change > 0 else max(fraction, left)
        sizes.append(replicas_of(one) + share)
        changed += share
    if sizes:
        sizes[0] = max(0, sizes[0] + change - changed)
    return list(zip(active, sizes, strict=True))


def _proportional_change(deployment: KubeObject, replica_set: KubeObject) -> int:
    """Return by how much `replica_set` would change in exact proportion, rounded half away from zero."""
    current = replicas_of(replica_set)
    if replicas_of(deployment) == 0:
        return -current
    before = int_annotation(replica_set, MAX_REPLICAS) or deployment.get("status", {}).get("replicas", 0)
    if not before:
        return 0
    after = replicas_of(deployment) + max_surge(deployment)
    return (2 * current * after + before) // (2 * before) - current


def new_replica_set(deployment: KubeObject, others: Sequence[KubeObject]) -> KubeObject:
    """Return the ReplicaSet to create for the deployment's present template beside the `others` there are."""
    metadata, spec = deployment["metadata"], deployment["spec"]
    template = spec["template"]
    digest = template_hash(template, deployment.get("status", {}).get("collisionCount", 0))
    labels = {**((template.get("metadata") or {}).get("labels") or {}), HASH_LABEL: digest}
    selector = spec["selector"]
    revision = max((revision_of(one) for one in others), default=0) + 1
    made: KubeObject = {
        "replicas": desired_new_replicas(deployment, others, 0),
        "selector": {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), HASH_LABEL: digest}},
        "template": {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}},
    }
    if spec.get("minReadySeconds"):
        made["minReadySeconds"] = spec["minReadySeconds"]
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
        "spec": made,
    }
