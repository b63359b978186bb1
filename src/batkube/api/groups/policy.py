"""Disruption budgets, priority classes and leases: small kinds that schedulers live on.

Kubernetes: pkg/apis/{policy,scheduling,coordination}/validation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from batkube.api.checks.go_values import go_struct
from batkube.api.checks.metadata import (
    check_built_in_metadata,
    check_conditions,
    check_metadata,
    check_metadata_update,
    check_selector,
)
from batkube.api.checks.names import Verdict, config_key, qualified_name, subdomain_name
from batkube.api.checks.portions import check_at_most_all, check_portion
from batkube.api.checks.problems import IMMUTABLE, Problems
from batkube.api.checks.rules import Object, Rules, metadata_update
from batkube.api.groups.core.pods.spec import check_preemption_policy
from batkube.kernel.numbers import int_of

_EVICTION_POLICIES = ("AlwaysAllow", "IfHealthyBudget")
_HIGHEST = 1_000_000_000
_SYSTEM_CLASSES = {"system-cluster-critical": 2 * _HIGHEST, "system-node-critical": 2 * _HIGHEST + 1000}
_OLDEST = "OldestEmulationVersion"
_is_version = re.compile(r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)([-+][0-9A-Za-z.+-]+)?").fullmatch


def _budget(value: Object, problems: Problems) -> None:
    spec = value.get("spec", {})
    fields = [field for field in ("minAvailable", "maxUnavailable") if spec.get(field) is not None]
    if len(fields) == 2:
        shown = go_struct("policy.PodDisruptionBudgetSpec", spec)
        problems.invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set")
    for field in fields:
        check_portion(spec[field], f"spec.{field}", problems)
        check_at_most_all(spec[field], f"spec.{field}", problems)
    check_selector(spec.get("selector"), "spec.selector", problems)
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in _EVICTION_POLICIES:
        problems.not_supported("spec.unhealthyPodEvictionPolicy", policy, _EVICTION_POLICIES)


def _update_budget(new: Object, old: Object, problems: Problems) -> None:
    _budget(new, problems)


def _budget_status(new: Object, old: Object, problems: Problems) -> None:
    status = new.get("status", {})
    check_conditions(status.get("conditions") or (), "status.conditions", problems)
    for field in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"):
        problems.not_negative(f"status.{field}", status.get(field, 0))


def _priority_class(value: Object, problems: Problems) -> None:
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


def _system_problem(name: str, number: int, is_default: bool) -> str:
    if name not in _SYSTEM_CLASSES:
        return f"{name} is not a known system priority class"
    if number != _SYSTEM_CLASSES[name]:
        return f"value of {name} PriorityClass must be {_SYSTEM_CLASSES[name]}"
    return f"globalDefault of {name} PriorityClass must be false" if is_default else ""


def _update_priority_class(new: Object, old: Object, problems: Problems) -> None:
    metadata_update(new, old, problems)
    if new.get("value", 0) != old.get("value", 0):
        problems.forbidden("value", "may not be changed in an update.")
    if new.get("preemptionPolicy") != old.get("preemptionPolicy"):
        problems.invalid("preemptionPolicy", new.get("preemptionPolicy"), IMMUTABLE)


def _check_lease_spec(value: Object, problems: Problems) -> None:
    spec: Mapping[str, Any] = value.get("spec", {})
    seconds, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if seconds is not None and seconds <= 0:
        problems.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0")
    if transitions is not None:
        problems.not_negative("spec.leaseTransitions", transitions)
    strategy = spec.get("strategy")
    if strategy is not None:
        _check_strategy(strategy, problems)
    if spec.get("preferredHolder") and not strategy:
        problems.forbidden("spec.preferredHolder", "may only be specified if `strategy` is defined")


def _check_strategy(strategy: str, problems: Problems) -> None:
    if "/" in strategy:
        problems.all_invalid("spec.strategy.strategy", strategy, qualified_name(strategy))
    elif strategy != _OLDEST:
        problems.not_supported("spec.strategy.strategy", strategy, (_OLDEST,))


def _lease(value: Object, problems: Problems) -> None:
    check_metadata(value["metadata"], subdomain_name, True, problems)
    _check_lease_spec(value, problems)


def _update_lease(new: Object, old: Object, problems: Problems) -> None:
    check_metadata_update(new["metadata"], old["metadata"], problems)
    _check_lease_spec(new, problems)


def _candidate_name(name: str, prefix: bool) -> Verdict:
    return config_key(name)


def _check_candidate_spec(value: Object, problems: Problems) -> None:
    spec = value.get("spec", {})
    emulated, binary, strategy = (spec.get(field, "") for field in ("emulationVersion", "binaryVersion", "strategy"))
    if not spec.get("leaseName"):
        problems.required("spec.leaseName")
    if emulated and not _is_version(emulated):
        problems.invalid("spec.emulationVersion", emulated, "must be a valid semantic version")
    if not binary:
        problems.required("spec.binaryVersion")
    elif not _is_version(binary):
        problems.invalid("spec.binaryVersion", binary, "must be a valid semantic version")
    if emulated and binary and _order(binary) < _order(emulated):
        problems.invalid("spec.binaryVersion", binary, "must be greater than or equal to `emulationVersion`")
    if not strategy:
        problems.required("spec.strategy")
        return
    if strategy == _OLDEST and _order(emulated) == (0, 0, 0):
        problems.required("spec.emulationVersion", f"must be specified when `strategy` is '{_OLDEST}'")
    _check_strategy(strategy, problems)


def _order(version: str) -> tuple[int, int, int]:
    match = _is_version(version)
    first, second, third = (int_of(part) or 0 for part in match.groups()) if match else (0, 0, 0)
    return first, second, third


def _candidate(value: Object, problems: Problems) -> None:
    check_metadata(value["metadata"], _candidate_name, True, problems)
    _check_candidate_spec(value, problems)


def _update_candidate(new: Object, old: Object, problems: Problems) -> None:
    check_metadata_update(new["metadata"], old["metadata"], problems)
    _check_candidate_spec(new, problems)
    problems.unchanged("spec.leaseName", new["spec"].get("leaseName"), old["spec"].get("leaseName"))


RULES = {
    "poddisruptionbudgets.policy": Rules(_budget, _update_budget, _budget_status),
    "priorityclasses.scheduling.k8s.io": Rules(_priority_class, _update_priority_class),
    "leases.coordination.k8s.io": Rules(_lease, _update_lease),
    "leasecandidates.coordination.k8s.io": Rules(_candidate, _update_candidate),
}
