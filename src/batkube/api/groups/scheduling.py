"""PriorityClasses. Kubernetes: pkg/apis/scheduling and pkg/registry/scheduling."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.groups.core.pods.validation.spec import check_preemption_policy
from batkube.api.groups.kind_model.defaults import fill_absent
from batkube.api.groups.kind_model.kind import Kind
from batkube.api.groups.kind_model.strategy import with_generation
from batkube.api.printing.ages import age
from batkube.api.validation.metadata import check_built_in_metadata
from batkube.api.validation.names import subdomain_name
from batkube.api.validation.problems import IMMUTABLE, Problems
from batkube.api.validation.rules import Object, ValidationRules, validate_metadata_update
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant

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
}
