"""The number of store changes for each pod of a run is as the documentation states."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from tests.conftest import REPOSITORY

import batkube
from batkube.api.requests.messages import Request
from batkube.api.server import ApiServer
from batkube.api.verbs.storage import watches
from batkube.api.verbs.storage.selection import Selection
from batkube.cluster.store import Change, KubeObject, Store

DOCS = REPOSITORY / "docs"
PODS = 6

Counts = Counter[str]


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    """Two jobs of three pods each."""
    jobs = [{"id": name, "subtime": 0, "res": PODS // 2, "profile": "d"} for name in ("a", "b")]
    path = tmp_path / "w.json"
    path.write_text(json.dumps({"nb_res": 8, "jobs": jobs, "profiles": {"d": {"type": "delay", "delay": 5}}}))
    return path


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counts:
    """Count changes of pods and events in the store, writes over HTTP, and watch events."""
    counts: Counts = Counter()
    commit, handle, event_of = Store._commit, ApiServer.handle, watches.event_for

    def counted_commit(self: Store, change: str, kind: str, keys: list[str], *more: object) -> None:
        if kind in ("pods", "events"):
            counts[f"{kind} {change}"] += len(keys)
        commit(self, change, kind, keys, *more)  # type: ignore[arg-type]

    def counted_handle(self: ApiServer, request: Request) -> object:
        counts["writes"] += request.method != "GET"
        return handle(self, request)

    def counted_event(change: Change, selection: Selection) -> tuple[str, KubeObject] | None:
        event = event_of(change, selection)
        counts["watch events"] += event is not None and event[1]["kind"] == "Pod"
        return event

    monkeypatch.setattr(Store, "_commit", counted_commit)
    monkeypatch.setattr(ApiServer, "handle", counted_handle)
    monkeypatch.setattr(watches, "event_for", counted_event)
    return counts


def words(*path: str) -> str:
    """Return the text of a page on one line."""
    return " ".join(DOCS.joinpath(*path).read_text(encoding="utf-8").split())


def test_under_a_policy_a_pod_has_five_changes(workload: Path, counts: Counts) -> None:
    batkube.run(workload=workload, platform="8x1", scheduler="policy:easy")

    assert counts == {"pods ADDED": PODS, "pods MODIFIED": 3 * PODS, "pods DELETED": PODS}
    changes = "created, bound, Running, Succeeded or Failed, deleted"
    assert f"five changes: {changes}" in words("explanation", "architecture.md")
    assert f"five changes in the store: {changes}" in words("explanation", "performance.md")
    decision = words("decisions", "0002-everything-goes-through-the-store.md")
    assert f"five changes per pod: {changes}" in decision


def test_under_kube_scheduler_statuses_and_an_event_are_added(
    workload: Path, counts: Counts, kube_scheduler: str
) -> None:
    batkube.run(workload=workload, platform="8x1", scheduler=kube_scheduler)

    assert {key: count / PODS for key, count in counts.items()} == {
        "pods ADDED": 1,
        "pods MODIFIED": 3,  # bound, Running, Succeeded
        "pods DELETED": 1,
        "events ADDED": 1,
        "events DELETED": 1,
        "writes": 2,
        "watch events": 4,  # the scheduler does not watch pods that have ended
    }
    page = words("explanation", "performance.md")
    assert "two requests: the binding and its event; * seven changes in the store" in page
    assert "* four watch events" in page
