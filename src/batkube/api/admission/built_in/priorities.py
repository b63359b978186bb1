"""Priority: sets the priority of a pod from its PriorityClass.

Kubernetes: plugin/pkg/admission/priority/admission.go.
"""

from __future__ import annotations

from typing import Any

from batkube.api.admission.request import AdmissionRequest
from batkube.cluster.store import Key, KubeObject

_PRIORITY_CLASSES = "priorityclasses.scheduling.k8s.io"
_DEFAULT_PREEMPTION_POLICY = "PreemptLowerPriority"


def set_priority(request: AdmissionRequest) -> None:
    """Set priority and preemption policy of a new pod from its class; on update, keep those that are left out."""
    spec = request.value["spec"]
    if request.old is not None:
        for field in ("priority", "preemptionPolicy"):
            live = request.old["spec"].get(field)
            if spec.get(field) is None and live is not None:
                spec[field] = live
        return
    priority, policy = _resolve_priority(request, spec)
    for field, title, computed in (
        ("priority", "integer value of priority", priority),
        ("preemptionPolicy", "string value of PreemptionPolicy", policy),
    ):
        own = spec.get(field)
        if own is not None and own != computed:
            raise request.forbidden(
                f"the {title} ({own}) must not be provided in pod spec; "
                f"priority admission controller computed {computed} from the given PriorityClass name"
            )
        spec[field] = computed


def set_group_priority(request: AdmissionRequest) -> None:
    """Set the priority of a new PodGroup from its class.

    Its preemption policy is that of a feature gate that is off by default (PodGroupPreemptionPolicy).
    """
    if request.old is not None:
        return
    spec = request.value["spec"]
    priority, _ = _resolve_priority(request, spec)
    own = spec.get("priority")
    if own is not None and own != priority:
        raise request.forbidden(
            f"priority set in the pod group ({own}) must match the priority computed ({priority}) "
            "based on the priority class set in the spec"
        )
    spec["priority"] = priority


def _resolve_priority(request: AdmissionRequest, spec: dict[str, Any]) -> tuple[int, str]:
    """Return the priority and preemption policy of a new object; set its class if it gets the default one."""
    name = spec.get("priorityClassName")
    if name:
        priority_class = request.store.get(_PRIORITY_CLASSES, Key(name))
        if priority_class is None:
            raise request.forbidden(f"no PriorityClass with name {name} was found")
    else:
        priority_class = _default_class(request)
        if priority_class is None:
            return 0, _DEFAULT_PREEMPTION_POLICY
        spec["priorityClassName"] = priority_class["metadata"]["name"]
    return priority_class["value"], priority_class.get("preemptionPolicy") or _DEFAULT_PREEMPTION_POLICY


def _default_class(request: AdmissionRequest) -> KubeObject | None:
    """Return the default PriorityClass; of several marked as default, the one with the lowest value."""
    # Kubernetes: plugin/pkg/admission/priority/admission.go, getDefaultPriorityClass.
    defaults = [each for each, _ in request.store.entries(_PRIORITY_CLASSES).values() if each.get("globalDefault")]
    return min(defaults, key=lambda each: int(each["value"]), default=None)


def check_default_class(request: AdmissionRequest) -> None:
    """Reject a second PriorityClass with globalDefault."""
    if request.value.get("globalDefault"):
        existing = _default_class(request)
        name = existing["metadata"]["name"] if existing else ""
        if existing and (request.old is None or name != request.value["metadata"]["name"]):
            raise request.forbidden(f"PriorityClass {name} is already marked as default. Only one default can exist")
