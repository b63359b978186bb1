"""Validation of updates and status updates."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from batkube.api.decoding.objects import decode
from batkube.api.groups.scheme import validation
from batkube.api.groups.scheme.defaulting import apply_defaults
from batkube.cluster.kinds import KindTable, Resource

TABLE = KindTable.builtin()
OBJECTS = json.loads((Path(__file__).parent / "validation_answers.json").read_text(encoding="utf-8"))["objects"]
#: These come to validation with what conversion, strategies or allocators add.
NOT_ALONE = ("Job", "CronJob", "Service", "Event", "CertificateSigningRequest")


def resource_of(value: dict[str, Any]) -> Resource:
    group, _, version = value["apiVersion"].rpartition("/")
    match = TABLE.of_kind(group, version, value["kind"])
    assert match is not None
    return match


def filled(body: dict[str, Any]) -> dict[str, Any]:
    resource = resource_of(body)
    value: dict[str, Any] = decode(copy.deepcopy(body), resource.schema).object
    apply_defaults(resource, value)
    value["metadata"].setdefault("uid", "u")
    if resource.namespaced:
        value["metadata"].setdefault("namespace", "default")
    return value


def pod(**spec: object) -> dict[str, Any]:
    body = {"containers": [{"name": "c", "image": "busybox"}], **spec}
    return filled({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": body})


def changes(new: dict[str, Any], old: dict[str, Any], subresource: str = "") -> list[tuple[str, str]]:
    errors = validation.validate_update(resource_of(old), new, old, subresource)
    return [(error.field, error.message) for error in errors]


def changed(old: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    new = copy.deepcopy(old)
    place: Any = new
    *steps, last = path.split(".")
    for step in steps:
        place = place[int(step)] if step.isdecimal() else place.setdefault(step, {})
    place[last] = value
    return new


@pytest.mark.parametrize("name", [name for name in OBJECTS if name.partition("/")[0] not in NOT_ALONE])
def test_an_unchanged_object_passes(name: str) -> None:
    value = filled(OBJECTS[name])

    assert changes(copy.deepcopy(value), value) == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.containers.0.image", "other"),
        ("spec.activeDeadlineSeconds", 5),
        ("spec.tolerations", [{"key": "a", "operator": "Exists"}]),
        ("metadata.labels", {"a": "b"}),
    ],
)
def test_mutable_fields_of_a_pod_can_change(path: str, value: object) -> None:
    old = pod()

    assert changes(changed(old, path, value), old) == []


def test_other_fields_of_a_pod_are_immutable_and_the_error_has_a_diff() -> None:
    old = pod()

    [(field, message)] = changes(changed(old, "spec.priority", 7), old)

    assert field == "spec"
    assert message.startswith("Forbidden: pod updates may not change fields other than `spec.containers[*].image`,")
    assert '\n- "Priority": null,\n+ "Priority": 7,\n' in message
    assert "\n@@ -" in message


def test_containers_cannot_be_added_or_removed() -> None:
    old = pod()
    more = [*old["spec"]["containers"], {**old["spec"]["containers"][0], "name": "d"}]

    assert changes(changed(old, "spec.containers", more), old) == [
        ("spec.containers", "Forbidden: pod updates may not add or remove containers")
    ]


def test_toleration_seconds_can_change_but_not_the_key() -> None:
    old = pod(tolerations=[{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}])

    assert changes(changed(old, "spec.tolerations.0.tolerationSeconds", 9), old) == []
    assert changes(changed(old, "spec.tolerations.0.key", "b"), old) == [
        ("spec.tolerations", "Forbidden: existing toleration can not be modified except its tolerationSeconds")
    ]


def test_gates_can_only_be_removed_and_node_selectors_of_gated_pods_only_extended() -> None:
    old = pod(schedulingGates=[{"name": "a.b/c"}], nodeSelector={"x": "y"})

    assert changes(changed(old, "spec.schedulingGates", []), old) == []
    assert changes(changed(old, "spec.nodeSelector", {"x": "y", "z": "1"}), old) == []
    assert changes(changed(old, "spec.nodeSelector", {"x": "z"}), old) == [
        (
            "spec.nodeSelector",
            'Invalid value: {"x":"z"}: only additions to spec.nodeSelector are allowed (no mutations or deletions)',
        )
    ]
    assert changes(changed(old, "spec.schedulingGates.0.name", "a.b/d"), old) == [
        (
            "spec.schedulingGates[0].name",
            "Forbidden: only deletion is allowed, but found new scheduling gate 'a.b/d'",
        )
    ]


def test_a_resize_can_change_cpu_and_memory_but_not_the_qos_class() -> None:
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "2Gi"}}
    old = pod(containers=[{"name": "c", "image": "b", "resources": resources}])
    old["status"] = {"qosClass": "Burstable"}
    as_limited = changed(changed(old, "spec.containers.0.resources.requests.cpu", "2"), "x", 1)
    as_limited = changed(as_limited, "spec.containers.0.resources.requests.memory", "2Gi")

    assert changes(changed(old, "spec.containers.0.resources.requests.cpu", "1500m"), old, "resize") == []
    assert changes(as_limited, old, "resize") == [
        ("spec", 'Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing')
    ]
    assert ("spec", "Forbidden: only cpu and memory resources are mutable") in changes(
        changed(old, "spec.containers.0.image", "z"), old, "resize"
    )


def test_ephemeral_containers_are_immutable() -> None:
    container = {
        "name": "d",
        "image": "i",
        "imagePullPolicy": "Always",
        "terminationMessagePath": "/x",
        "terminationMessagePolicy": "File",
    }
    old = changed(pod(), "spec.ephemeralContainers", [container])

    [(field, message)] = changes(changed(old, "spec.ephemeralContainers.0.image", "j"), old, "ephemeralcontainers")

    assert field == "spec.ephemeralContainers"
    assert '- "Image": "i",\n+ "Image": "j",' in message


def test_a_terminated_container_cannot_become_running() -> None:
    old = pod(restartPolicy="Never")
    old["status"] = {"containerStatuses": [{"name": "c", "state": {"terminated": {"exitCode": 0}}}]}
    again = changed(old, "status.containerStatuses.0.state", {"running": {}})

    assert changes(again, old, "status") == [
        ("status.containerStatuses[0].state", "Forbidden: may not be transitioned to non-terminated state")
    ]
    assert (
        changes(changed(again, "spec.restartPolicy", "Always"), changed(old, "spec.restartPolicy", "Always"), "status")
        == []
    )


def test_an_immutable_metadata_field_is_reported_twice() -> None:
    old = filled(OBJECTS["ConfigMap/cm"])

    errors = changes(changed(old, "metadata.uid", "w"), old)

    assert errors == [("metadata.uid", 'Invalid value: "w": field is immutable')] * 2


def test_finalizers_cannot_be_added_to_a_deleted_object() -> None:
    old = changed(filled(OBJECTS["ConfigMap/cm"]), "metadata.deletionTimestamp", "2020-01-01T00:00:00Z")

    errors = changes(changed(old, "metadata.finalizers", ["a.b/c", "a.b/d"]), old)

    assert {message for _, message in errors} == {
        "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers "
        '[]string{"a.b/c", "a.b/d"}'
    }


def test_the_template_of_a_job_is_immutable() -> None:
    body = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}
    old = filled({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": body})
    old = changed(old, "spec.selector", {"matchLabels": {"a": "b"}})
    old = changed(changed(old, "spec.manualSelector", True), "spec.template.metadata.labels", {"a": "b"})

    [(field, message)] = changes(changed(old, "spec.template.spec.containers.0.image", "k"), old)

    assert field == "spec.template"
    assert message.startswith('Invalid value: {"labels":{"a":"b"},"Spec":{"Volumes":null,"InitContainers":null,')
    assert message.endswith('"HostnameOverride":null}}: field is immutable')


@pytest.mark.parametrize(
    ("status", "field"),
    [
        ({"active": -1}, "status.active"),
        ({"ready": 1}, "status.ready"),
        ({"failed": 1, "succeeded": 0}, "status.succeeded"),
        ({"succeeded": 1, "completedIndexes": "0"}, "status.completedIndexes"),
    ],
)
def test_an_inconsistent_job_status_is_rejected(status: dict[str, Any], field: str) -> None:
    body = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}
    old = filled({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": body})
    old = changed(old, "status", {"succeeded": 1})

    assert field in [where for where, _ in changes(changed(old, "status", {"succeeded": 1} | status), old, "status")]
