"""What `kubectl get` prints of role bindings, certificates, admission and flow control.

Kubernetes: pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.printing.ages import age, human_duration
from batkube.api.printing.texts import NONE, UNSET, go_selector
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Instant


def role_binding_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a RoleBinding or ClusterRoleBinding."""
    role = value.get("roleRef", {})
    names: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in value.get("subjects") or ():
        kind, name = subject.get("kind", ""), subject.get("name", "")
        if kind in names:
            names[kind].append(f"{subject.get('namespace', '')}/{name}" if kind == "ServiceAccount" else name)
    return [
        value["metadata"].get("name", ""),
        f"{role.get('kind', '')}/{role.get('name', '')}",
        age(value, now),
        *(", ".join(part) for part in names.values()),
    ]


def certificate_request_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a CertificateSigningRequest."""
    spec = value.get("spec", {})
    wanted = spec.get("expirationSeconds")
    return [
        value["metadata"].get("name", ""),
        age(value, now),
        spec.get("signerName") or NONE,
        spec.get("username", ""),
        NONE if wanted is None else human_duration(wanted * NANOSECONDS_PER_SECOND),
        _certificate_status(value.get("status", {})),
    ]


def _certificate_status(status: Mapping[str, Any]) -> str:
    types = {condition.get("type") for condition in status.get("conditions") or ()}
    words = ["Denied" if "Denied" in types else "Approved" if "Approved" in types else "Pending"]
    if "Failed" in types:
        words.append("Failed")
    if status.get("certificate"):
        words.append("Issued")
    return ",".join(words)


def trust_bundle_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a ClusterTrustBundle."""
    return [value["metadata"].get("name", ""), value.get("spec", {}).get("signerName") or NONE]


def pod_certificate_request_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a PodCertificateRequest."""
    spec, state = value.get("spec", {}), "Pending"
    for condition in value.get("status", {}).get("conditions") or ():
        if condition.get("type") in ("Issued", "Denied", "Failed"):
            state = condition["type"]
    words = (spec.get(field, "") for field in ("podName", "serviceAccountName", "nodeName", "signerName"))
    return [value["metadata"].get("name", ""), *words, state]


def webhook_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a mutating or validating webhook configuration."""
    return [value["metadata"].get("name", ""), len(value.get("webhooks") or ()), age(value, now)]


def validating_policy_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a ValidatingAdmissionPolicy."""
    return _policy_cells(value, "validations", now)


def mutating_policy_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a MutatingAdmissionPolicy."""
    return _policy_cells(value, "mutations", now)


def _policy_cells(value: KubeObject, rules: str, now: Instant) -> list[Any]:
    spec = value.get("spec", {})
    kind = spec.get("paramKind")
    text = UNSET if kind is None else f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}"
    return [value["metadata"].get("name", ""), len(spec.get(rules) or ()), text, age(value, now)]


def policy_binding_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a binding of an admission policy, validating or mutating."""
    spec = value.get("spec", {})
    parameter, text = spec.get("paramRef") or {}, UNSET
    if parameter.get("name"):
        text = f"{parameter.get('namespace') or '*'}/{parameter['name']}"
    elif parameter.get("selector") is not None:
        text = go_selector(parameter["selector"])
    return [value["metadata"].get("name", ""), spec.get("policyName", ""), text, age(value, now)]


def flow_schema_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a FlowSchema."""
    spec = value.get("spec", {})
    conditions = value.get("status", {}).get("conditions") or ()
    method = spec.get("distinguisherMethod")
    return [
        value["metadata"].get("name", ""),
        spec.get("priorityLevelConfiguration", {}).get("name", ""),
        spec.get("matchingPrecedence", 0),
        NONE if method is None else method.get("type", ""),
        age(value, now),
        next((part.get("status", "") for part in conditions if part.get("type") == "Dangling"), "?"),
    ]


def flow_schema_order(value: KubeObject) -> tuple[int, str]:
    """Return what a list of FlowSchemas is sorted by: the one that is asked first comes first."""
    return value.get("spec", {}).get("matchingPrecedence", 0), value["metadata"].get("name", "")


def priority_level_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a PriorityLevelConfiguration."""
    spec = value.get("spec", {})
    limited = spec.get("limited")
    shares: Any = NONE if limited is None else limited.get("nominalConcurrencyShares") or 0
    queuing = (limited or {}).get("limitResponse", {}).get("queuing")
    fields = ("queues", "handSize", "queueLengthLimit")
    queue_cells: list[Any] = [NONE if queuing is None else queuing.get(field, 0) for field in fields]
    return [value["metadata"].get("name", ""), spec.get("type", ""), shares, *queue_cells, age(value, now)]
