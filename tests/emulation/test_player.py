"""Submitting and watching, with a cluster that answers as it is told."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from batkube.emulation import player
from batkube.emulation.client import reflector
from batkube.emulation.client.connection import ApiStatusError, ClusterConnection, ClusterUnreachable
from batkube.emulation.job_tracker import JobTracker
from batkube.emulation.manifests import LABEL_NUMBER, ManifestOptions
from batkube.emulation.player import Player, RunClock, RunTarget
from batkube.emulation.settings import JobKind
from batkube.kernel.errors import RunFailed
from batkube.kernel.instants import seconds
from emulation.builders import make_task

EVER = seconds(3600)


class FakeCluster:
    """Runs every pod the moment it is created; watches of pods follow a script."""

    def __init__(self, watches: list[Callable[[FakeCluster, str], Iterator[bytes]]]) -> None:
        self.pods: dict[str, dict[str, Any]] = {}
        self.watches = watches
        #: The versions that pods were watched from.
        self.asked: list[str] = []
        self.created = threading.Event()
        self.refusals: list[Exception] = []

    def get_bytes(self, path: str, **_: object) -> bytes:
        items = list(self.pods.values()) if path.endswith("/pods") else []
        return msgspec.json.encode({"metadata": {"resourceVersion": "100"}, "items": items})

    def create(self, _: str, body: dict[str, Any]) -> dict[str, Any]:
        if self.refusals:
            raise self.refusals.pop(0)
        name = body["metadata"]["name"]
        status = {"phase": "Succeeded", "containerStatuses": [{"state": {"terminated": {"exitCode": 0}}}]}
        self.pods[name] = {**body, "spec": {"nodeName": "n1"}, "status": status}
        self.created.set()
        return body

    def watch(self, path: str, **query: str) -> Iterator[bytes]:
        if path.endswith("/events") or not self.watches:
            threading.Event().wait(5)
            return
        self.asked.append(query["resourceVersion"])
        yield from self.watches.pop(0)(self, query["resourceVersion"])

    def lines(self, kind: str = "MODIFIED") -> Iterator[bytes]:
        """Yield the pods as they are, once there is one."""
        assert self.created.wait(10)
        for pod in list(self.pods.values()):
            pod["metadata"]["resourceVersion"] = "101"
            yield msgspec.json.encode({"type": kind, "object": pod})


def play(cluster: FakeCluster, count: int = 1) -> JobTracker:
    tasks = [make_task(number) for number in range(count)]
    story = JobTracker(tasks, JobKind.POD)
    stage = RunTarget(
        _as_access(cluster), "default", ManifestOptions("run", JobKind.POD, "busybox", "default-scheduler")
    )
    Player(stage, tasks, story, RunClock(1000), EVER).run(lambda done, total, now: None)
    return story


def _as_access(cluster: Any) -> ClusterConnection:  # noqa: ANN401
    access: ClusterConnection = cluster
    return access


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits before trying again."""
    monkeypatch.setattr(player, "pause", lambda _: None)
    monkeypatch.setattr(reflector, "pause", lambda _: None)


def ends_at_once(_: FakeCluster, __: str) -> Iterator[bytes]:
    yield b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"55"}}}'


def tells_all(cluster: FakeCluster, _: str) -> Iterator[bytes]:
    yield from cluster.lines()


def is_too_old(cluster: FakeCluster, _: str) -> Iterator[bytes]:
    assert cluster.created.wait(10)
    yield b'{"type":"ERROR","object":{"kind":"Status","code":410}}'


def breaks_off(_: FakeCluster, __: str) -> Iterator[bytes]:
    yield from ()
    raise ClusterUnreachable("the line is dead")


def forbids(_: FakeCluster, __: str) -> Iterator[bytes]:
    yield from ()
    raise ApiStatusError(403, "Forbidden", "not any more")


def test_a_watch_that_ends_is_taken_up_where_it_was() -> None:
    cluster = FakeCluster([ends_at_once, tells_all])

    assert play(cluster).is_over
    assert cluster.asked == ["100", "55"]


def test_a_version_that_is_too_old_makes_us_look_at_everything_again() -> None:
    cluster = FakeCluster([is_too_old])

    assert play(cluster).is_over


def test_a_connection_that_breaks_is_made_again() -> None:
    assert play(FakeCluster([breaks_off, breaks_off, tells_all])).is_over


def test_a_cluster_that_stays_away_ends_the_run() -> None:
    with pytest.raises(RunFailed, match="the line is dead"):
        play(FakeCluster([breaks_off] * 10))


def test_a_watch_that_is_forbidden_ends_the_run_at_once() -> None:
    with pytest.raises(RunFailed, match="not any more"):
        play(FakeCluster([forbids]))


def test_a_busy_server_is_asked_again() -> None:
    cluster = FakeCluster([tells_all])
    cluster.refusals = [ApiStatusError(429, "TooManyRequests", "slow down"), ClusterUnreachable("gone for a moment")]

    assert play(cluster).is_over


def test_a_job_that_the_server_refuses_is_the_only_one_lost() -> None:
    cluster = FakeCluster([tells_all, tells_all, tells_all])
    cluster.refusals = [ApiStatusError(403, "Forbidden", "exceeded quota")]

    story = play(cluster, count=2)

    assert sorted(bool(job.rejection) for job in story.jobs) == [False, True]


def test_every_pod_belongs_to_the_job_that_its_label_says() -> None:
    cluster = FakeCluster([tells_all])
    play(cluster)

    (pod,) = cluster.pods.values()
    assert pod["metadata"]["labels"][LABEL_NUMBER] == "0"
