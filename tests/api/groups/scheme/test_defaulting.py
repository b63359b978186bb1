"""Defaults equal those of kube-apiserver, and are idempotent."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batkube.api.decoding.objects import decode
from batkube.api.groups.core.pods.images import tag_of
from batkube.api.groups.scheme.defaulting import apply_defaults
from batkube.cluster.kinds import KindTable, Resource
from conformance import CASES

TABLE = KindTable.builtin()


def resource_of(value: dict[str, Any]) -> Resource:
    group, _, version = value["apiVersion"].rpartition("/")
    match = TABLE.of_kind(group, version, value["kind"])
    assert match is not None
    return match


def filled(value: dict[str, Any]) -> dict[str, Any]:
    resource = resource_of(value)
    obj: dict[str, Any] = decode(copy.deepcopy(value), resource.schema).object
    apply_defaults(resource, obj)
    return obj


def pod(**spec: object) -> dict[str, Any]:
    containers = [{"name": "c", "image": "busybox:1"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": containers, **spec},
    }


def made(kind: str, version: str, **fields: object) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, **fields}


def test_a_minimal_pod_gets_all_defaults() -> None:
    assert filled(pod())["spec"] == {
        "containers": [
            {
                "name": "c",
                "image": "busybox:1",
                "resources": {},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "imagePullPolicy": "IfNotPresent",
            }
        ],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "enableServiceLinks": True,
    }


@pytest.mark.parametrize(
    ("image", "tag"),
    [
        ("busybox", "latest"),
        ("busybox:1", "1"),
        ("localhost:5000/busybox", "latest"),
        ("registry.example.com/a/b:v2", "v2"),
        ("busybox@sha256:" + "a" * 64, ""),
        ("busybox:latest@sha256:" + "a" * 64, "latest"),
        ("Busybox", ""),
        ("a" * 64, ""),
        ("-busybox", ""),
        ("", ""),
    ],
)
def test_an_image_without_tag_and_digest_is_the_latest_one(image: str, tag: str) -> None:
    assert tag_of(image) == tag


def test_requests_follow_limits_in_pods_but_not_in_templates() -> None:
    container = {
        "name": "c",
        "image": "i:1",
        "resources": {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}},
    }

    in_pod = filled(pod(containers=[container]))["spec"]["containers"][0]
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    in_template = filled(made("ReplicaSet", "apps/v1", spec=spec))["spec"]["template"]["spec"]["containers"][0]

    assert in_pod["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}
    assert in_template["resources"]["requests"] == {"cpu": "1"}


def test_amounts_are_rounded_up_to_thousandths() -> None:
    resources = {"requests": {"cpu": "100n", "memory": "1500001u", "example.com/x": "3"}}
    container = {"name": "c", "image": "i:1", "resources": resources}

    requests = filled(pod(containers=[container]))["spec"]["containers"][0]["resources"]["requests"]

    assert requests == {"cpu": "1m", "memory": "1501m", "example.com/x": "3"}


def test_pod_level_requests_default_to_the_totals_of_the_containers() -> None:
    sidecar = {"name": "s", "image": "i:1", "restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}}
    start = {"name": "i", "image": "i:1", "resources": {"requests": {"cpu": "2"}}}
    main = {"name": "c", "image": "i:1", "resources": {"requests": {"cpu": "500m"}}}
    limits = {"limits": {"cpu": "4", "memory": "1Gi"}}

    spec = filled(pod(initContainers=[sidecar, start], containers=[main], resources=limits))["spec"]

    assert spec["resources"]["requests"] == {"cpu": "2100m", "memory": "1Gi"}


def test_a_volume_without_a_source_is_an_empty_directory() -> None:
    volumes = filled(pod(volumes=[{"name": "a"}, {"name": "b", "hostPath": {"path": "/x"}}]))["spec"]["volumes"]

    assert volumes == [{"name": "a", "emptyDir": {}}, {"name": "b", "hostPath": {"path": "/x", "type": ""}}]


def test_both_service_account_fields_are_equal() -> None:
    for field in ("serviceAccount", "serviceAccountName"):
        spec = filled(pod(**{field: "robot"}))["spec"]
        assert (spec["serviceAccount"], spec["serviceAccountName"]) == ("robot", "robot")


def test_string_data_of_a_secret_overrides_data() -> None:
    secret = filled(made("Secret", "v1", stringData={"a": "x"}, data={"a": "eQ==", "b": "eg=="}))

    assert secret["data"] == {"a": "eA==", "b": "eg=="}
    assert "stringData" not in secret
    assert secret["type"] == "Opaque"


def test_container_limits_default_to_each_other() -> None:
    item = {
        "type": "Container",
        "max": {"cpu": "2", "memory": "1Gi"},
        "default": {"memory": "512Mi"},
        "min": {"pods": "1"},
    }

    (limit,) = filled(made("LimitRange", "v1", spec={"limits": [item]}))["spec"]["limits"]

    assert limit["default"] == {"cpu": "2", "memory": "512Mi"}
    assert limit["defaultRequest"] == {"cpu": "2", "memory": "512Mi", "pods": "1"}


def test_a_job_counting_failures_for_each_index_has_no_limit_as_a_whole() -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}

    plain = filled(made("Job", "batch/v1", spec={"template": template}))["spec"]
    counted = {"template": template, "completionMode": "Indexed", "completions": 2, "backoffLimitPerIndex": 1}
    indexed = filled(made("Job", "batch/v1", spec=counted))["spec"]

    assert (plain["backoffLimit"], plain["completions"], plain["parallelism"]) == (6, 1, 1)
    assert (indexed["backoffLimit"], indexed["parallelism"]) == (2**31 - 1, 1)


NAMES = st.sampled_from(["a", "b", "web", "x-1"])
AMOUNTS = st.sampled_from(["1", "100m", "2", "1Gi", "123456n", "512Mi"])
RESOURCES = st.dictionaries(st.sampled_from(["cpu", "memory", "example.com/gpu"]), AMOUNTS, max_size=3)
PROBES = st.fixed_dictionaries(
    {}, optional={"httpGet": st.just({"port": 80}), "grpc": st.just({"port": 9}), "periodSeconds": st.integers(0, 9)}
)
CONTAINERS = st.lists(
    st.fixed_dictionaries(
        {"name": NAMES, "image": st.sampled_from(["busybox", "busybox:1", "A"])},
        optional={
            "resources": st.fixed_dictionaries({}, optional={"limits": RESOURCES, "requests": RESOURCES}),
            "livenessProbe": PROBES,
            "ports": st.lists(st.fixed_dictionaries({"containerPort": st.integers(1, 9)}), max_size=2),
            "env": st.just([{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]),
        },
    ),
    min_size=1,
    max_size=3,
)
VOLUMES = st.lists(
    st.sampled_from(
        [
            {"name": "a"},
            {"name": "b", "secret": {"secretName": "s"}},
            {"name": "c", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
            {"name": "d", "rbd": {"monitors": ["m"], "image": "i"}},
        ]
    ),
    max_size=3,
)
SPECS = st.fixed_dictionaries(
    {"containers": CONTAINERS},
    optional={
        "initContainers": CONTAINERS,
        "volumes": VOLUMES,
        "hostNetwork": st.booleans(),
        "terminationGracePeriodSeconds": st.integers(-3, 60),
        "resources": st.fixed_dictionaries({}, optional={"limits": RESOURCES, "requests": RESOURCES}),
    },
)


@settings(max_examples=100, deadline=None)
@given(SPECS)
def test_defaulting_twice_equals_once(spec: dict[str, Any]) -> None:
    once = filled(pod(**spec))
    twice = copy.deepcopy(once)
    apply_defaults(resource_of(twice), twice)

    assert twice == once


@settings(max_examples=100, deadline=None)
@given(SPECS)
def test_container_fields_set_by_a_client_are_kept(spec: dict[str, Any]) -> None:
    given_pod = pod(**spec)
    plain = decode(copy.deepcopy(given_pod), resource_of(given_pod).schema).object
    for before, after in zip(plain["spec"]["containers"], filled(given_pod)["spec"]["containers"], strict=True):
        assert (before["name"], before["image"]) == (after["name"], after["image"])
        asked, got = before["resources"].get("requests", {}), after["resources"].get("requests", {})
        assert set(asked) <= set(got)


def missing_in(part: object, whole: object, path: str = "") -> list[str]:
    """Return the paths at which `whole` differs from `part`."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return [line for name, value in part.items() for line in missing_in(value, whole.get(name), f"{path}.{name}")]
    if isinstance(part, list) and isinstance(whole, list) and len(part) <= len(whole):
        return [line for i, value in enumerate(part) for line in missing_in(value, whole[i], f"{path}[{i}]")]
    return [] if part == whole else [f"{path}: {part!r}, not {whole!r}"]


def test_recorded_creations_have_all_our_defaults() -> None:
    checked = 0
    for case in sorted(CASES.glob("[cdg]*/*.json")):
        for step in json.loads(case.read_text(encoding="utf-8"))["steps"]:
            request, response = step.get("request", {}), step.get("response", {})
            body = request.get("body")
            created = request.get("method") == "POST" and response["status"] == 201
            if not created or not isinstance(body, dict) or "kind" not in body or "${" in json.dumps(body):
                continue
            group, _, version = body["apiVersion"].rpartition("/")
            if TABLE.of_kind(group, version, body["kind"]) is None or body["kind"] == "CustomResourceDefinition":
                continue
            if response["body"]["kind"] != body["kind"]:
                continue  # a Binding is answered with a Status
            ours = filled(body)
            # Claims, pods and the like lose the status that they were sent with.
            fields = {name: value for name, value in ours.items() if name not in ("metadata", "status")}
            assert missing_in(fields, response["body"]) == [], f"{case.stem}: {body['kind']}"
            checked += 1
    assert checked > 100
