"""What objects say of themselves and of each other: keys, owners, conditions.

Small questions that controllers, kubelets and schedulers all ask of the metadata and status of any object.
"""

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
    """Return the namespace of the object at `key`, or "" when it has none."""
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
    """Return whether `owner`, and no other of its name, is the controller of `obj` (metav1.IsControlledBy)."""
    reference = controller_of(obj)
    return reference is not None and bool(reference["uid"] == owner["metadata"]["uid"])


def controller_reference(owner: KubeObject) -> KubeObject:
    """Return the reference that makes `owner` the controller of what carries it (metav1.NewControllerRef)."""
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
    """Return the whole number that an annotation of the object tells, None if it tells none."""
    return parse_digits(annotations_of(obj).get(annotation, ""))


def parse_digits(text: str) -> int | None:
    """Return the number that a text of digits is, None for any other text."""
    return int(text) if text.isascii() and text.isdigit() else None


def without_finalizer(obj: KubeObject, finalizer: str) -> KubeObject:
    """Return `obj` as it is once a finalizer has done its work."""
    left = [one for one in obj["metadata"].get("finalizers", ()) if one != finalizer]
    return with_metadata(obj, finalizers=left or None)


def is_being_deleted(obj: KubeObject) -> bool:
    """Return whether the object waits for its finalizers or its grace period."""
    return "deletionTimestamp" in obj["metadata"]


def condition_of(obj: KubeObject, kind: str) -> Condition | None:
    """Return the condition of type `kind` in the object's status, or None."""
    for condition in obj.get("status", {}).get("conditions") or ():
        if condition["type"] == kind:
            match: Condition = condition
            return match
    return None


def has_condition(obj: KubeObject, kind: str) -> bool:
    """Return whether a condition of this type is true of the object."""
    condition = condition_of(obj, kind)
    return condition is not None and condition["status"] == "True"


def new_condition(kind: str, status: str, reason: str, message: str, now: Instant, second_time: str = "") -> Condition:
    """Return a condition that begins now; `second_time` names the other time that conditions of some kinds have."""
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
    """Return `conditions` with `new` in the place of the one of its type, or at the end.

    The time of the last transition stays while the status does (Kubernetes: podutil.UpdatePodCondition).
    """
    old = next((one for one in conditions if one["type"] == new["type"]), None)
    since = old.get("lastTransitionTime") if old is not None and old["status"] == new["status"] else None
    made = {**new, "lastTransitionTime": since or rfc3339(now)}
    if old is None:
        return [*conditions, made]
    return [made if one is old else one for one in conditions]


def status_with_condition(obj: KubeObject, condition: Condition, now: Instant) -> KubeObject:
    """Return the object's status with this condition in it."""
    status = obj.get("status", {})
    return {**status, "conditions": with_condition(status.get("conditions") or [], condition, now)}


def with_metadata(obj: KubeObject, **fields: Any) -> KubeObject:  # noqa: ANN401 - any JSON
    """Return `obj` with these fields of its metadata, leaving out those that are None."""
    metadata = {**obj["metadata"], **fields}
    return {**obj, "metadata": {name: value for name, value in metadata.items() if value is not None}}
