"""DefaultTolerationSeconds: limits how long a pod stays on a failed node.

Kubernetes: plugin/pkg/admission/defaulttolerationseconds/admission.go.
"""

from __future__ import annotations

from typing import Any

from batkube.api.admission.request import AdmissionRequest

#: The default tolerations. All pods share these values, which is safe since stored objects are never edited in place.
_TOLERATIONS: tuple[dict[str, Any], ...] = tuple(
    {"key": f"node.kubernetes.io/{problem}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for problem in ("not-ready", "unreachable")
)


def add_default_tolerations(request: AdmissionRequest) -> None:
    """Add tolerations of five minutes for not-ready and unreachable nodes, unless the pod has its own."""
    spec = request.value["spec"]
    tolerations = spec.get("tolerations")
    if not tolerations:
        spec["tolerations"] = list(_TOLERATIONS)
        return
    missing = [
        each
        for each in _TOLERATIONS
        if not any(
            toleration.get("key") in (None, "", each["key"]) and toleration.get("effect") in (None, "", "NoExecute")
            for toleration in tolerations
        )
    ]
    if missing:
        spec["tolerations"] = [*tolerations, *missing]
