"""The Python client: the package `kubernetes`."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml

from clients.faulty_network import network_to
from clients.serving import Served
from clients.transcripts import MANIFESTS

pytest.importorskip("kubernetes", reason="needs the Python client: pip install kubernetes")

from kubernetes import client, config, dynamic, utils, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock
from urllib3.exceptions import HTTPError


@pytest.fixture(scope="module")
def api(cluster: Served) -> Iterator[client.ApiClient]:
    """A client of the simulated cluster."""
    with config.new_client_from_config(str(cluster.kubeconfig)) as connected:
        yield connected


@pytest.fixture
def core(api: client.ApiClient, namespace: str) -> client.CoreV1Api:
    """A client of the core group; the namespace of the test is created."""
    group = client.CoreV1Api(api)
    group.create_namespace({"metadata": {"name": namespace}})
    return group


def pod(name: str, *command: str, **labels: str) -> dict[str, Any]:
    """Return a pod that runs `command`; without one, it runs forever."""
    container = {"name": "only", "image": "busybox", **({"command": list(command)} if command else {})}
    return {"metadata": {"name": name, "labels": labels}, "spec": {"restartPolicy": "Never", "containers": [container]}}


def config_map(name: str, **data: str) -> dict[str, Any]:
    """Return a ConfigMap with a label, because every namespace has another one."""
    return {"metadata": {"name": name, "labels": {"made-by": "test"}}, "data": data}


WITH_LABEL = {"label_selector": "made-by=test"}


def wait_for(description: str, check: Any, seconds: float = 20.0) -> Any:  # noqa: ANN401 - the result of `check`
    """Call `check` until its result is true, and return the result."""
    deadline = time.monotonic() + seconds
    while not (result := check()):
        assert time.monotonic() < deadline, f"timed out: {description}"
        time.sleep(0.05)
    return result


def test_an_object_is_created_read_changed_listed_and_deleted(core: client.CoreV1Api, namespace: str) -> None:
    created = core.create_namespaced_config_map(namespace, config_map("settings", color="red"))
    created.data["color"] = "blue"
    replaced = core.replace_namespaced_config_map("settings", namespace, created)

    assert core.read_namespaced_config_map("settings", namespace).data == {"color": "blue"}
    assert replaced.metadata.uid == created.metadata.uid
    assert int(replaced.metadata.resource_version) > int(created.metadata.resource_version)
    assert [one.metadata.name for one in core.list_namespaced_config_map(namespace, **WITH_LABEL).items] == ["settings"]

    assert core.delete_namespaced_config_map("settings", namespace)["status"] == "Success"
    assert core.list_namespaced_config_map(namespace, **WITH_LABEL).items == []


def test_an_error_has_a_code_and_a_reason_in_the_body(core: client.CoreV1Api, namespace: str) -> None:
    stale = core.create_namespaced_config_map(namespace, config_map("settings"))
    core.patch_namespaced_config_map("settings", namespace, {"data": {"a": "b"}})

    with pytest.raises(ApiException) as missing:
        core.read_namespaced_pod("absent", namespace)
    with pytest.raises(ApiException) as conflict:
        core.replace_namespaced_config_map("settings", namespace, stale)
    with pytest.raises(ApiException) as invalid:
        core.create_namespaced_pod(namespace, {"metadata": {"name": "Bad_Name"}, "spec": {"containers": []}})

    assert [error.value.status for error in (missing, conflict, invalid)] == [404, 409, 422]
    bodies = [yaml.safe_load(error.value.body) for error in (missing, conflict, invalid)]
    assert [body["reason"] for body in bodies] == ["NotFound", "Conflict", "Invalid"]
    assert [cause["field"] for cause in bodies[2]["details"]["causes"]] == ["metadata.name", "spec.containers"]


@pytest.mark.parametrize(
    ("media_type", "patch", "data"),
    [
        ("application/json-patch+json", [{"op": "replace", "path": "/data/a", "value": "2"}], {"a": "2", "b": "1"}),
        ("application/merge-patch+json", {"data": {"a": None}}, {"b": "1"}),
        ("application/strategic-merge-patch+json", {"data": {"$patch": "replace", "c": "3"}}, {"c": "3"}),
    ],
)
def test_every_kind_of_patch_is_applied(
    core: client.CoreV1Api, namespace: str, media_type: str, patch: object, data: dict[str, str]
) -> None:
    core.create_namespaced_config_map(namespace, config_map("settings", a="1", b="1"))

    patched = core.patch_namespaced_config_map("settings", namespace, patch, _content_type=media_type)

    assert patched.data == data


def test_a_list_is_paginated(core: client.CoreV1Api, namespace: str) -> None:
    for number in range(7):
        core.create_namespaced_config_map(namespace, config_map(f"settings-{number}"))

    pages, token = [], None
    while token != "":
        page = core.list_namespaced_config_map(namespace, limit=3, _continue=token, **WITH_LABEL)
        pages.append([one.metadata.name for one in page.items])
        token = page.metadata._continue or ""

    assert [len(page) for page in pages] == [3, 3, 1]
    assert [name for page in pages for name in page] == [f"settings-{number}" for number in range(7)]


def test_a_pod_succeeds_and_has_a_log(core: client.CoreV1Api, namespace: str) -> None:
    core.create_namespaced_pod(namespace, pod("worker", "sleep", "1", app="batch"))

    phases = []
    for event in watch.Watch().stream(
        core.list_namespaced_pod, namespace, label_selector="app=batch", timeout_seconds=20
    ):
        phases.append(event["object"].status.phase)
        if phases[-1] == "Succeeded":
            break

    assert list(dict.fromkeys(phases))[-2:] == ["Running", "Succeeded"]
    state = core.read_namespaced_pod("worker", namespace).status.container_statuses[0].state.terminated
    assert (state.exit_code, state.finished_at - state.started_at) == (0, timedelta(seconds=1))
    assert core.read_namespaced_pod_log("worker", namespace).splitlines()[-1].endswith("exit code 0 after 1 s")


def test_a_watch_resumes_after_its_connection_was_cut(cluster: Served, core: client.CoreV1Api, namespace: str) -> None:
    events: list[tuple[str, str]] = []
    watching = watch.Watch()
    version = core.list_namespaced_config_map(namespace).metadata.resource_version
    with network_to(cluster.port) as network, config.new_client_from_config(str(cluster.kubeconfig)) as connected:
        connected.configuration.host = f"https://127.0.0.1:{network.port}"
        list_config_maps = client.CoreV1Api(connected).list_namespaced_config_map
        core.create_namespaced_config_map(namespace, config_map("settings-0"))
        while len(events) < 4:
            # The package reconnects after some interruptions, and raises an error for others.
            with contextlib.suppress(HTTPError):
                for event in watching.stream(list_config_maps, namespace, resource_version=version):
                    events.append((event["type"], event["object"].metadata.name))
                    version = watching.resource_version
                    network.cut()
                    if len(events) == 4:
                        break
                    core.create_namespaced_config_map(namespace, config_map(f"settings-{len(events)}"))

    assert events == [("ADDED", f"settings-{number}") for number in range(4)]


def test_a_watch_from_an_expired_version_fails_with_410(core: client.CoreV1Api, namespace: str) -> None:
    events = watch.Watch().stream(core.list_namespaced_config_map, namespace, resource_version="1")

    with pytest.raises(ApiException) as expired:
        next(events)

    assert expired.value.status == 410


def test_the_dynamic_client_supports_custom_resources(
    api: client.ApiClient, core: client.CoreV1Api, namespace: str
) -> None:
    definition = yaml.safe_load((MANIFESTS / "queue-definition.yaml").read_text())
    definition["metadata"]["name"] = "queues.python.example.com"
    definition["spec"]["group"] = "python.example.com"
    utils.create_from_dict(api, definition)

    dynamic_client = dynamic.DynamicClient(api)
    queues = dynamic_client.resources.get(api_version="python.example.com/v1", kind="Queue")
    body = {"apiVersion": "python.example.com/v1", "kind": "Queue", "metadata": {"name": "day"}, "spec": {"slots": 3}}
    created = queues.create(body=body, namespace=namespace)
    queues.patch(
        body={"spec": {"slots": 5}}, name="day", namespace=namespace, content_type="application/merge-patch+json"
    )
    queues.status.patch(
        body={"status": {"used": 1}}, name="day", namespace=namespace, content_type="application/merge-patch+json"
    )
    applied_body = {**body, "spec": {"weight": "high"}}
    applied = queues.server_side_apply(applied_body, namespace=namespace, field_manager="test", force_conflicts=True)

    assert created.spec.weight == "low"
    assert applied.to_dict()["spec"] == {"slots": 5, "weight": "high"}
    assert queues.get(name="day", namespace=namespace).status.used == 1
    with pytest.raises(dynamic.exceptions.UnprocessibleEntityError, match="should be greater than or equal to 1"):
        queues.create(body={**body, "metadata": {"name": "night"}, "spec": {"slots": 0}}, namespace=namespace)
    assert [event["type"] for event in queues.watch(namespace=namespace, timeout=1)] == ["ADDED"]


def test_manifests_are_created_from_a_file(api: client.ApiClient, core: client.CoreV1Api, namespace: str) -> None:
    utils.create_from_yaml(api, str(MANIFESTS / "deployment.yaml"), namespace=namespace)

    apps = client.AppsV1Api(api)
    ready = wait_for(
        "two replicas are ready", lambda: apps.read_namespaced_deployment("web", namespace).status.ready_replicas == 2
    )

    assert ready
    scale = apps.patch_namespaced_deployment_scale("web", namespace, {"spec": {"replicas": 3}})
    assert (scale.kind, scale.spec.replicas) == ("Scale", 3)


def test_updating_an_old_version_of_a_lease_is_a_conflict(
    api: client.ApiClient, core: client.CoreV1Api, namespace: str
) -> None:
    leases = client.CoordinationV1Api(api)
    now = datetime.now(UTC)
    spec = {"holderIdentity": "first", "leaseDurationSeconds": 15, "acquireTime": now.isoformat()}
    lease = leases.create_namespaced_lease(namespace, {"metadata": {"name": "leader"}, "spec": spec})
    rival = leases.read_namespaced_lease("leader", namespace)

    lease.spec.renew_time = now + timedelta(seconds=5)
    renewed = leases.replace_namespaced_lease("leader", namespace, lease)
    rival.spec.holder_identity = "second"
    with pytest.raises(ApiException) as conflict:
        leases.replace_namespaced_lease("leader", namespace, rival)

    assert conflict.value.status == 409
    assert renewed.spec.renew_time == now + timedelta(seconds=5)
    assert leases.read_namespaced_lease("leader", namespace).spec.holder_identity == "first"


class Candidate:
    """Takes part in a leader election in a thread, and leads until it is stopped."""

    def __init__(self, name: str, namespace: str) -> None:
        self.leads, self._is_stopped = threading.Event(), threading.Event()
        #: The election of the package ends only when the work of the leader raises an error.
        self._election = electionconfig.Config(
            LeaseLock("leader", namespace, name),
            lease_duration=2,
            renew_deadline=1.5,
            retry_period=1,
            onstarted_leading=self._work,
            onstopped_leading=lambda: None,
        )
        self._thread = threading.Thread(target=leaderelection.LeaderElection(self._election).run)
        self._thread.start()

    def _work(self) -> None:
        self.leads.set()
        self._is_stopped.wait()
        raise InterruptedError("stopped")

    def stop(self) -> None:
        """Stop leading, and wait for the thread."""
        self._is_stopped.set()
        self._thread.join()


def test_another_candidate_leads_when_the_leader_stops(
    cluster: Served, api: client.ApiClient, core: client.CoreV1Api, namespace: str
) -> None:
    config.load_kube_config(str(cluster.kubeconfig))
    leases = client.CoordinationV1Api(api)
    first = Candidate("first", namespace)
    assert first.leads.wait(20)
    second = Candidate("second", namespace)

    assert leases.read_namespaced_lease("leader", namespace).spec.holder_identity == "first"
    assert not second.leads.is_set()
    first.stop()
    assert second.leads.wait(20)
    assert leases.read_namespaced_lease("leader", namespace).spec.holder_identity == "second"
    second.stop()


def test_exec_is_rejected(core: client.CoreV1Api, namespace: str) -> None:
    core.create_namespaced_pod(namespace, pod("worker"))

    with pytest.raises(ApiException) as error:
        core.connect_get_namespaced_pod_exec("worker", namespace, command=["ls"])

    assert error.value.status == 501
    assert "a simulated cluster cannot execute a command" in error.value.body
