"""Warnings about PersistentVolumes and their claims. Kubernetes: pkg/api/persistentvolume{,claim}."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.groups.core import deprecated_node_labels
from batkube.api.validation.field_errors import go_quote
from batkube.api.validation.quantities import quantity

_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_VOLUME_ANNOTATIONS = {
    _CLASS_ANNOTATION: 'deprecated since v1.8; use "storageClassName" attribute instead',
    "volume.beta.kubernetes.io/mount-options": 'deprecated since v1.31; use "mountOptions" attribute instead',
}
_VOLUME_SOURCES = {
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
#: The names of fields in warnings, where they differ.
_SOURCE_NAMES_IN_MESSAGES = {"storageos": "storageOS"}


def fractional_byte_warnings(path: str, text: str | None) -> list[str]:
    """Return the warning about a quantity with a fraction of a byte."""
    if text is None or not quantity(text).milli_value % 1000:
        return []
    return [f"{path}: fractional byte value {go_quote(text)} is invalid, must be an integer"]


def claim_spec_warnings(path: str, spec: Mapping[str, Any]) -> list[str]:
    """Return the warnings about the spec of a claim or claim template."""
    resources = spec.get("resources") or {}
    return [
        warning
        for field in ("requests", "limits")
        for warning in fractional_byte_warnings(
            f"{path}.resources.{field}[storage]", (resources.get(field) or {}).get("storage")
        )
    ]


def claim_warnings(claim: Mapping[str, Any]) -> list[str]:
    """Return the warnings about a claim: the deprecated class annotation, fractions of bytes."""
    warnings = []
    if _CLASS_ANNOTATION in (claim["metadata"].get("annotations") or {}):
        warnings.append(f"metadata.annotations[{_CLASS_ANNOTATION}]: {_VOLUME_ANNOTATIONS[_CLASS_ANNOTATION]}")
    return warnings + claim_spec_warnings("spec", claim["spec"])


def persistent_volume_warnings(volume: Mapping[str, Any]) -> list[str]:
    """Return the warnings about a PersistentVolume: deprecated annotations, policies, node labels and plugins."""
    spec, annotations = volume["spec"], volume["metadata"].get("annotations") or {}
    warnings = [
        f"metadata.annotations[{name}]: {text}" for name, text in _VOLUME_ANNOTATIONS.items() if name in annotations
    ]
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        warnings.append(
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended "
            "approach is to use dynamic provisioning."
        )
    required = (spec.get("nodeAffinity") or {}).get("required") or {}
    terms = required.get("nodeSelectorTerms") or ()
    warnings += deprecated_node_labels.node_selector_term_warnings(
        "spec.nodeAffinity.required.nodeSelectorTerms", terms
    )
    return warnings + [
        f"spec.{_SOURCE_NAMES_IN_MESSAGES.get(name, name)}: {text}"
        for name, text in _VOLUME_SOURCES.items()
        if spec.get(name) is not None
    ]
