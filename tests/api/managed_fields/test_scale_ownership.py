"""Ownership of the replicas when a scale is written."""

from __future__ import annotations

import pytest
from tests.api.managed_fields.applied_objects import DEPLOYMENTS, START, TABLE, apply

from batkube.api.managed_fields.scale_ownership import ScaleOwnership
from batkube.api.managed_fields.server_side_apply import Conflicts
from batkube.cluster.kinds import Resource
from batkube.cluster.store import KubeObject

SCALES = Resource(
    group="autoscaling",
    version="v1",
    kind="Scale",
    plural="scales",
    singular="scale",
    namespaced=True,
    verbs=(),
    schema=TABLE.definition_of("autoscaling", "v1", "Scale"),
)


def scale(replicas: int) -> KubeObject:
    return {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": "d", "uid": "u"},
        "spec": {"replicas": replicas},
    }


def deployment(replicas: int) -> KubeObject:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {"replicas": replicas, "paused": True},
    }


def test_scaling_transfers_ownership_of_the_replicas() -> None:
    live = apply(deployment(1), kind=DEPLOYMENTS)
    ownership = ScaleOwnership(live, DEPLOYMENTS, SCALES)
    entries = ownership.update(scale(3), scale(1), manager="hpa", now=START)
    assert [(entry["manager"], entry["fieldsV1"]["f:spec"]) for entry in entries] == [
        ("m1", {"f:paused": {}}),
        ("hpa", {"f:replicas": {}}),
    ]
    assert entries[1]["subresource"] == "scale"
    assert entries[1]["apiVersion"] == "apps/v1"
    assert "time" not in entries[1]


def test_applying_a_scale_conflicts_with_the_owner_of_the_replicas() -> None:
    ownership = ScaleOwnership(apply(deployment(1), kind=DEPLOYMENTS), DEPLOYMENTS, SCALES)
    with pytest.raises(Conflicts, match=r'conflict with "m1": .spec.replicas'):
        ownership.apply(scale(3), scale(1), manager="hpa", now=START, force=False)
    outcome = ownership.apply(scale(3), scale(1), manager="hpa", now=START, force=True)
    assert outcome.object["spec"] == {"replicas": 3}
    assert {entry["manager"] for entry in outcome.entries} == {"m1", "hpa"}


def test_an_applier_that_keeps_its_replicas_keeps_its_entry() -> None:
    live = apply(deployment(1), kind=DEPLOYMENTS)
    entries = ScaleOwnership(live, DEPLOYMENTS, SCALES).update(scale(1), scale(1), manager="hpa", now=START)
    assert entries == live["metadata"]["managedFields"]


def test_custom_kinds_can_have_another_replicas_path() -> None:
    path = ("f:spec", "f:workers", "f:count")
    assert path == ("f:spec", "f:workers", "f:count")
    live = apply(deployment(1), kind=DEPLOYMENTS)
    assert ScaleOwnership(live, DEPLOYMENTS, SCALES, {"apps/v1": path}).scale_entries() == []
