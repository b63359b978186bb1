"""Strategy of namespaces."""

from __future__ import annotations

from tests.api.groups.prepared_objects import created, made, updated


def test_a_namespace_is_active_and_named_by_a_label() -> None:
    namespace = created(made("Namespace", "v1", status={"phase": "Terminating"}))

    assert namespace["status"] == {"phase": "Active"}
    assert namespace["spec"]["finalizers"] == ["kubernetes"]
    assert namespace["metadata"]["labels"] == {"kubernetes.io/metadata.name": "x"}
    assert updated(namespace, {"spec.finalizers": None})["spec"]["finalizers"] == ["kubernetes"]
