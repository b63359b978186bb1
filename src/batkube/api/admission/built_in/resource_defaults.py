"""Plugins that set defaults: taints of new nodes, default storage and ingress classes, protection finalizers.

Kubernetes: plugin/pkg/admission/{nodetaint,storage,network/defaultingressclass}.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from batkube.api.admission.request import AdmissionRequest
from batkube.cluster.default_classes import default_ingress_class, default_storage_class
from batkube.cluster.store import Key, Store
from batkube.kernel.quantities import parse_quantity

_NOT_READY_TAINT = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
_STORAGE_CLASSES = "storageclasses.storage.k8s.io"
_CLAIM_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_INGRESS_CLASS_ANNOTATION = "kubernetes.io/ingress.class"

#: The finalizers that protect objects in use (StorageObjectInUseProtection).
_PROTECTION_FINALIZERS: Mapping[str, str] = {
    "persistentvolumeclaims": "kubernetes.io/pvc-protection",
    "persistentvolumes": "kubernetes.io/pv-protection",
    "volumeattributesclasses.storage.k8s.io": "kubernetes.io/vac-protection",
}


def taint_new_node(request: AdmissionRequest) -> None:
    """Taint a new node as not ready until the node lifecycle controller removes the taint (TaintNodesByCondition)."""
    if request.old is None:
        spec = request.value.setdefault("spec", {})
        taints = spec.get("taints") or []
        if not any(all(taint.get(name) == _NOT_READY_TAINT[name] for name in _NOT_READY_TAINT) for taint in taints):
            spec["taints"] = [*taints, dict(_NOT_READY_TAINT)]


def add_protection_finalizer(request: AdmissionRequest) -> None:
    """Add the finalizer that keeps a volume or claim from being deleted while it is in use."""
    if request.old is None:
        metadata = request.value["metadata"]
        protection = _PROTECTION_FINALIZERS[request.resource.storage]
        finalizers = metadata.get("finalizers") or []
        if protection not in finalizers:
            metadata["finalizers"] = [*finalizers, protection]


def set_default_storage_class(request: AdmissionRequest) -> None:
    """Set the default class on a new claim that names none (DefaultStorageClass)."""
    _set_default_class(request, "storageClassName", _CLAIM_CLASS_ANNOTATION, default_storage_class)


def set_default_ingress_class(request: AdmissionRequest) -> None:
    """Set the default class on a new ingress that names none (DefaultIngressClass)."""
    _set_default_class(request, "ingressClassName", _INGRESS_CLASS_ANNOTATION, default_ingress_class)


def _set_default_class(
    request: AdmissionRequest, field: str, annotation: str, default_class: Callable[[Store], str]
) -> None:
    spec = request.value.setdefault("spec", {})
    annotations = request.value["metadata"].get("annotations") or {}
    if request.old is None and spec.get(field) is None and annotation not in annotations:
        class_ = default_class(request.store)
        if class_:
            spec[field] = class_


def check_volume_expansion(request: AdmissionRequest) -> None:
    """Reject the expansion of a claim that is unbound, or whose class forbids it (PersistentVolumeClaimResize)."""
    if request.old is None:
        return
    new, old = _requested_storage(request.value), _requested_storage(request.old)
    if parse_quantity(new) <= parse_quantity(old):
        return
    if (request.old.get("status") or {}).get("phase") != "Bound":
        raise request.forbidden("Only bound persistent volume claims can be expanded")
    name = _storage_class_name(request.value)
    class_ = (
        request.store.get(_STORAGE_CLASSES, Key(name)) if name and name == _storage_class_name(request.old) else None
    )
    if class_ is None or not class_.get("allowVolumeExpansion"):
        raise request.forbidden(
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
