"""The `kubernetes` package: what scripts and operators in Python use."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml

from clients.cutting import network_to
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
    """The core group, with a namespace of the test's own."""
    found = client.CoreV1Api(api)
    found.create_namespace({"metadata": {"name": namespace}})
    return found


def pod(name: str, *command: str, **labels: str) -> dict[str, Any]:
    """A pod that runs a command, or for ever."""
    container = {"name": "only", "image": "busybox", **({"command": list(command)} if command else {})}
    return {"metadata": {"name": name, "labels": labels}, "spec": {"restartPolicy": "Never", "containers": [container]}}


def config_map(name: str, **data: str) -> dict[str, Any]:
    """A config map that is told from those that every namespace has."""
    return {"metadata": {"name": name, "labels": {"made-by": "test"}}, "data": data}


OURS = {"label_selector": "made-by=test"}


def eventually(describes: str, check: Any, seconds: float = 20.0) -> Any:  # noqa: ANN401 - whatever `check` finds
    """Return what `check` finds once it finds something."""
    end = time.monotonic() + seconds
    while not (found := check()):
        assert time.monotonic() < end, f"it never happened: {describes}"
        time.sleep(0.05)
    return found


def test_an_object_is_created_read_changed_listed_and_deleted(core: client.CoreV1Api, namespace: str) -> None:
    created = core.create_namespaced_config_map(namespace, config_map("settings", color="red"))
    created.data["color"] = "blue"
    replaced = core.replace_namespaced_config_map("settings", namespace, created)

    assert core.read_namespaced_config_map("settings", namespace).data == {"color": "blue"}
    assert replaced.metadata.uid == created.metadata.uid
    assert int(replaced.metadata.resource_version) > int(created.metadata.resource_version)
    assert [one.metadata.name for one in core.list_namespaced_config_map(namespace, **OURS).items] == ["settings"]

    assert core.delete_namespaced_config_map("settings", namespace)["status"] == "Success"
    assert core.list_namespaced_config_map(namespace, **OURS).items == []


def test_an_error_tells_its_code_and_reason_in_the_body(core: client.CoreV1Api, namespace: str) -> None:
    stale = core.create_namespaced_config_map(namespace, config_map("settings"))
    core.patch_namespaced_config_map("settings", namespace, {"data": {"a": "b"}})

    with pytest.raises(ApiException) as missing:
        core.read_namespaced_pod("nobody", namespace)
    with pytest.raises(ApiException) as conflict:
        core.replace_namespaced_config_map("settings", namespace, stale)
    with pytest.raises(ApiException) as invalid:
        core.create_namespaced_pod(namespace, {"metadata": {"name": "Bad_Name"}, "spec": {"containers": []}})

    assert [error.value.status for error in (missing, conflict, invalid)] == [404, 409, 422]
    bodies = [yaml.safe_load(error.value.body) for error in (missing, conflict, invalid)]
    assert [body["reason"] for body in bodies] == ["NotFound", "Conflict", "Invalid"]
    assert [cause["field"] for cause in bodies[2]["details"]["causes"]] == ["metadata.name", "spec.containers"]


@pytest.mark.parametrize(
    ("media_type", "patch", "left"),
    [
        ("application/json-patch+json", [{"op": "replace", "path": "/data/a", "value": "2"}], {"a": "2", "b": "1"}),
        ("application/merge-patch+json", {"data": {"a": None}}, {"b": "1"}),
        ("application/strategic-merge-patch+json", {"data": {"$patch": "replace", "c": "3"}}, {"c": "3"}),
    ],
)
def test_every_kind_of_patch_is_taken(
    core: client.CoreV1Api, namespace: str, media_type: str, patch: object, left: dict[str, str]
) -> None:
    core.create_namespaced_config_map(namespace, config_map("settings", a="1", b="1"))

    patched = core.patch_namespaced_config_map("settings", namespace, patch, _content_type=media_type)

    assert patched.data == left


def test_a_long_list_comes_in_pages(core: client.CoreV1Api, namespace: str) -> None:
    for number in range(7):
        core.create_namespaced_config_map(namespace, config_map(f"settings-{number}"))

    pages, token = [], None
    while token != "":
        page = core.list_namespaced_config_map(namespace, limit=3, _continue=token, **OURS)
        pages.append([one.metadata.name for one in page.items])
        token = page.metadata._continue or ""

    assert [len(page) for page in pages] == [3, 3, 1]
    assert [name for page in pages for name in page] == [f"settings-{number}" for number in range(7)]


def test_a_pod_runs_to_its_end_and_has_a_log(core: client.CoreV1Api, namespace: str) -> None:
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


def test_a_watch_goes_on_where_it_was_when_its_connection_is_cut(
    cluster: Served, core: client.CoreV1Api, namespace: str
) -> None:
    seen: list[tuple[str, str]] = []
    watching = watch.Watch()
    version = core.list_namespaced_config_map(namespace).metadata.resource_version
    with network_to(cluster.port) as network, config.new_client_from_config(str(cluster.kubeconfig)) as connected:
        connected.configuration.host = f"https://127.0.0.1:{network.port}"
        followed = client.CoreV1Api(connected).list_namespaced_config_map
        core.create_namespaced_config_map(namespace, config_map("settings-0"))
        while len(seen) < 4:
            # Some interruptions the package bridges by itself; of others it tells.
            with contextlib.suppress(HTTPError):
                for event in watching.stream(followed, namespace, resource_version=version):
                    seen.append((event["type"], event["object"].metadata.name))
                    version = watching.resource_version
                    network.cut()
                    if len(seen) == 4:
                        break
                    core.create_namespaced_config_map(namespace, config_map(f"settings-{len(seen)}"))

    assert seen == [("ADDED", f"settings-{number}") for number in range(4)]


def test_a_watch_from_a_version_that_is_no_longer_kept_is_told_so(core: client.CoreV1Api, namespace: str) -> None:
    events = watch.Watch().stream(core.list_namespaced_config_map, namespace, resource_version="1")

    with pytest.raises(ApiException) as gone:
        next(events)

    assert gone.value.status == 410


def test_the_dynamic_client_learns_of_a_kind_of_its_users(
    api: client.ApiClient, core: client.CoreV1Api, namespace: str
) -> None:
    definition = yaml.safe_load((MANIFESTS / "queue-definition.yaml").read_text())
    definition["metadata"]["name"] = "queues.python.example.com"
    definition["spec"]["group"] = "python.example.com"
    utils.create_from_dict(api, definition)

    found = dynamic.DynamicClient(api)
    queues = found.resources.get(api_version="python.example.com/v1", kind="Queue")
    body = {"apiVersion": "python.example.com/v1", "kind": "Queue", "metadata": {"name": "day"}, "spec": {"slots": 3}}
    created = queues.create(body=body, namespace=namespace)
    queues.patch(
        body={"spec": {"slots": 5}}, name="day", namespace=namespace, content_type="application/merge-patch+json"
    )
    queues.status.patch(
        body={"status": {"used": 1}}, name="day", namespace=namespace, content_type="application/merge-patch+json"
    )
    wanted = {**body, "spec": {"weight": "high"}}
    applied = queues.server_side_apply(wanted, namespace=namespace, field_manager="test", force_conflicts=True)

    assert created.spec.weight == "low"
    assert applied.to_dict()["spec"] == {"slots": 5, "weight": "high"}
    assert queues.get(name="day", namespace=namespace).status.used == 1
    with pytest.raises(dynamic.exceptions.UnprocessibleEntityError, match="should be greater than or equal to 1"):
        queues.create(body={**body, "metadata": {"name": "night"}, "spec": {"slots": 0}}, namespace=namespace)
    assert [event["type"] for event in queues.watch(namespace=namespace, timeout=1)] == ["ADDED"]


def test_manifests_are_created_from_a_file(api: client.ApiClient, core: client.CoreV1Api, namespace: str) -> None:
    utils.create_from_yaml(api, str(MANIFESTS / "deployment.yaml"), namespace=namespace)

    apps = client.AppsV1Api(api)
    ready = eventually(
        "two replicas are ready", lambda: apps.read_namespaced_deployment("web", namespace).status.ready_replicas == 2
    )

    assert ready
    scale = apps.patch_namespaced_deployment_scale("web", namespace, {"spec": {"replicas": 3}})
    assert (scale.kind, scale.spec.replicas) == ("Scale", 3)


def test_a_lease_is_lost_by_who_writes_an_old_version(
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
    with pytest.raises(ApiException) as late:
        leases.replace_namespaced_lease("leader", namespace, rival)

    assert late.value.status == 409
    assert renewed.spec.renew_time == now + timedelta(seconds=5)
    assert leases.read_namespaced_lease("leader", namespace).spec.holder_identity == "first"


class Candidate:
    """Wants to lead, and does until told to stop."""

    def __init__(self, name: str, namespace: str) -> None:
        self.leads, self.stops = threading.Event(), threading.Event()
        #: The election is over for a candidate whose work fails.
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
        self.stops.wait()
        raise InterruptedError("stops on purpose")

    def stop(self) -> None:
        """Lead no longer, and wait until that is so."""
        self.stops.set()
        self._thread.join()


def test_leadership_passes_to_the_next_when_the_leader_stops(
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


def test_what_containers_would_have_to_do_is_refused(core: client.CoreV1Api, namespace: str) -> None:
    core.create_namespaced_pod(namespace, pod("worker"))

    with pytest.raises(ApiException) as refused:
        core.connect_get_namespaced_pod_exec("worker", namespace, command=["ls"])

    assert refused.value.status == 501
    assert "a simulated cluster cannot execute a command" in refused.value.body
