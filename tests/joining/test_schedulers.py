"""KubeFlux and policies as separate programs, against a cluster of `batkube serve`."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from batkube.cluster.store import KubeObject
from batkube.emulation.client.connection import ClusterConnection
from clients.serving import Served, served

pytest.importorskip("kubernetes", reason="needs the Python client: pip install kubernetes")

PODS = "/api/v1/namespaces/default/pods"
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("served") / "out", "--platform", "3x4,8Gi") as cluster:
        yield cluster


@contextlib.contextmanager
def scheduler_program(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-m", "batkube", *arguments], stderr=subprocess.PIPE)
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=30)


def create_pod(access: ClusterConnection, name: str, scheduler: str, cpu: str, **labels: str) -> None:
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": cpu}}}
    spec = {"schedulerName": scheduler, "restartPolicy": "Never", "containers": [container]}
    access.create(PODS, {"metadata": {"name": name, "labels": labels}, "spec": spec})


def pods(access: ClusterConnection) -> dict[str, KubeObject]:
    return {pod["metadata"]["name"]: pod for pod in access.get(PODS)["items"]}


def node_of(access: ClusterConnection, name: str) -> str:
    return str(pods(access)[name]["spec"].get("nodeName", ""))


def await_nodes(access: ClusterConnection, *names: str) -> list[str]:
    end = time.monotonic() + PATIENCE_S
    while not all(node_of(access, name) for name in names):
        assert time.monotonic() < end, f"not all of {names} were bound"
        time.sleep(0.1)
    return [node_of(access, name) for name in names]


def test_kubeflux_binds_single_pods_and_complete_groups_beside_the_default_scheduler(cluster: Served) -> None:
    access = ClusterConnection(cluster.kubeconfig)
    create_pod(access, "others", "default-scheduler", "3")
    [occupied] = await_nodes(access, "others")
    group = {"fluence.pod-group": "g", "fluence.group-size": "2"}
    create_pod(access, "member-0", "kubeflux", "4", **group)
    create_pod(access, "single", "kubeflux", "1")

    with scheduler_program("kubeflux", "--kubeconfig", str(cluster.kubeconfig)):
        single = await_nodes(access, "single")
        assert node_of(access, "member-0") == ""
        access.delete(f"{PODS}/single", gracePeriodSeconds=0)
        create_pod(access, "member-1", "kubeflux", "4", **group)
        members = await_nodes(access, "member-0", "member-1")

    assert single
    assert sorted([occupied, *members]) == ["node-0", "node-1", "node-2"]
    for name in ("others", "member-0", "member-1"):
        access.delete(f"{PODS}/{name}", gracePeriodSeconds=0)


def test_a_policy_schedules_the_pods_of_a_cluster(cluster: Served) -> None:
    access = ClusterConnection(cluster.kubeconfig)
    for name in "abc":
        create_pod(access, f"easy-{name}", "batkube", "4")

    with scheduler_program("scheduler", "--policy", "easy", "--kubeconfig", str(cluster.kubeconfig)):
        nodes = await_nodes(access, "easy-a", "easy-b", "easy-c")

    assert nodes == ["node-0", "node-1", "node-2"]
    for name in "abc":
        access.delete(f"{PODS}/easy-{name}", gracePeriodSeconds=0)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["kubeflux"], "the kubeconfig is missing"),
        (["kubeflux", "--kubeconfig", "nowhere"], "no such file"),
        (["kubeflux", "--kubeconfig", "x", "--sync", "sometimes"], "one of none, own, rebuild, deltas"),
        (["kubeflux", "--kubeconfig", "x", "--match-policy", "tall"], "tall"),
        (["scheduler", "--kubeconfig", "x"], "the policy is missing"),
        (["scheduler", "--policy", "esay", "--kubeconfig", "x"], "no such file"),
    ],
)
def test_a_usage_error_is_reported_without_a_traceback(arguments: list[str], problem: str, tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "batkube", *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert result.returncode == 2
    assert problem in result.stderr
    assert "Traceback" not in result.stderr
