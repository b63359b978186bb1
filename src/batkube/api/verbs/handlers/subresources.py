"""The subresources of pods that are actions: binding and eviction.

`status`, `resize`, `finalize` and the like are ordinary updates, of which the strategies keep only the relevant fields.
"""

from __future__ import annotations

from typing import Any

from batkube.api.requests import statuses
from batkube.api.requests.options import eviction_options
from batkube.api.requests.statuses import Failure
from batkube.api.requests.writes import DeletionContext, Write, key_of
from batkube.api.verbs.storage.deletion import Deleter
from batkube.api.verbs.storage.registry import Registry, precondition_failed
from batkube.cluster import decisions
from batkube.cluster.decisions import Binding
from batkube.cluster.selectors import selector_of
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant, rfc3339

SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
_PDBS = "poddisruptionbudgets.policy"
_BUDGET_EXCEEDED = "Cannot evict pod as it would violate the pod's disruption budget."


def bind(registry: Registry, write: Write, binding: KubeObject) -> KubeObject:
    """Assign a pod to a node."""
    # Kubernetes: pkg/registry/core/pod/storage/storage.go, BindingREST.assignPod.
    _check_binding(binding)
    meta, name = binding.get("metadata", {}), write.name
    if not name:
        raise statuses.bad_request("Name parameter required.")
    entry = registry.store.entry("pods", write.key)
    if entry is None:
        raise statuses.not_found(write.resource, name)
    pod, version = entry
    _check_preconditions(write, meta, pod, version)
    if pod["metadata"].get("deletionTimestamp"):
        raise _binding_conflict(name, f"pod {name} is being deleted, cannot be assigned to a host")
    bound = pod["spec"].get("nodeName")
    if bound:
        raise _binding_conflict(name, f'pod {name} is already assigned to node "{bound}"')
    if pod["spec"].get("schedulingGates"):
        raise _binding_conflict(name, f"pod {name} has non-empty .spec.schedulingGates")
    if write.options.dry_run:
        return SUCCESS
    decision = Binding([write.key], [binding["target"]["name"]], meta.get("annotations") or {})
    decisions.bind(registry.store, decision, write.now, in_full=True)
    return SUCCESS


def _check_binding(binding: KubeObject) -> None:
    """Raise a 500, as kube-apiserver does, for a binding that does not name a node."""
    target = binding.get("target", {})
    kind = target.get("kind", "")
    if kind not in ("", "Node"):
        raise statuses.internal_error(f'target.kind: Unsupported value: "{kind}": supported values: "Node", "<empty>"')
    if not target.get("name"):
        raise statuses.internal_error("target.name: Required value")


def _check_preconditions(write: Write, meta: KubeObject, pod: KubeObject, version: int) -> None:
    uid, expected_version = meta.get("uid"), meta.get("resourceVersion")
    if uid and uid != pod["metadata"]["uid"]:
        problem = f"UID in precondition: {uid}, UID in object meta: {pod['metadata']['uid']}"
        raise precondition_failed(write.stored, write.key, write.name, problem, is_dry=write.options.dry_run)
    if expected_version and expected_version != str(version):
        problem = f"ResourceVersion in precondition: {expected_version}, ResourceVersion in object meta: {version}"
        raise precondition_failed(write.stored, write.key, write.name, problem, is_dry=write.options.dry_run)


def _binding_conflict(name: str, problem: str) -> Failure:
    message = f'Operation cannot be fulfilled on pods/binding "{name}": {problem}'
    return Failure(409, "Conflict", message, {"name": name, "kind": "pods/binding"})


# Eviction


def evict(registry: Registry, deleter: Deleter, write: Write, eviction: KubeObject) -> KubeObject:
    """Delete a pod unless a PodDisruptionBudget forbids it."""
    # Kubernetes: pkg/registry/core/pod/storage/eviction.go, EvictionREST.Create.
    registry.set_or_check_namespace(write, eviction)
    if eviction["metadata"].get("name", "") != write.name:
        raise statuses.bad_request("name in URL does not match name in Eviction object")
    pod = registry.store.get("pods", write.key)
    if pod is None:
        raise statuses.not_found(write.resource, write.name)
    options = eviction_options(eviction)
    options.dry_run = options.dry_run or write.options.dry_run
    by = DeletionContext(write.now, write.user, write.warnings)
    deleter.validate(write.resource, write.namespace, write.name, options, by)
    if not _ignores_budget(pod):
        budget = _disruption_budget_of(registry, write, pod)
        if budget is not None:
            _consume_disruption(registry, write, budget, pod, options.dry_run)
    if not options.dry_run:
        deleter.check_preconditions(
            write.resource, write.name, pod, registry.store.version_of("pods", write.key) or 0, options
        )
        _set_disruption_condition(registry, write)
        options.resource_version = None
    deleter.delete(write.resource, write.namespace, write.name, options, by)
    return SUCCESS


def _ignores_budget(pod: KubeObject) -> bool:
    return "deletionTimestamp" in pod["metadata"] or pod.get("status", {}).get("phase") in (
        "Succeeded",
        "Failed",
        "Pending",
    )


def _disruption_budget_of(registry: Registry, write: Write, pod: KubeObject) -> KubeObject | None:
    labels = pod["metadata"].get("labels")
    budgets = [
        budget
        for _, budget in registry.store.in_namespace(_PDBS, write.namespace)
        if selector_of(budget["spec"].get("selector")).matches(labels)
    ]
    if len(budgets) > 1:
        raise statuses.internal_error(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )
    return budgets[0] if budgets else None


def _is_ready(pod: KubeObject) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _consume_disruption(registry: Registry, write: Write, budget: KubeObject, pod: KubeObject, dry_run: bool) -> None:
    """Consume one disruption of the budget; raises a 429 if none is left. Unhealthy pods may not need one."""
    status, spec, name = budget.get("status", {}), budget["spec"], budget["metadata"]["name"]
    if not _is_ready(pod):
        healthy = (
            status.get("currentHealthy", 0) >= status.get("desiredHealthy", 0) and status.get("desiredHealthy", 0) > 0
        )
        if spec.get("unhealthyPodEvictionPolicy") == "AlwaysAllow" or healthy:
            return
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        cause = f"The disruption budget {name} is still being processed by the server."
        raise _too_many_requests(cause, retry=10)
    if status.get("disruptionsAllowed", 0) < 0:
        raise statuses.forbidden(write.resource, write.name, "pdb disruptions allowed is negative")
    if status.get("disruptionsAllowed", 0) == 0:
        cause = (
            f"The disruption budget {name} needs {status.get('desiredHealthy', 0)} healthy pods and has "
            f"{status.get('currentHealthy', 0)} currently"
        )
        raise _too_many_requests(cause)
    if not dry_run:
        disrupted = {**status.get("disruptedPods", {}), write.name: rfc3339(write.now)}
        updated = {**status, "disruptionsAllowed": status["disruptionsAllowed"] - 1, "disruptedPods": disrupted}
        updated["conditions"] = _disruption_allowed_conditions(updated, write.now)
        registry.store.set_statuses(_PDBS, [key_of(write.namespace, name)], updated, write.now)


def _disruption_allowed_conditions(status: KubeObject, now: Instant) -> list[KubeObject]:
    """Return the conditions of a budget after a disruption."""
    # Kubernetes: pkg/apis/policy, component-helpers/apps/poddisruptionbudget, UpdateDisruptionAllowedCondition.
    allowed = status["disruptionsAllowed"] > 0
    condition = {
        "type": "DisruptionAllowed",
        "status": "True" if allowed else "False",
        "observedGeneration": status.get("observedGeneration", 0),
        "lastTransitionTime": rfc3339(now),
        "reason": "SufficientPods" if allowed else "InsufficientPods",
        "message": "",
    }
    others = [each for each in status.get("conditions", []) if each["type"] != "DisruptionAllowed"]
    return [*others, condition]


def _too_many_requests(cause: str, retry: int = 0) -> Failure:
    details: dict[str, Any] = {"causes": [{"reason": "DisruptionBudget", "message": cause}]}
    if retry:
        details["retryAfterSeconds"] = retry
    return Failure(429, "TooManyRequests", _BUDGET_EXCEEDED, details)


def _set_disruption_condition(registry: Registry, write: Write) -> None:
    """Set the pod's condition DisruptionTarget."""
    pod = registry.store.get("pods", write.key)
    assert pod is not None
    status = pod.get("status", {})
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": rfc3339(write.now),
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    before = status.get("conditions", [])
    if any(each["type"] == "DisruptionTarget" and each["status"] == "True" for each in before):
        return
    conditions = [each for each in before if each["type"] != "DisruptionTarget"]
    registry.store.set_statuses("pods", [write.key], {**status, "conditions": [*conditions, condition]}, write.now)
