"""Accessors of the metadata and status of any object: keys, owner references, labels, annotations, conditions."""

from __future__ import annotations

from typing import Any

from batkube.cluster.store import Key, KubeObject
from batkube.kernel.instants import Instant, rfc3339

Condition = dict[str, Any]


def key_of(obj: KubeObject) -> Key:
    """Return the key of an object within its kind."""
    metadata = obj["metadata"]
    namespace = metadata.get("namespace")
    return Key(f"{namespace}/{metadata['name']}" if namespace else metadata["name"])


def namespace_of(key: Key) -> str:
    """Return the namespace of the object at `key`, or "" for a cluster-scoped object."""
    return key.rpartition("/")[0]


def name_of(key: Key) -> str:
    """Return the name of the object at `key`."""
    return key.rpartition("/")[2]


def controller_of(obj: KubeObject) -> KubeObject | None:
    """Return the owner reference of the controller that manages `obj`, or None (metav1.GetControllerOf)."""
    for reference in obj["metadata"].get("ownerReferences", ()):
        if reference.get("controller"):
            match: KubeObject = reference
            return match
    return None


def is_controlled_by(obj: KubeObject, owner: KubeObject) -> bool:
    """Return whether `owner`, compared by uid, is the controller of `obj` (metav1.IsControlledBy)."""
    reference = controller_of(obj)
    return reference is not None and bool(reference["uid"] == owner["metadata"]["uid"])


def controller_reference(owner: KubeObject) -> KubeObject:
    """Return a controller reference to `owner` (metav1.NewControllerRef)."""
    metadata = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def labels_of(obj: KubeObject) -> dict[str, str]:
    """Return the object's labels."""
    labels: dict[str, str] = obj["metadata"].get("labels") or {}
    return labels


def annotations_of(obj: KubeObject) -> dict[str, str]:
    """Return the object's annotations."""
    annotations: dict[str, str] = obj["metadata"].get("annotations") or {}
    return annotations


def int_annotation(obj: KubeObject, annotation: str) -> int | None:
    """Return the value of an annotation as a whole number, or None if it is missing or not a number."""
    return parse_digits(annotations_of(obj).get(annotation, ""))


def parse_digits(text: str) -> int | None:
    """Return the number written in decimal digits, or None for any other text."""
    return int(text) if text.isascii() and text.isdigit() else None


def without_finalizer(obj: KubeObject, finalizer: str) -> KubeObject:
    """Return `obj` without a finalizer."""
    remaining = [name for name in obj["metadata"].get("finalizers", ()) if name != finalizer]
    return with_metadata(obj, finalizers=remaining or None)


def is_being_deleted(obj: KubeObject) -> bool:
    """Return whether the object has a deletion timestamp: it waits for its finalizers or its grace period."""
    return "deletionTimestamp" in obj["metadata"]


def condition_of(obj: KubeObject, kind: str) -> Condition | None:
    """Return the condition of type `kind` in the object's status, or None."""
    for condition in obj.get("status", {}).get("conditions") or ():
        if condition["type"] == kind:
            match: Condition = condition
            return match
    return None


def has_condition(obj: KubeObject, kind: str) -> bool:
    """Return whether the object has a condition of this type with status True."""
    condition = condition_of(obj, kind)
    return condition is not None and condition["status"] == "True"


def new_condition(kind: str, status: str, reason: str, message: str, now: Instant, second_time: str = "") -> Condition:
    """Return a condition with transition time `now`.

    `second_time` names a second timestamp that some kinds have (`lastUpdateTime`, `lastProbeTime`).
    """
    at = rfc3339(now)
    return {
        "type": kind,
        "status": status,
        **({second_time: at} if second_time else {}),
        "lastTransitionTime": at,
        "reason": reason,
        "message": message,
    }


def with_condition(conditions: list[Condition], new: Condition, now: Instant) -> list[Condition]:
    """Return `conditions` with `new` replacing the condition of its type, or appended.

    The transition time is kept while the status is unchanged (Kubernetes: pkg/api/v1/pod/util.go, UpdatePodCondition).
    """
    old = next((condition for condition in conditions if condition["type"] == new["type"]), None)
    since = old.get("lastTransitionTime") if old is not None and old["status"] == new["status"] else None
    updated = {**new, "lastTransitionTime": since or rfc3339(now)}
    if old is None:
        return [*conditions, updated]
    return [updated if condition is old else condition for condition in conditions]


def status_with_condition(obj: KubeObject, condition: Condition, now: Instant) -> KubeObject:
    """Return the object's status with `condition` set."""
    status = obj.get("status", {})
    return {**status, "conditions": with_condition(status.get("conditions") or [], condition, now)}


def with_metadata(obj: KubeObject, **fields: Any) -> KubeObject:  # noqa: ANN401 - any JSON
    """Return `obj` with these metadata fields set; a field of None is removed."""
    metadata = {**obj["metadata"], **fields}
    return {**obj, "metadata": {name: value for name, value in metadata.items() if value is not None}}
