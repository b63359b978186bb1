"""PodDisruptionBudgets. Kubernetes: pkg/apis/policy and pkg/registry/policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.groups.kind_model.kind import Kind
from batkube.api.groups.kind_model.strategy import PROTECTED_FIELDS, SPEC, with_generation
from batkube.api.printing.ages import age
from batkube.api.validation.go_values import go_struct
from batkube.api.validation.int_or_percent import check_at_most_100_percent, check_positive_int_or_percent
from batkube.api.validation.metadata import check_conditions, check_selector
from batkube.api.validation.problems import Problems
from batkube.api.validation.rules import Object, ValidationRules
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant

_EVICTION_POLICIES = ("AlwaysAllow", "IfHealthyBudget")


# Validation


def _validate_budget(value: Object, problems: Problems) -> None:
    spec = value.get("spec", {})
    fields = [field for field in ("minAvailable", "maxUnavailable") if spec.get(field) is not None]
    if len(fields) == 2:
        go_text = go_struct("policy.PodDisruptionBudgetSpec", spec)
        problems.invalid("spec", go_text, "minAvailable and maxUnavailable cannot be both set")
    for field in fields:
        check_positive_int_or_percent(spec[field], f"spec.{field}", problems)
        check_at_most_100_percent(spec[field], f"spec.{field}", problems)
    check_selector(spec.get("selector"), "spec.selector", problems)
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in _EVICTION_POLICIES:
        problems.not_supported("spec.unhealthyPodEvictionPolicy", policy, _EVICTION_POLICIES)


def _validate_budget_update(new: Object, old: Object, problems: Problems) -> None:
    _validate_budget(new, problems)


def _validate_budget_status_update(new: Object, old: Object, problems: Problems) -> None:
    status = new.get("status", {})
    check_conditions(status.get("conditions") or (), "status.conditions", problems)
    for field in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"):
        problems.not_negative(f"status.{field}", status.get(field, 0))


# Columns


def disruption_budget_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a PodDisruptionBudget."""
    spec = value.get("spec", {})
    return [
        value["metadata"].get("name", ""),
        *(str(spec[bound]) if spec.get(bound) is not None else "N/A" for bound in ("minAvailable", "maxUnavailable")),
        value.get("status", {}).get("disruptionsAllowed", 0),
        age(value, now),
    ]


#: The kinds with special behaviour, by storage name.
KINDS: Mapping[str, Kind] = {
    "poddisruptionbudgets.policy": Kind(
        strategy=with_generation(SPEC, keeps=PROTECTED_FIELDS, unconditional=False),
        rules=ValidationRules(
            _validate_budget, _validate_budget_update, _validate_budget_status_update, covers_metadata=False
        ),
        cells=disruption_budget_cells,
    ),
}
