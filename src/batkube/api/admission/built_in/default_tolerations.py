"""DefaultTolerationSeconds: how long a pod stays on a node that fails.

Kubernetes: plugin/pkg/admission/defaulttolerationseconds.
"""

from __future__ import annotations

from typing import Any

from batkube.api.admission.request import AdmissionRequest

#: How long a pod stays on a node that fails; shared by all pods, which are never edited in place.
_TOLERATIONS: tuple[dict[str, Any], ...] = tuple(
    {"key": f"node.kubernetes.io/{problem}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for problem in ("not-ready", "unreachable")
)


def add_default_tolerations(attempt: AdmissionRequest) -> None:
    """Let a pod stay five minutes on a node that fails, unless it says how long."""
    spec = attempt.value["spec"]
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
