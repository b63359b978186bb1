"""Matching of volumes and claims, and the volumes that storage classes provision.

Kubernetes: component-helpers/storage/volume/pv_helpers.go, pkg/controller/volume/persistentvolume/pv_controller.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from batkube.cluster.nodes.constraints import NodeTerm
from batkube.cluster.object_meta import annotations_of, is_being_deleted
from batkube.cluster.selectors import selector_of
from batkube.cluster.store import KubeObject
from batkube.kernel.quantities import parse_amount

CLAIM, VOLUME, CLASS = "persistentvolumeclaims", "persistentvolumes", "storageclasses.storage.k8s.io"
#: Set if the binding was made by the controller and not by a user.
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
#: Set on a bound claim.
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
#: Set on a claim by a scheduler that has selected a node for its pod.
SELECTED_NODE = "volume.kubernetes.io/selected-node"
#: The provisioner of storage classes whose volumes are created by hand.
NO_PROVISIONER = "kubernetes.io/no-provisioner"
_BETA_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


def claim_names(pod: KubeObject) -> Iterator[str]:
    """Yield the names of the claims that a pod uses."""
    for volume in pod["spec"].get("volumes") or ():
        if "persistentVolumeClaim" in volume:
            yield volume["persistentVolumeClaim"]["claimName"]
        elif "ephemeral" in volume:
            yield ephemeral_claim_name(pod, volume)


def ephemeral_claim_name(pod: KubeObject, volume: KubeObject) -> str:
    """Return the name of the claim of an ephemeral volume."""
    return f"{pod['metadata']['name']}-{volume['name']}"


def class_of(obj: KubeObject) -> str:
    """Return the storage class of a claim or volume; "" for none."""
    name: str = annotations_of(obj).get(_BETA_CLASS_ANNOTATION) or obj["spec"].get("storageClassName") or ""
    return name


def is_reserved_for(volume: KubeObject, claim: KubeObject) -> bool:
    """Return whether a volume references this claim: with its uid, or, if reserved by a user, without a uid.

    Kubernetes: IsVolumeBoundToClaim.
    """
    reference, metadata = volume["spec"].get("claimRef"), claim["metadata"]
    if reference is None or (reference.get("namespace"), reference["name"]) != (
        metadata["namespace"],
        metadata["name"],
    ):
        return False
    return reference.get("uid", "") in ("", metadata["uid"])


def mismatch_reason(volume: KubeObject, claim: KubeObject) -> str | None:
    """Return why a volume does not match the claim that names it, or None if it does.

    Kubernetes: checkVolumeSatisfyClaim.
    """
    claim_spec, volume_spec = claim["spec"], volume["spec"]
    if is_being_deleted(volume):
        return f'the volume is marked for deletion "{volume["metadata"]["name"]}"'
    if _storage_bytes(volume_spec.get("capacity")) < _storage_bytes(
        (claim_spec.get("resources") or {}).get("requests")
    ):
        return "requested PV is too small"
    if class_of(volume) != class_of(claim):
        return "storageClassName does not match"
    if (claim_spec.get("volumeAttributesClassName") or "") != (volume_spec.get("volumeAttributesClassName") or ""):
        return "volumeAttributesClassName does not match"
    if claim_spec.get("volumeMode", "Filesystem") != volume_spec.get("volumeMode", "Filesystem"):
        return "incompatible volumeMode"
    if not set(claim_spec.get("accessModes") or ()) <= set(volume_spec.get("accessModes") or ()):
        return "incompatible accessMode"
    return None


def best_match(
    claim: KubeObject, volumes: Iterable[KubeObject], node: KubeObject | None, *, waits_for_consumer: bool
) -> KubeObject | None:
    """Return the best volume for a claim: one reserved for it, otherwise the smallest matching one.

    If the claim `waits_for_consumer`, only reserved volumes count until there is a `node`; volumes must be
    accessible from that node.
    Kubernetes: FindMatchingVolume.
    """
    suitable = []
    for volume in volumes:
        if is_reserved_for(volume, claim):
            if mismatch_reason(volume, claim) in (None, "storageClassName does not match") and _is_reachable(
                volume, node
            ):
                return volume
        elif (
            "claimRef" not in volume["spec"]
            and (node is not None or not waits_for_consumer)
            and volume.get("status", {}).get("phase") == "Available"
            and mismatch_reason(volume, claim) is None
            and _matches_selector(volume, claim)
            and _is_reachable(volume, node)
        ):
            suitable.append(volume)
    return min(
        suitable,
        key=lambda volume: (_storage_bytes(volume["spec"].get("capacity")), volume["metadata"]["name"]),
        default=None,
    )


def provisioned_volume(claim: KubeObject, storage_class: KubeObject) -> KubeObject:
    """Return the volume that a storage class provisions for a claim; it is simulated."""
    metadata, spec = claim["metadata"], claim["spec"]
    name, driver = f"pvc-{metadata['uid']}", storage_class["provisioner"]
    fields = {
        "capacity": {"storage": spec["resources"]["requests"]["storage"]},
        **_volume_source(driver, name),
        "accessModes": spec.get("accessModes"),
        "claimRef": claim_reference(claim),
        "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy", "Delete"),
        "storageClassName": storage_class["metadata"]["name"],
        "mountOptions": storage_class.get("mountOptions"),
        "volumeMode": spec.get("volumeMode", "Filesystem"),
        "volumeAttributesClassName": spec.get("volumeAttributesClassName"),
        "nodeAffinity": _node_affinity(storage_class),
    }
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: driver}},
        "spec": {field: value for field, value in fields.items() if value},
    }


def _volume_source(driver: str, name: str) -> KubeObject:
    """Return the source of a volume; a provisioner whose name is not a valid CSI driver name creates host paths.

    An example is `rancher.io/local-path`: driver names contain no slash (Kubernetes: ValidateCSIDriverName).
    """
    if "/" in driver:
        return {"hostPath": {"path": f"/var/lib/{driver.rpartition('/')[2]}/{name}", "type": "DirectoryOrCreate"}}
    return {"csi": {"driver": driver, "volumeHandle": name}}


def claim_reference(claim: KubeObject) -> KubeObject:
    """Return the claimRef of a volume."""
    metadata = claim["metadata"]
    fields = {
        "kind": "PersistentVolumeClaim",
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "apiVersion": "v1",
        "resourceVersion": metadata.get("resourceVersion"),
    }
    return {field: value for field, value in fields.items() if value}


def _node_affinity(storage_class: KubeObject) -> KubeObject | None:
    """Return the node affinity of volumes of a storage class with allowed topologies."""
    terms = [
        {
            "matchExpressions": [
                {"key": requirement["key"], "operator": "In", "values": requirement["values"]}
                for requirement in topology.get("matchLabelExpressions") or ()
            ]
        }
        for topology in storage_class.get("allowedTopologies") or ()
    ]
    return {"required": {"nodeSelectorTerms": terms}} if terms else None


def resized_volume(volume: KubeObject, claim: KubeObject) -> KubeObject:
    """Return the volume with the capacity that its claim requests; its provisioner also resizes it (external-resizer).

    Whether a claim may request more is checked by the API, according to the storage class.
    """
    requests = (claim["spec"].get("resources") or {}).get("requests") or {}
    spec = volume["spec"]
    if PROVISIONED_BY not in annotations_of(volume) or _storage_bytes(requests) <= _storage_bytes(spec.get("capacity")):
        return volume
    return {**volume, "spec": {**spec, "capacity": {**spec["capacity"], "storage": requests["storage"]}}}


def _storage_bytes(amounts: KubeObject | None) -> int:
    return parse_amount("storage", (amounts or {}).get("storage", 0))


def _matches_selector(volume: KubeObject, claim: KubeObject) -> bool:
    selector = claim["spec"].get("selector")
    return selector is None or selector_of(selector).matches(volume["metadata"].get("labels"))


def _is_reachable(volume: KubeObject, node: KubeObject | None) -> bool:
    claim_spec = (volume["spec"].get("nodeAffinity") or {}).get("required")
    if node is None or claim_spec is None:
        return True
    return any(NodeTerm(term).matches(node) for term in claim_spec["nodeSelectorTerms"])
