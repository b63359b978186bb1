"""Strategy of DaemonSets."""

from __future__ import annotations

from tests.api.groups.prepared_objects import TEMPLATE, created, made, updated


def test_a_daemon_set_counts_template_generations() -> None:
    live = created(made("DaemonSet", "apps/v1", spec={"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}))
    number = "deprecated.daemonset.template.generation"

    changed = updated(live, {"spec.template.metadata.annotations": {"a": "b"}, "metadata.annotations": None})
    other = updated(live, {"spec.minReadySeconds": 5})

    assert live["metadata"]["annotations"][number] == "1"
    assert (changed["metadata"]["annotations"][number], changed["metadata"]["generation"]) == ("2", 2)
    assert (other["metadata"]["annotations"][number], other["metadata"]["generation"]) == ("1", 2)
