"""Priority: a pod gets the priority of its class. Kubernetes: plugin/pkg/admission/priority."""

from __future__ import annotations

from typing import Any

from batkube.api.admission.request import AdmissionRequest
from batkube.cluster.store import Key, KubeObject

_PRIORITY_CLASSES = "priorityclasses.scheduling.k8s.io"
_DEFAULT_PREEMPTION_POLICY = "PreemptLowerPriority"


def set_priority(attempt: AdmissionRequest) -> None:
    """Give a new pod the priority of its class; a changed one keeps what it leaves out."""
    spec = attempt.value["spec"]
    if attempt.old is not None:
        for field in ("priority", "preemptionPolicy"):
            live = attempt.old["spec"].get(field)
            if spec.get(field) is None and live is not None:
                spec[field] = live
        return
    priority, policy = _resolve_priority(attempt, spec)
    for field, title, computed in (
        ("priority", "integer value of priority", priority),
        ("preemptionPolicy", "string value of PreemptionPolicy", policy),
    ):
        own = spec.get(field)
        if own is not None and own != computed:
            raise attempt.forbidden(
                f"the {title} ({own}) must not be provided in pod spec; "
                f"priority admission controller computed {computed} from the given PriorityClass name"
            )
        spec[field] = computed


def _resolve_priority(attempt: AdmissionRequest, spec: dict[str, Any]) -> tuple[int, str]:
    """Return priority and preemption policy of a new pod; it learns its class if there is a default one."""
    name = spec.get("priorityClassName")
    if name:
        chosen = attempt.store.get(_PRIORITY_CLASSES, Key(name))
        if chosen is None:
            raise attempt.forbidden(f"no PriorityClass with name {name} was found")
    else:
        chosen = _default_class(attempt)
        if chosen is None:
            return 0, _DEFAULT_PREEMPTION_POLICY
        spec["priorityClassName"] = chosen["metadata"]["name"]
    return chosen["value"], chosen.get("preemptionPolicy") or _DEFAULT_PREEMPTION_POLICY


def _default_class(attempt: AdmissionRequest) -> KubeObject | None:
    """Return the class of pods that name none: the lowest of those marked so."""
    marked = [each for each, _ in attempt.store.entries(_PRIORITY_CLASSES).values() if each.get("globalDefault")]
    return min(marked, key=lambda each: int(each["value"]), default=None)


def check_default_class(attempt: AdmissionRequest) -> None:
    """Refuse a second class marked as the default."""
    if attempt.value.get("globalDefault"):
        marked = _default_class(attempt)
        name = marked["metadata"]["name"] if marked else ""
        if marked and (attempt.old is None or name != attempt.value["metadata"]["name"]):
            raise attempt.forbidden(f"PriorityClass {name} is already marked as default. Only one default can exist")
