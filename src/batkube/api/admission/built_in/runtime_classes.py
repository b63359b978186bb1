"""RuntimeClass: what a runtime costs a pod, and where it is. Kubernetes: plugin/pkg/admission/runtimeclass."""

from __future__ import annotations

from typing import Any

from batkube.api.admission.request import AdmissionRequest
from batkube.api.validation.field_errors import go_quote
from batkube.cluster.store import Key, KubeObject


def _runtime_class(attempt: AdmissionRequest) -> KubeObject | None:
    name = attempt.value["spec"].get("runtimeClassName")
    if name is None:
        return None
    runtime_class = attempt.store.get("runtimeclasses.node.k8s.io", Key(name))
    if runtime_class is None:
        raise attempt.forbidden(f"pod rejected: RuntimeClass {go_quote(name)} not found")
    return runtime_class


def apply_runtime_class(attempt: AdmissionRequest) -> None:
    """Give a new pod the overhead of its runtime, and send it where that runtime is."""
    runtime = _runtime_class(attempt) if attempt.old is None else None
    if runtime is None:
        return
    spec = attempt.value["spec"]
    overhead = (runtime.get("overhead") or {}).get("podFixed")
    if runtime.get("overhead") is not None:
        if spec.get("overhead") and spec["overhead"] != overhead:
            raise attempt.forbidden("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
        if overhead:
            spec["overhead"] = dict(overhead)
    scheduling = runtime.get("scheduling")
    if scheduling:
        selector = dict(spec.get("nodeSelector") or {})
        for key, value in (scheduling.get("nodeSelector") or {}).items():
            if selector.setdefault(key, value) != value:
                raise attempt.forbidden(
                    f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                    f"pod.spec.nodeSelector[{key}] = {selector[key]}"
                )
        if selector:
            spec["nodeSelector"] = selector
        merged = _merge_tolerations([*(spec.get("tolerations") or ()), *(scheduling.get("tolerations") or ())])
        if merged:
            spec["tolerations"] = merged


def check_overhead(attempt: AdmissionRequest) -> None:
    """Refuse an overhead that is not the runtime's."""
    if attempt.old is not None:
        return
    runtime = _runtime_class(attempt)
    overhead = attempt.value["spec"].get("overhead")
    if runtime is not None and runtime.get("overhead") is not None:
        if (runtime["overhead"].get("podFixed") or {}) != (overhead or {}):
            raise attempt.forbidden("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
    elif overhead is not None:
        raise attempt.forbidden("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")


def _merge_tolerations(tolerations: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the tolerations without those that another one covers (pkg/util/tolerations, MergeTolerations)."""
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
    limit_s, asked_s = wide.get("tolerationSeconds"), narrow.get("tolerationSeconds")
    if wide.get("effect") == "NoExecute" and limit_s is not None and (asked_s is None or asked_s > limit_s):
        return False
    return exists or (narrow.get("operator") == "Equal" and narrow.get("value", "") == wide.get("value", ""))
