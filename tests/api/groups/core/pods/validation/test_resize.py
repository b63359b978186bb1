"""Resizes of pods."""

from __future__ import annotations

from tests.api.groups.object_updates import changed, changes, pod


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
