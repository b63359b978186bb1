"""Updates of pods: mutable and immutable fields."""

from __future__ import annotations

import pytest
from tests.api.groups.object_updates import changed, changes, pod


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
