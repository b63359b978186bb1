"""Status updates of pods."""

from __future__ import annotations

from tests.api.groups.object_updates import changed, changes, pod


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
