"""RuntimeClass: adds the overhead and scheduling constraints of a pod's runtime.

Kubernetes: plugin/pkg/admission/runtimeclass/admission.go.
"""

from __future__ import annotations

from typing import Any

from batkube.api.admission.request import AdmissionRequest
from batkube.api.validation.field_errors import go_quote
from batkube.cluster.store import Key, KubeObject


def _runtime_class(request: AdmissionRequest) -> KubeObject | None:
    name = request.value["spec"].get("runtimeClassName")
    if name is None:
        return None
    runtime_class = request.store.get("runtimeclasses.node.k8s.io", Key(name))
    if runtime_class is None:
        raise request.forbidden(f"pod rejected: RuntimeClass {go_quote(name)} not found")
    return runtime_class


def apply_runtime_class(request: AdmissionRequest) -> None:
    """Set the overhead, node selector and tolerations of a new pod's RuntimeClass."""
    runtime = _runtime_class(request) if request.old is None else None
    if runtime is None:
        return
    spec = request.value["spec"]
    overhead = (runtime.get("overhead") or {}).get("podFixed")
    if runtime.get("overhead") is not None:
        if spec.get("overhead") and spec["overhead"] != overhead:
            raise request.forbidden("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
        if overhead:
            spec["overhead"] = dict(overhead)
    scheduling = runtime.get("scheduling")
    if scheduling:
        selector = dict(spec.get("nodeSelector") or {})
        for key, value in (scheduling.get("nodeSelector") or {}).items():
            if selector.setdefault(key, value) != value:
                raise request.forbidden(
                    f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                    f"pod.spec.nodeSelector[{key}] = {selector[key]}"
                )
        if selector:
            spec["nodeSelector"] = selector
        merged = _merge_tolerations([*(spec.get("tolerations") or ()), *(scheduling.get("tolerations") or ())])
        if merged:
            spec["tolerations"] = merged


def check_overhead(request: AdmissionRequest) -> None:
    """Reject a pod whose overhead differs from that of its RuntimeClass."""
    if request.old is not None:
        return
    runtime = _runtime_class(request)
    overhead = request.value["spec"].get("overhead")
    if runtime is not None and runtime.get("overhead") is not None:
        if (runtime["overhead"].get("podFixed") or {}) != (overhead or {}):
            raise request.forbidden("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
    elif overhead is not None:
        raise request.forbidden("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")


def _merge_tolerations(tolerations: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the tolerations without those that another one covers."""
    # Kubernetes: pkg/util/tolerations/tolerations.go, MergeTolerations.
    merged: list[dict[str, Any]] = []
    for number, toleration in enumerate(tolerations):
        later = [each for each in tolerations[number + 1 :] if each != toleration]
        if not any(_toleration_covers(other, toleration) for other in [*merged, *later]):
            merged.append(toleration)
    return merged


def _toleration_covers(wide: dict[str, Any], narrow: dict[str, Any]) -> bool:
    if wide == narrow:
        return True
    exists = wide.get("operator") == "Exists"
    if narrow.get("key", "") != wide.get("key", "") and (wide.get("key") or not exists):
        return False
    if wide.get("effect") and narrow.get("effect") != wide["effect"]:
        return False
    wide_s, narrow_s = wide.get("tolerationSeconds"), narrow.get("tolerationSeconds")
    if wide.get("effect") == "NoExecute" and wide_s is not None and (narrow_s is None or narrow_s > wide_s):
        return False
    return exists or (narrow.get("operator") == "Equal" and narrow.get("value", "") == wide.get("value", ""))
