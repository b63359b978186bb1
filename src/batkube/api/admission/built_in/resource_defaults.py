"""Admission of what has classes and protections: nodes' taints, claims, volumes, ingresses.

Kubernetes: plugin/pkg/admission/{nodetaint,storage,network/defaultingressclass}.
"""

from __future__ import annotations

from collections.abc import Mapping

from batkube.api.admission.request import AdmissionRequest
from batkube.cluster.default_classes import default_ingress_class, default_storage_class
from batkube.cluster.store import Key
from batkube.kernel.quantities import parse_quantity

_NOT_READY_TAINT = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
_STORAGE_CLASSES = "storageclasses.storage.k8s.io"
_CLAIM_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_INGRESS_CLASS_ANNOTATION = "kubernetes.io/ingress.class"

#: What keeps an object from going while it is in use (StorageObjectInUseProtection).
_PROTECTION_FINALIZERS: Mapping[str, str] = {
    "persistentvolumeclaims": "kubernetes.io/pvc-protection",
    "persistentvolumes": "kubernetes.io/pv-protection",
    "volumeattributesclasses.storage.k8s.io": "kubernetes.io/vac-protection",
}


def taint_new_node(attempt: AdmissionRequest) -> None:
    """A new node takes no pods until somebody finds it ready (TaintNodesByCondition)."""
    if attempt.old is None:
        spec = attempt.value.setdefault("spec", {})
        taints = spec.get("taints") or []
        if not any(all(taint.get(name) == _NOT_READY_TAINT[name] for name in _NOT_READY_TAINT) for taint in taints):
            spec["taints"] = [*taints, dict(_NOT_READY_TAINT)]


def add_protection_finalizer(attempt: AdmissionRequest) -> None:
    """A new volume or claim is not deleted while it is in use."""
    if attempt.old is None:
        metadata = attempt.value["metadata"]
        protection = _PROTECTION_FINALIZERS[attempt.resource.storage]
        finalizers = metadata.get("finalizers") or []
        if protection not in finalizers:
            metadata["finalizers"] = [*finalizers, protection]


def set_default_storage_class(attempt: AdmissionRequest) -> None:
    """A new claim that names no class is of the default one (DefaultStorageClass)."""
    spec = attempt.value.setdefault("spec", {})
    annotations = attempt.value["metadata"].get("annotations") or {}
    if attempt.old is None and spec.get("storageClassName") is None and _CLAIM_CLASS_ANNOTATION not in annotations:
        chosen = default_storage_class(attempt.store)
        if chosen:
            spec["storageClassName"] = chosen


def set_default_ingress_class(attempt: AdmissionRequest) -> None:
    """A new ingress that names no class is of the default one (DefaultIngressClass)."""
    spec = attempt.value.setdefault("spec", {})
    annotations = attempt.value["metadata"].get("annotations") or {}
    if attempt.old is None and spec.get("ingressClassName") is None and _INGRESS_CLASS_ANNOTATION not in annotations:
        chosen = default_ingress_class(attempt.store)
        if chosen:
            spec["ingressClassName"] = chosen


def check_volume_expansion(attempt: AdmissionRequest) -> None:
    """Refuse to grow a claim that is not bound, or whose class does not allow it (PersistentVolumeClaimResize)."""
    if attempt.old is None:
        return
    new, old = _requested_storage(attempt.value), _requested_storage(attempt.old)
    if parse_quantity(new) <= parse_quantity(old):
        return
    if (attempt.old.get("status") or {}).get("phase") != "Bound":
        raise attempt.forbidden("Only bound persistent volume claims can be expanded")
    name = _storage_class_name(attempt.value)
    chosen = (
        attempt.store.get(_STORAGE_CLASSES, Key(name)) if name and name == _storage_class_name(attempt.old) else None
    )
    if chosen is None or not chosen.get("allowVolumeExpansion"):
        raise attempt.forbidden(
            "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must "
            "support resize"
        )


def _requested_storage(claim: Mapping[str, dict[str, dict[str, dict[str, str]]]]) -> str:
    requests = ((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}
    return requests.get("storage", "0")


def _storage_class_name(claim: Mapping[str, dict[str, dict[str, str]]]) -> str:
    annotations = claim["metadata"].get("annotations") or {}
    if _CLAIM_CLASS_ANNOTATION in annotations:
        return annotations[_CLAIM_CLASS_ANNOTATION]
    return str((claim.get("spec") or {}).get("storageClassName") or "")
