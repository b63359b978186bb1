"""RuntimeClasses. Kubernetes: pkg/apis/node and pkg/registry/node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.groups.core.deprecated_node_labels import DEPRECATED_LABELS
from batkube.api.groups.core.pods.validation.scheduling import check_tolerations
from batkube.api.groups.kind_model.kind import Kind, create_warnings_on_update
from batkube.api.groups.kind_model.strategy import CONDITIONAL_UPSERT
from batkube.api.printing.ages import age
from batkube.api.validation.go_values import go_struct
from batkube.api.validation.metadata import check_labels, check_metadata, check_metadata_update
from batkube.api.validation.names import label_name, subdomain_name
from batkube.api.validation.problems import IMMUTABLE, Problems
from batkube.api.validation.quantities import check_container_resource, check_resource_requirements
from batkube.api.validation.rules import Object, ValidationRules, create_then_update
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant

# Validation


def _validate_runtime_class(value: Object, problems: Problems) -> None:
    check_metadata(value["metadata"], subdomain_name, False, problems)
    handler = value.get("handler", "")
    problems.all_invalid("handler", handler, label_name(handler, False))
    if (overhead := value.get("overhead")) is not None:
        limits = {"limits": overhead.get("podFixed") or {}}
        check_resource_requirements(limits, check_container_resource, frozenset(), "overhead", problems)
    if (scheduling := value.get("scheduling")) is not None:
        check_labels(scheduling.get("nodeSelector") or {}, "scheduling.nodeSelector", problems)
        _check_scheduling_tolerations(scheduling.get("tolerations") or [], problems)


def _check_scheduling_tolerations(tolerations: list[dict[str, Any]], problems: Problems) -> None:
    check_tolerations(tolerations, "scheduling.tolerations.tolerations", problems)
    seen: set[tuple[Any, ...]] = set()
    for index, toleration in enumerate(tolerations):
        key = tuple(toleration.get(field, "") for field in ("key", "operator", "value", "effect"))
        if key in seen:
            go_text = go_struct("core.Toleration", toleration)
            problems.duplicate(f"scheduling.tolerations[{index}]", go_text)
        seen.add(key)


def _validate_runtime_class_update(new: Object, old: Object, problems: Problems) -> None:
    check_metadata_update(new["metadata"], old["metadata"], problems)
    if new.get("handler", "") != old.get("handler", ""):
        problems.invalid("handler", new.get("handler", ""), IMMUTABLE)


# Columns


def runtime_class_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a RuntimeClass."""
    return [value["metadata"].get("name", ""), value.get("handler", ""), age(value, now)]


# Warnings


def runtime_class_warnings(runtime_class: Mapping[str, Any]) -> list[str]:
    """Return the warnings about deprecated node labels in a RuntimeClass's scheduling."""
    chosen = (runtime_class.get("scheduling") or {}).get("nodeSelector") or ()
    return [
        f"scheduling.nodeSelector: {DEPRECATED_LABELS[label]}" for label in sorted(chosen) if label in DEPRECATED_LABELS
    ]


#: The kinds with special behaviour, by storage name.
KINDS: Mapping[str, Kind] = {
    "runtimeclasses.node.k8s.io": Kind(
        strategy=CONDITIONAL_UPSERT,
        rules=ValidationRules(
            _validate_runtime_class, create_then_update(_validate_runtime_class, _validate_runtime_class_update)
        ),
        cells=runtime_class_cells,
        warnings_on_create=runtime_class_warnings,
        warnings_on_update={"": create_warnings_on_update(runtime_class_warnings)},
    ),
}
