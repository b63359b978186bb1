"""A manager applies an object in one version and later in another: omitted fields are removed, others are kept."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.direct import APPLY, Direct
from conformance.placeholders import Json

SCHEMA = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": {"type": "integer"}}}}}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Cluster",
        "names": {"plural": "things", "kind": "Thing"},
        "versions": [
            {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": SCHEMA}}
            for name in ("v1", "v1beta1")
        ],
    },
}


@pytest.fixture
def direct() -> Direct:
    server = Direct()
    server.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
    server.timers.pass_time(10)
    return server


def apply(direct: Direct, path: str, version: str, kind: str, labels: dict[str, str], **fields: Any) -> Json:  # noqa: ANN401
    name = path.rpartition("/")[2]
    body = {"apiVersion": version, "kind": kind, "metadata": {"name": name, "labels": labels}, **fields}
    answer = direct.ask("PATCH", path, body, content_type=APPLY, query={"fieldManager": "applier"})
    assert answer.status in (200, 201), answer.body
    return answer.body


def test_a_custom_resource_is_applied_in_another_version(direct: Direct) -> None:
    apply(direct, "/apis/example.com/v1/things/t", "example.com/v1", "Thing", {"old": "1"}, spec={"a": 1})

    later = apply(direct, "/apis/example.com/v1beta1/things/t", "example.com/v1beta1", "Thing", {"new": "1"})

    assert later["apiVersion"] == "example.com/v1beta1"
    assert later["metadata"]["labels"] == {"new": "1"}
    assert "a" not in later.get("spec", {})


def test_an_autoscaler_is_applied_in_another_version(direct: Direct) -> None:
    path = "/apis/autoscaling/{}/namespaces/default/horizontalpodautoscalers/h"
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    spec = {"minReplicas": 2, "maxReplicas": 5, "scaleTargetRef": target}
    kind = "HorizontalPodAutoscaler"
    apply(direct, path.format("v2"), "autoscaling/v2", kind, {"old": "1"}, spec=spec)

    spec = {"maxReplicas": 6, "scaleTargetRef": target, "targetCPUUtilizationPercentage": 60}
    later = apply(direct, path.format("v1"), "autoscaling/v1", kind, {}, spec=spec)

    assert later["spec"] == {**spec, "minReplicas": 1}
    assert not later["metadata"].get("labels")
