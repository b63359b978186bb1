"""Fields of pods as controllers, kubelets and schedulers read them."""

from __future__ import annotations

from typing import Any

import pytest

from batkube.cluster.pods import accessors
from batkube.cluster.store import Key, Store
from batkube.kernel.instants import START, Duration, Instant, rfc3339, seconds


def pod(phase: str = "Running", ready_at: Instant | None = None, **metadata: object) -> dict[str, Any]:
    ready = {"type": "Ready", "status": "False" if ready_at is None else "True"}
    if ready_at is not None:
        ready["lastTransitionTime"] = rfc3339(ready_at)
    return {"metadata": {"name": "p", **metadata}, "spec": {}, "status": {"phase": phase, "conditions": [ready]}}


def test_a_new_pod_is_pending_and_unbound_with_priority_0_and_without_restarts() -> None:
    new: dict[str, Any] = {"metadata": {"name": "p"}, "spec": {}}

    assert accessors.phase_of(new) == "Pending"
    assert accessors.node_of_pod(new) == ""
    assert accessors.priority_of(new) == 0
    assert accessors.restarts_of(new) == 0
    assert accessors.is_active(new)


@pytest.mark.parametrize(("phase", "is_finished"), [("Pending", False), ("Running", False), ("Failed", True)])
def test_a_pod_is_active_until_it_has_ended_or_is_being_deleted(phase: str, is_finished: bool) -> None:
    assert accessors.is_finished(pod(phase)) is is_finished
    assert accessors.is_active(pod(phase)) is not is_finished
    assert not accessors.is_active(pod(phase, deletionTimestamp=rfc3339(START)))


def test_a_pod_is_available_after_it_was_ready_for_the_minimum_time() -> None:
    """IsPodAvailable: without minReadySeconds at once, otherwise that long after the transition of Ready."""
    since, later = Instant(START + seconds(10)), Instant(START + seconds(14))

    assert accessors.time_until_available(pod(), 0, later) is None
    assert accessors.time_until_available(pod(ready_at=since), 0, since) == 0
    assert accessors.time_until_available(pod(ready_at=since), 10, later) == seconds(6)
    assert accessors.time_until_available(pod(ready_at=since), 10, Instant(START + seconds(99))) == 0


def test_a_shared_status_decides_for_all_pods_of_a_batch() -> None:
    pods = [pod("Succeeded"), pod("Running"), pod("Failed")]

    assert accessors.finished_pods(pods, None) == [pods[0], pods[2]]
    assert accessors.finished_pods(pods, {"phase": "Failed"}) is pods
    assert accessors.finished_pods(pods, {"phase": "Running"}) == ()


def test_pods_on_nodes_are_listed_oldest_first() -> None:
    store = Store()
    for name, node in (("c", "n1"), ("a", "n2"), ("b", "n1"), ("d", "")):
        spec = {"nodeName": node} if node else {}
        store.create("pods", [Key(f"x/{name}")], [{"metadata": {"name": name}, "spec": spec}], START)

    assert [key for key, _ in accessors.pods_on(store, ["n1"])] == ["x/c", "x/b"]
    assert [key for key, _ in accessors.pods_on(store, ["n2", "n3"])] == ["x/a"]


@pytest.mark.parametrize(("text", "length"), [("90s", seconds(90)), ("-3s", None), ("soon", None)])
def test_a_negative_or_malformed_duration_annotation_is_ignored(text: str, length: Duration | None) -> None:
    annotated = pod(annotations={"batkube.io/stop-time": text})

    assert accessors.duration_annotation(annotated, "batkube.io/stop-time") == length
    assert accessors.duration_annotation(annotated, "batkube.io/other") is None


def test_a_disrupted_pod_keeps_its_other_conditions() -> None:
    status = accessors.disruption_status(pod(), "PreemptionByScheduler", "preempted", START)

    assert [each["type"] for each in status["conditions"]] == ["Ready", "DisruptionTarget"]
    assert status["conditions"][1]["lastTransitionTime"] == rfc3339(START)


def test_the_restarts_of_a_pod_are_those_of_its_least_stable_container() -> None:
    statuses = [{"restartCount": 2}, {"restartCount": 5}, {"restartCount": 0}]

    assert accessors.restarts_of({"status": {"containerStatuses": statuses}}) == 5


def test_an_eviction_names_its_pod() -> None:
    eviction = accessors.eviction_of(Key("shop/web"))

    assert (eviction["apiVersion"], eviction["kind"]) == ("policy/v1", "Eviction")
    assert eviction["metadata"] == {"namespace": "shop", "name": "web"}
