"""Pod security levels of namespaces."""

from __future__ import annotations

import pytest
from tests.api.admission.admission_cluster import ACTIVE, Cluster, made, pod, resource_of

from batkube.api.requests.statuses import Failure
from batkube.cluster.store import Key
from batkube.kernel.instants import START


def set_security_labels(cluster: Cluster, **labels: str) -> None:
    """Set the pod security labels of the namespace."""
    marked = {f"pod-security.kubernetes.io/{name}": level for name, level in labels.items()}
    cluster.store.replace("namespaces", [Key("n")], [{**ACTIVE, "metadata": {"name": "n", "labels": marked}}], START)


def test_without_labels_all_pods_are_allowed(cluster: Cluster) -> None:
    assert cluster.write(pod(hostNetwork=True, hostPID=True))["spec"]["hostPID"] is True


def test_the_pod_security_level_of_the_namespace_is_enforced(cluster: Cluster) -> None:
    set_security_labels(cluster, enforce="baseline")

    cluster.write(pod())

    assert cluster.refusal(pod(hostNetwork=True)) == (
        'pods "p" is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)'
    )


def test_the_restricted_level_rejects_a_plain_pod(cluster: Cluster) -> None:
    set_security_labels(cluster, enforce="restricted")
    security = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }

    cluster.write(pod(containers=[{"name": "c", "image": "i", "securityContext": security}]))

    assert cluster.refusal(pod()) == (
        'pods "p" is forbidden: violates PodSecurity "restricted:latest": '
        'allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false), '
        'unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]), '
        'runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true), '
        'seccompProfile (pod or container "c" must set securityContext.seccompProfile.type to "RuntimeDefault" or '
        '"Localhost")'
    )


def test_a_workload_whose_pods_would_be_rejected_gets_a_warning(cluster: Cluster) -> None:
    set_security_labels(cluster, enforce="baseline")
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod(hostIPC=True)["spec"]}
    value = made("Deployment", "d", "apps/v1", spec={"selector": {"matchLabels": {"a": "b"}}, "template": template})
    warnings: list[str] = []
    attempt = cluster.admission.new_request(
        resource_of(value), value, None, START, namespace="n", name="d", warnings=warnings
    )

    cluster.admission.validate(attempt)

    assert warnings == ['would violate PodSecurity "baseline:latest": host namespaces (hostIPC=true)']


def test_an_unknown_pod_security_level_is_rejected(cluster: Cluster) -> None:
    value = made("Namespace", "x")
    value["metadata"]["labels"] = {"pod-security.kubernetes.io/enforce": "strict"}

    with pytest.raises(Failure, match="must be one of privileged, baseline, restricted") as refused:
        cluster.write(value)

    assert refused.value.code == 422
