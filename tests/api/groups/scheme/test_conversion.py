"""Conversion between versions: a round trip loses nothing."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from batkube.api.groups.scheme.conversion import convert_version
from batkube.api.groups.scheme.defaulting import apply_defaults
from batkube.cluster.kinds import KindTable, Resource

TABLE = KindTable.builtin()


def resource(group: str, version: str, plural: str) -> Resource:
    match = TABLE.resource(group, version, plural)
    assert match is not None
    return match


V1 = resource("autoscaling", "v1", "horizontalpodautoscalers")
V2 = resource("autoscaling", "v2", "horizontalpodautoscalers")
CORE = resource("", "v1", "events")
EVENTS = resource("events.k8s.io", "v1", "events")

QUANTITIES = st.sampled_from(["1", "500m", "100Mi"])
SELECTORS = st.sampled_from(
    [{"matchLabels": {"a": "<&>", "b": "c"}}, {"matchExpressions": [{"key": "k", "operator": "Exists"}]}]
)
IDENTIFIERS = st.fixed_dictionaries({"name": st.sampled_from(["p", "q"])}, optional={"selector": SELECTORS})
VALUES = QUANTITIES.map(lambda text: {"type": "Value", "value": text})
AVERAGES = QUANTITIES.map(lambda text: {"type": "AverageValue", "averageValue": text})
PERCENTS = st.integers(1, 99).map(lambda percent: {"type": "Utilization", "averageUtilization": percent})
OBJECT = {"kind": "Service", "name": "s", "apiVersion": "v1"}

METRICS = st.one_of(
    st.builds(lambda t: {"type": "Resource", "resource": {"name": "memory", "target": t}}, PERCENTS | AVERAGES),
    st.builds(lambda m, t: {"type": "Pods", "pods": {"metric": m, "target": t}}, IDENTIFIERS, AVERAGES),
    st.builds(
        lambda m, t: {"type": "External", "external": {"metric": m, "target": t}}, IDENTIFIERS, VALUES | AVERAGES
    ),
    st.builds(
        lambda m, t: {"type": "Object", "object": {"describedObject": OBJECT, "metric": m, "target": t}},
        IDENTIFIERS,
        VALUES,
    ),
    st.builds(
        lambda t: {"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "c", "target": t}},
        PERCENTS | AVERAGES,
    ),
)
CURRENT = QUANTITIES.map(
    lambda text: {"type": "Resource", "resource": {"name": "memory", "current": {"averageValue": text}}}
)
CONDITIONS = st.just([{"type": "AbleToScale", "status": "True", "lastTransitionTime": "2000-01-01T00:00:00Z"}])


def scaler(spec: dict[str, Any], status: dict[str, Any]) -> dict[str, Any]:
    target = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}
    value = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "h", "annotations": {"mine": "1"}},
        "spec": {"scaleTargetRef": target, "maxReplicas": 5, **copy.deepcopy(spec)},
        "status": {"desiredReplicas": 0, "currentMetrics": None, **copy.deepcopy(status)},
    }
    apply_defaults(V2, value)
    return value


@settings(max_examples=100, deadline=None)
@given(
    st.fixed_dictionaries(
        {"metrics": st.lists(METRICS, min_size=1, max_size=4)},
        optional={"behavior": st.just({"scaleDown": {"selectPolicy": "Min"}}), "minReplicas": st.integers(1, 4)},
    ),
    st.fixed_dictionaries({}, optional={"currentMetrics": st.lists(CURRENT, min_size=1), "conditions": CONDITIONS}),
)
def test_an_autoscaler_survives_a_round_trip_through_v1(spec: dict[str, Any], status: dict[str, Any]) -> None:
    original = scaler(spec, status)
    before = copy.deepcopy(original)

    older = convert_version(original, V2, V1)
    again = convert_version(older, V1, V2)

    assert original == before, "conversion must not edit what it converts"
    assert older["apiVersion"] == "autoscaling/v1"
    assert again == original


def test_autoscaling_v1_has_a_cpu_field_and_other_metrics_in_annotations() -> None:
    cpu = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
    memory = {
        "type": "Resource",
        "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}},
    }

    older = convert_version(scaler({"metrics": [cpu, memory]}, {}), V2, V1)

    assert older["spec"]["targetCPUUtilizationPercentage"] == 50
    assert older["metadata"]["annotations"] == {
        "mine": "1",
        "autoscaling.alpha.kubernetes.io/metrics": (
            '[{"type":"Resource","resource":{"name":"memory","targetAverageValue":"1Gi"}}]'
        ),
    }


def test_the_behavior_annotation_has_capitalized_names() -> None:
    behavior = {"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 15}]}}

    older = convert_version(scaler({"behavior": behavior}, {}), V2, V1)

    text = older["metadata"]["annotations"]["autoscaling.alpha.kubernetes.io/behavior"]
    assert json.loads(text)["ScaleUp"] == {
        "StabilizationWindowSeconds": 0,
        "SelectPolicy": "Max",
        "Policies": [{"Type": "Pods", "Value": 1, "PeriodSeconds": 15}],
        "Tolerance": None,
    }


def test_a_v1_autoscaler_without_a_target_defaults_to_80_percent() -> None:
    older = {"apiVersion": "autoscaling/v1", "metadata": {"name": "h"}, "spec": {"maxReplicas": 3}, "status": {}}

    (metric,) = convert_version(older, V1, V2)["spec"]["metrics"]

    assert metric["resource"]["target"] == {"type": "Utilization", "averageUtilization": 80}


def test_conversion_annotations_from_clients_are_dropped() -> None:
    value = scaler({}, {})
    value["metadata"]["annotations"]["autoscaling.alpha.kubernetes.io/metrics"] = "[]"

    apply_defaults(V2, value)

    assert value["metadata"]["annotations"] == {"mine": "1"}


def test_events_have_different_field_names_in_both_groups() -> None:
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "name": "p"},
        "message": "m",
        "source": {"component": "c"},
        "firstTimestamp": None,
        "lastTimestamp": None,
        "eventTime": None,
        "reportingComponent": "",
        "reportingInstance": "",
    }

    converted = convert_version(event, CORE, EVENTS)

    assert converted["regarding"] == {"kind": "Pod", "name": "p"}
    assert (converted["note"], converted["deprecatedSource"]) == ("m", {"component": "c"})
    assert "reportingController" not in converted
    assert convert_version(converted, EVENTS, CORE) == event
