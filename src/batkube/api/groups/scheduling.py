"""PriorityClasses, and the PodGroups and Workloads of Kubernetes 1.37.

Kubernetes: pkg/apis/scheduling and pkg/registry/scheduling.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.groups.core.pods.validation.spec import check_preemption_policy
from batkube.api.groups.kind_model.defaults import fill_absent
from batkube.api.groups.kind_model.kind import Kind
from batkube.api.groups.kind_model.strategy import PROTECTED_FIELDS, Strategy, with_generation
from batkube.api.printing.ages import age
from batkube.api.validation.metadata import check_built_in_metadata
from batkube.api.validation.names import subdomain_name
from batkube.api.validation.problems import IMMUTABLE, Problems, mark_repeats
from batkube.api.validation.rules import Object, ValidationRules, validate_metadata_update, with_metadata
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant

#: Kubernetes: api/scheduling/v1beta1/types.go, WorkloadMaxPodGroupTemplates.
_MAX_TEMPLATES = 8
_HIGHEST = 1_000_000_000
_SYSTEM_CLASSES = {"system-cluster-critical": 2 * _HIGHEST, "system-node-critical": 2 * _HIGHEST + 1000}


# Defaults


def set_priority_class_defaults(obj: dict[str, Any]) -> None:
    """Set the preemption policy PreemptLowerPriority."""
    fill_absent(obj, {"preemptionPolicy": "PreemptLowerPriority"})


# Validation


def _validate_priority_class(value: Object, problems: Problems) -> None:
    meta, number = value["metadata"], value.get("value", 0)
    check_built_in_metadata(meta, subdomain_name, False, problems)
    name = meta.get("name", "")
    if name.startswith("system-"):
        if wrong := _system_problem(name, number, bool(value.get("globalDefault"))):
            detail = "priority class names with 'system-' prefix are reserved for system use only. error: "
            problems.forbidden("metadata.name", detail + wrong)
    elif number > _HIGHEST:
        problems.forbidden("value", f"maximum allowed value of a user defined priority is {_HIGHEST}")
    if (policy := value.get("preemptionPolicy")) is not None:
        check_preemption_policy(policy, "preemptionPolicy", problems)


def _validate_priority_class_update(new: Object, old: Object, problems: Problems) -> None:
    validate_metadata_update(new, old, problems)
    if new.get("value", 0) != old.get("value", 0):
        problems.forbidden("value", "may not be changed in an update.")
    if new.get("preemptionPolicy") != old.get("preemptionPolicy"):
        problems.invalid("preemptionPolicy", new.get("preemptionPolicy"), IMMUTABLE)


def _system_problem(name: str, number: int, is_default: bool) -> str:
    if name not in _SYSTEM_CLASSES:
        return f"{name} is not a known system priority class"
    if number != _SYSTEM_CLASSES[name]:
        return f"value of {name} PriorityClass must be {_SYSTEM_CLASSES[name]}"
    return f"globalDefault of {name} PriorityClass must be false" if is_default else ""


def _validate_pod_group(value: Object, problems: Problems) -> None:
    spec = value.get("spec") or {}
    _validate_policy(spec.get("schedulingPolicy") or {}, "spec.schedulingPolicy", problems)
    if spec.get("parentCompositePodGroupName") is not None and spec.get("workloadRef") is None:
        problems.required("spec.workloadRef", "must be set when parentCompositePodGroupName is set")


def _validate_workload(value: Object, problems: Problems) -> None:
    templates = (value.get("spec") or {}).get("podGroupTemplates") or ()
    if len(templates) > _MAX_TEMPLATES:
        problems.too_many("spec.podGroupTemplates", len(templates), _MAX_TEMPLATES)
    names = [template.get("name", "") for template in templates]
    for number, (template, is_repeated) in enumerate(zip(templates, mark_repeats(names), strict=True)):
        path = f"spec.podGroupTemplates[{number}]"
        if is_repeated:
            problems.duplicate(f"{path}.name", template.get("name", ""))
        _validate_policy(template.get("schedulingPolicy") or {}, f"{path}.schedulingPolicy", problems)


def _validate_policy(policy: Object, path: str, problems: Problems) -> None:
    """Check that a policy is either basic or that of a gang (the union of PodGroupSchedulingPolicy)."""
    chosen = [name for name in ("basic", "gang") if policy.get(name) is not None]
    if len(chosen) != 1:
        found = f"{{{', '.join(chosen)}}}" if chosen else ""
        problems.invalid(path, found, "must specify exactly one of: `basic`, `gang`")
    elif chosen == ["gang"]:
        if not policy["gang"].get("minCount"):
            problems.required(f"{path}.gang.minCount")
        elif policy["gang"]["minCount"] < 1:
            problems.invalid(f"{path}.gang.minCount", policy["gang"]["minCount"], "must be greater than or equal to 1")


# Columns


def priority_class_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a PriorityClass."""
    return [
        value["metadata"].get("name", ""),
        value.get("value", 0),
        value.get("globalDefault", False),
        age(value, now),
        value.get("preemptionPolicy", ""),
    ]


#: The kinds with special behaviour, by storage name.
KINDS: Mapping[str, Kind] = {
    "priorityclasses.scheduling.k8s.io": Kind(
        defaults={"v1": set_priority_class_defaults},
        strategy=with_generation(),
        rules=ValidationRules(_validate_priority_class, _validate_priority_class_update),
        cells=priority_class_cells,
    ),
    "podgroups.scheduling.k8s.io": Kind(
        strategy=Strategy(protected_fields=PROTECTED_FIELDS, allow_unconditional_update=False),
        rules=ValidationRules(with_metadata(subdomain_name, True, _validate_pod_group)),
    ),
    "workloads.scheduling.k8s.io": Kind(
        strategy=Strategy(allow_unconditional_update=False),
        rules=ValidationRules(with_metadata(subdomain_name, True, _validate_workload)),
    ),
}
