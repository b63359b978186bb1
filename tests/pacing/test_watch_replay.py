"""Watches as in the 2020 prototype: a client receives past events of a pod again."""

from __future__ import annotations

import json

import pytest

from batkube.api.requests.messages import Request, Response, Stream
from batkube.cluster.mapping import POD
from batkube.cluster.store import Key
from batkube.cluster.world import World
from batkube.kernel.instants import START
from batkube.kernel.streams import Streams
from batkube.pacing.watch_replay import ReplayingApi
from batkube.programs.startup.launch import make_server

UNFINISHED = "status.phase!=Succeeded,status.phase!=Failed"


class _Reader:
    """Follows pods as client-go does: lists once, then watches repeatedly from the version of the last event."""

    def __init__(self, api: ReplayingApi, token: str, selector: str = UNFINISHED) -> None:
        self._api = api
        self._token = token
        self._selector = selector
        pods = self._request({})
        assert isinstance(pods, Response)
        self.version = int(json.loads(pods.body)["metadata"]["resourceVersion"])

    def watch(self) -> list[tuple[str, str, str | None]]:
        """Return type, pod and node of the events of one watch."""
        response = self._request({"watch": ["1"], "resourceVersion": [str(self.version)]})
        assert isinstance(response, Response)  # complete, so the watch ends
        events = [json.loads(line) for line in response.body.splitlines()]
        if events:
            self.version = int(events[-1]["object"]["metadata"]["resourceVersion"])
        return [
            (event["type"], event["object"]["metadata"]["name"], event["object"]["spec"].get("nodeName"))
            for event in events
        ]

    def _request(self, query: dict[str, list[str]]) -> Response | Stream:
        headers = {"authorization": f"Bearer {self._token}", "accept": "application/json"}
        return self._api.handle(Request("GET", "/api/v1/pods", {"fieldSelector": [self._selector], **query}, headers))


class _Cluster:
    """A store whose pods change as in a run."""

    def __init__(self) -> None:
        world = World(Streams(0))
        self.store = world.store
        api, self.token, *_ = make_server(world)
        self.api = ReplayingApi(api, self.store, lambda: world.clock.now)

    def submit(self, name: str) -> None:
        pod = {
            "metadata": {"name": name, "namespace": "default", "uid": name},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
            "status": {"phase": "Pending"},
        }
        self.store.create(POD, [Key(f"default/{name}")], [pod], START)

    def bind(self, name: str, node: str) -> None:
        self._change(name, spec={"nodeName": node})

    def patch(self, name: str) -> None:
        """Report that the pod cannot be scheduled, as its scheduler does."""
        self._change(name, status={"conditions": [{"type": "PodScheduled", "status": "False"}]})

    def run(self, name: str) -> None:
        self._change(name, status={"phase": "Running"})

    def end(self, name: str) -> None:
        self._change(name, status={"phase": "Succeeded"})

    def _change(self, name: str, **parts: dict[str, object]) -> None:
        key = Key(f"default/{name}")
        pod = self.store.get(POD, key)
        assert pod is not None
        new_pod = {**pod, **{part: {**pod[part], **new} for part, new in parts.items()}}
        self.store.replace(POD, [key], [new_pod], START)


@pytest.fixture
def cluster() -> _Cluster:
    return _Cluster()


@pytest.fixture
def reader(cluster: _Cluster) -> _Reader:
    return _Reader(cluster.api, cluster.token)


def test_a_watch_replays_events_and_ends(cluster: _Cluster, reader: _Reader) -> None:
    assert reader.watch() == []
    cluster.submit("a")

    assert reader.watch() == [("MODIFIED", "a", None)]
    assert reader.watch() == [("MODIFIED", "a", None)]


def test_a_bound_pod_is_shown_unbound_again_after_the_patch_of_another(cluster: _Cluster, reader: _Reader) -> None:
    cluster.submit("a")
    cluster.submit("b")
    reader.watch()
    cluster.bind("a", "n1")
    cluster.patch("b")
    past = [("MODIFIED", "a", None), ("MODIFIED", "b", None)]
    bound = [("MODIFIED", "a", "n1"), ("MODIFIED", "b", None)]

    assert reader.watch() == past + bound
    assert reader.watch() == past + bound

    cluster.bind("b", "n2")
    assert reader.watch() == [*past, *bound, ("MODIFIED", "b", "n2")]
    # It continues from the last binding, so nothing is replayed.
    assert reader.watch() == [("MODIFIED", "a", "n1"), ("MODIFIED", "b", "n2")]


def test_a_watch_reports_that_a_pod_ended_but_not_that_it_runs(cluster: _Cluster, reader: _Reader) -> None:
    cluster.submit("a")
    cluster.bind("a", "n1")
    reader.watch()
    cluster.run("a")
    assert reader.watch() == [("MODIFIED", "a", "n1")]

    cluster.end("a")
    assert reader.watch() == [("MODIFIED", "a", "n1"), ("DELETED", "a", "n1")]
    cluster.store.delete(POD, [Key("default/a")], START)
    assert reader.watch() == [("DELETED", "a", "n1")]


def test_each_reader_continues_from_its_own_version(cluster: _Cluster, reader: _Reader) -> None:
    other = _Reader(cluster.api, cluster.token, selector="")
    cluster.submit("a")
    reader.watch()
    other.watch()
    cluster.bind("a", "n1")
    reader.watch()
    assert reader.watch() == [("MODIFIED", "a", "n1")]

    assert other.watch() == [("MODIFIED", "a", None), ("MODIFIED", "a", "n1")]


def test_other_requests_are_passed_through(cluster: _Cluster) -> None:
    headers = {"authorization": f"Bearer {cluster.token}", "accept": "application/json"}

    response = cluster.api.handle(Request("GET", "/api/v1/nodes", {}, headers))

    assert isinstance(response, Response)
    assert json.loads(response.body)["kind"] == "NodeList"
    assert cluster.api.too_large().status == 413
