"""Submissions and watches of a run, with a scripted cluster."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from batkube.emulation import workload_runner
from batkube.emulation.client.connection import ApiStatusError, ClusterConnection, ClusterUnreachable
from batkube.emulation.client.reflector import Backoff
from batkube.emulation.job_tracker import JobTracker
from batkube.emulation.manifests import LABEL_NUMBER, ManifestOptions
from batkube.emulation.settings import JobKind
from batkube.emulation.workload_runner import ControlledClock, RunTarget, WorkloadRunner
from batkube.kernel.errors import RunFailed
from batkube.kernel.instants import seconds
from emulation.builders import make_planned_job

PATIENCE = seconds(3600)


class FakeCluster:
    """Completes each pod when it is created. Watches of pods follow a script."""

    def __init__(self, watches: list[Callable[[FakeCluster, str], Iterator[bytes]]]) -> None:
        self.pods: dict[str, dict[str, Any]] = {}
        self.watches = watches
        #: The resource version of each watch of pods.
        self.watch_versions: list[str] = []
        self.created = threading.Event()
        self.rejections: list[Exception] = []

    def get_bytes(self, path: str, **_: object) -> bytes:
        items = list(self.pods.values()) if path.endswith("/pods") else []
        return msgspec.json.encode({"metadata": {"resourceVersion": "100"}, "items": items})

    def create(self, _: str, body: dict[str, Any]) -> dict[str, Any]:
        if self.rejections:
            raise self.rejections.pop(0)
        name = body["metadata"]["name"]
        status = {"phase": "Succeeded", "containerStatuses": [{"state": {"terminated": {"exitCode": 0}}}]}
        self.pods[name] = {**body, "spec": {"nodeName": "n1"}, "status": status}
        self.created.set()
        return body

    def watch(self, path: str, **query: str) -> Iterator[bytes]:
        if path.endswith("/events") or not self.watches:
            threading.Event().wait(5)
            return
        self.watch_versions.append(query["resourceVersion"])
        yield from self.watches.pop(0)(self, query["resourceVersion"])

    def lines(self, kind: str = "MODIFIED") -> Iterator[bytes]:
        """Yield the current pods, once there is one."""
        assert self.created.wait(10)
        for pod in list(self.pods.values()):
            pod["metadata"]["resourceVersion"] = "101"
            yield msgspec.json.encode({"type": kind, "object": pod})


def run(cluster: FakeCluster, count: int = 1) -> JobTracker:
    planned_jobs = [make_planned_job(number) for number in range(count)]
    tracker = JobTracker(planned_jobs, JobKind.POD)
    target = RunTarget(
        _as_connection(cluster), "default", ManifestOptions("run", JobKind.POD, "busybox", "default-scheduler")
    )
    WorkloadRunner(target, planned_jobs, tracker, ControlledClock(1000), PATIENCE).run(lambda done, total, now: None)
    return tracker


def _as_connection(cluster: Any) -> ClusterConnection:  # noqa: ANN401
    access: ClusterConnection = cluster
    return access


@pytest.fixture(autouse=True)
def no_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retry without delays."""
    monkeypatch.setattr(workload_runner, "pause", lambda _: None)
    monkeypatch.setattr(Backoff, "next_delay_s", lambda *_: 0.0)


def ends_after_a_bookmark(_: FakeCluster, __: str) -> Iterator[bytes]:
    yield b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"55"}}}'


def reports_all(cluster: FakeCluster, _: str) -> Iterator[bytes]:
    yield from cluster.lines()


def has_expired(cluster: FakeCluster, _: str) -> Iterator[bytes]:
    assert cluster.created.wait(10)
    yield b'{"type":"ERROR","object":{"kind":"Status","code":410}}'


def fails(_: FakeCluster, __: str) -> Iterator[bytes]:
    yield from ()
    raise ClusterUnreachable("connection reset")


def forbids(_: FakeCluster, __: str) -> Iterator[bytes]:
    yield from ()
    raise ApiStatusError(403, "Forbidden", "no permission")


def test_a_watch_that_ends_is_resumed_from_the_last_version() -> None:
    cluster = FakeCluster([ends_after_a_bookmark, reports_all])

    assert run(cluster).is_over
    assert cluster.watch_versions == ["100", "55"]


def test_an_expired_version_is_followed_by_a_new_list() -> None:
    cluster = FakeCluster([has_expired])

    assert run(cluster).is_over


def test_a_failed_watch_is_retried() -> None:
    assert run(FakeCluster([fails, fails, reports_all])).is_over


def test_a_watch_that_keeps_failing_ends_the_run() -> None:
    with pytest.raises(RunFailed, match="connection reset"):
        run(FakeCluster([fails] * 10))


def test_a_forbidden_watch_ends_the_run_at_once() -> None:
    with pytest.raises(RunFailed, match="no permission"):
        run(FakeCluster([forbids]))


def test_a_submission_is_retried_when_the_server_is_busy() -> None:
    cluster = FakeCluster([reports_all])
    cluster.rejections = [ApiStatusError(429, "TooManyRequests", "slow down"), ClusterUnreachable("connection reset")]

    assert run(cluster).is_over


def test_a_rejected_job_does_not_affect_the_others() -> None:
    cluster = FakeCluster([reports_all, reports_all, reports_all])
    cluster.rejections = [ApiStatusError(403, "Forbidden", "exceeded quota")]

    tracker = run(cluster, count=2)

    assert sorted(bool(job.rejection) for job in tracker.jobs) == [False, True]


def test_a_pod_has_the_label_of_its_job() -> None:
    cluster = FakeCluster([reports_all])
    run(cluster)

    (pod,) = cluster.pods.values()
    assert pod["metadata"]["labels"][LABEL_NUMBER] == "0"
