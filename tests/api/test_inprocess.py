"""Writes of components to many objects at once, through the API."""

from __future__ import annotations

from typing import Any

from batkube.cluster.store import Batch, Key
from batkube.kernel.instants import Instant, rfc3339_micro, seconds
from conformance.direct import Direct

LEASE, NAMESPACE = "leases.coordination.k8s.io", "kube-node-lease"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"


def create_leases(direct: Direct, now: Instant) -> None:
    client = direct.api.client("kubelet")
    for name in "ab":
        spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": rfc3339_micro(now)}
        metadata = {"name": name, "namespace": NAMESPACE}
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
        client.create(LEASE, lease, now)


def renewed(direct: Direct, now: Instant) -> list[dict[str, Any]]:
    leases = direct.store.all(LEASE).values()
    return [{**lease, "spec": {**lease["spec"], "renewTime": rfc3339_micro(now)}} for lease in leases]


def test_leases_renewed_in_a_batch_equal_leases_updated_one_by_one(direct: Direct) -> None:
    other, now = Direct(), direct.api.watches.now()
    later = Instant(now + seconds(10))
    batches: list[Batch] = []
    for server in (direct, other):
        create_leases(server, now)
    direct.store.subscribe(LEASE, lambda batch, _: batches.append(batch))

    direct.api.client("kubelet").update_all(LEASE, renewed(direct, later), later)
    for lease in renewed(other, later):
        other.api.client("kubelet").update(LEASE, lease, later)

    assert [list(batch.keys) for batch in batches] == [[f"{NAMESPACE}/a", f"{NAMESPACE}/b"]]
    without_uid = [
        [{**lease, "metadata": {**lease["metadata"], "uid": ""}} for lease in server.store.all(LEASE).values()]
        for server in (direct, other)
    ]
    assert without_uid[0] == without_uid[1]


def test_an_admission_policy_sees_each_renewal_and_a_rejected_lease_is_not_renewed(direct: Direct) -> None:
    now = direct.api.watches.now()
    later = Instant(now + seconds(10))
    create_leases(direct, now)
    rule = {
        "operations": ["UPDATE"],
        "apiGroups": ["coordination.k8s.io"],
        "apiVersions": ["v1"],
        "resources": ["leases"],
    }
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "object.metadata.name != 'a'"}],
    }
    version = "admissionregistration.k8s.io/v1"
    policy = {"apiVersion": version, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "p"}, "spec": spec}
    binding = {
        **policy,
        "kind": "ValidatingAdmissionPolicyBinding",
        "spec": {"policyName": "p", "validationActions": ["Deny"]},
    }
    assert direct.ask("POST", POLICIES, policy).status == 201
    assert direct.ask("POST", BINDINGS, binding).status == 201

    direct.api.client("kubelet").update_all(LEASE, renewed(direct, later), later)

    times = {name: direct.store.objects(LEASE, [Key(f"{NAMESPACE}/{name}")])[0]["spec"]["renewTime"] for name in "ab"}
    assert times == {"a": rfc3339_micro(now), "b": rfc3339_micro(later)}
