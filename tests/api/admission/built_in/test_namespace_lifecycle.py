"""Namespaces: creations in missing or terminating ones, and protected ones."""

from __future__ import annotations

import pytest
from tests.api.admission.admission_cluster import ACTIVE, Cluster, made, pod, resource_of

from batkube.api.admission.built_in.namespace_lifecycle import check_deletable
from batkube.api.requests.statuses import Failure
from batkube.cluster.store import Key
from batkube.kernel.instants import START


def test_objects_cannot_be_created_in_a_missing_namespace(cluster: Cluster) -> None:
    cluster.store.delete("namespaces", [Key("n")], START)

    with pytest.raises(Failure) as refused:
        cluster.write(pod())

    assert (refused.value.code, refused.value.message) == (404, 'namespaces "n" not found')


def test_a_terminating_namespace_accepts_updates_but_no_creations(cluster: Cluster) -> None:
    live = cluster.write(pod())
    terminating = {**ACTIVE, "status": {"phase": "Terminating"}}
    cluster.store.replace("namespaces", [Key("n")], [terminating], START)

    cluster.write(pod(), old=live)

    expected = "unable to create new content in namespace n because it is being terminated"
    assert cluster.refusal(pod()) == f'pods "p" is forbidden: {expected}'


def test_system_namespaces_cannot_be_deleted() -> None:
    namespaces = resource_of(made("Namespace", "x"))

    check_deletable(namespaces, "mine")
    with pytest.raises(Failure, match="this namespace may not be deleted"):
        check_deletable(namespaces, "kube-system")
