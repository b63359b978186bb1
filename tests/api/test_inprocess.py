"""Writes of components to many objects at once, through the API."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from batkube.cluster.object_meta import with_metadata
from batkube.cluster.store import Batch, Key, KubeObject
from batkube.kernel.instants import Instant, rfc3339, rfc3339_micro, seconds
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


def ownership_times(leases: Iterable[KubeObject]) -> list[str]:
    return [entry["time"] for lease in leases for entry in lease["metadata"]["managedFields"]]


def without_ownership_times(leases: Iterable[KubeObject]) -> list[KubeObject]:
    return [
        with_metadata(lease, managedFields=[{**entry, "time": ""} for entry in lease["metadata"]["managedFields"]])
        for lease in leases
    ]


def test_a_batch_of_renewed_leases_equals_single_updates_except_for_the_time_of_ownership() -> None:
    """A batch records no field ownership (docs/reference/api-differences.md); the real server updates the time."""
    servers = batched, single = Direct(), Direct()
    now = batched.api.watches.now()
    later = Instant(now + seconds(10))
    batches: list[Batch] = []
    for server in servers:
        create_leases(server, now)
    batched.store.subscribe(LEASE, lambda batch, _: batches.append(batch))

    batched.api.client("kubelet").update_all(LEASE, renewed(batched, later), later)
    for lease in renewed(single, later):
        single.api.client("kubelet").update(LEASE, lease, later)

    assert [list(batch.keys) for batch in batches] == [[f"{NAMESPACE}/a", f"{NAMESPACE}/b"]]
    in_batch, one_by_one = (list(server.store.all(LEASE).values()) for server in servers)
    assert without_ownership_times(in_batch) == without_ownership_times(one_by_one)
    assert ownership_times(in_batch) == [rfc3339(now)] * 2
    assert ownership_times(one_by_one) == [rfc3339(later)] * 2


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
