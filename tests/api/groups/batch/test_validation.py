"""Updates of Jobs."""

from __future__ import annotations

from typing import Any

import pytest
from tests.api.groups.object_updates import changed, changes, filled


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
