"""With --speed, timeouts of clients are still in real seconds."""

from __future__ import annotations

import contextlib
from pathlib import Path

from clients.serving import served
from conformance.client import Client

_POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "annotations": {"batkube.io/duration": "1000s"}},
    "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]},
}
_PODS = "/api/v1/namespaces/default/pods"


def test_the_timeout_of_a_watch_is_in_real_seconds(tmp_path: Path) -> None:
    """A pod of 1000 virtual seconds succeeds within a watch of 60 real seconds."""
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(served(tmp_path / "served", "--platform", "1x4", "--speed", "500"))
        client = stack.enter_context(contextlib.closing(Client(cluster.url, cluster.token)))
        watching = client.watch({"path": _PODS, "query": {"timeoutSeconds": "60"}})
        watching.await_start(30)
        assert client.ask("POST", _PODS, _POD)["status"] == 201
        while not watching.is_closed and _phase(watching.events) != "Succeeded":
            watching.await_events(len(watching.events) + 1, 0, 60)
        watching.stop()

    assert _phase(watching.events) == "Succeeded"


def _phase(events: list[dict[str, dict[str, dict[str, str]]]]) -> str:
    return events[-1]["object"]["status"].get("phase", "") if events else ""
