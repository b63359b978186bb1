"""Deleted kinds and objects leave nothing behind in memory."""

from __future__ import annotations

import gc
from typing import Any

from conformance.direct import Direct, Watched

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
JOBS = "/apis/batch/v1/namespaces/default/jobs"


def watch_new_kind(server: Direct, number: int) -> None:
    """Define a kind, watch it for a while, and delete it."""
    group = f"g{number}.example.com"
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    names = {"plural": "ws", "singular": "w", "kind": "W"}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"ws.{group}"},
        "spec": {"group": group, "scope": "Cluster", "names": names, "versions": [version]},
    }
    assert server.ask("POST", DEFINITIONS, definition).status == 201
    watched = server.watch(f"/apis/{group}/v1/ws")
    assert isinstance(watched, Watched)
    watched.stop()
    assert server.ask("DELETE", f"{DEFINITIONS}/ws.{group}").status == 200


def live_objects(server: Direct) -> int:
    """Return the number of live Python objects after history and watch timers are cleared."""
    server.timers.pass_time(3600)
    server.store.compact()
    gc.collect()
    return len(gc.get_objects())


def test_a_deleted_kind_that_was_watched_leaves_nothing_behind() -> None:
    server = Direct()
    for number in range(10):
        watch_new_kind(server, number)
    before = live_objects(server)

    for number in range(10, 110):
        watch_new_kind(server, number)
    growth = live_objects(server) - before

    assert growth < 100


def job(labels: dict[str, str], **spec: object) -> dict[str, Any]:
    pod = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}
    template = {"metadata": {"labels": labels}, "spec": pod}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": template, **spec}}


def test_state_of_a_deleted_object_does_not_apply_to_its_successor() -> None:
    server = Direct()
    # A Job whose last defaults are not stored at first: its first update is a change, whatever it changes.
    assert server.ask("POST", JOBS, job({})).status == 201
    assert server.ask("DELETE", f"{JOBS}/j", query={"propagationPolicy": "Background"}).status == 200
    labels = {"a": "b"}
    created = server.ask("POST", JOBS, job(labels, manualSelector=True, selector={"matchLabels": labels}))
    assert created.status == 201

    changed = server.ask("PUT", f"{JOBS}/j", created.body)

    assert changed.body["metadata"]["resourceVersion"] == created.body["metadata"]["resourceVersion"]
