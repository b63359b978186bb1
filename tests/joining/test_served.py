"""KubeFlux and policies as programs of their own, against `batkube serve` as against any cluster."""

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
    with served(tmp_path_factory.mktemp("served") / "out", "--platform", "3x4,8Gi") as running:
        yield running


@contextlib.contextmanager
def program(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-m", "batkube", *words], stderr=subprocess.PIPE)
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=30)


def create(access: ClusterConnection, name: str, scheduler: str, cpu: str, **labels: str) -> None:
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


def test_kubeflux_binds_pods_and_whole_groups_beside_the_default_scheduler(cluster: Served) -> None:
    access = ClusterConnection(cluster.kubeconfig)
    create(access, "others", "default-scheduler", "3")
    [taken] = await_nodes(access, "others")
    group = {"fluence.pod-group": "g", "fluence.group-size": "2"}
    create(access, "member-0", "kubeflux", "4", **group)
    create(access, "single", "kubeflux", "1")

    with program("kubeflux", "--kubeconfig", str(cluster.kubeconfig)):
        single = await_nodes(access, "single")
        assert node_of(access, "member-0") == ""
        for name in ("single",):
            access.delete(f"{PODS}/{name}", gracePeriodSeconds=0)
        create(access, "member-1", "kubeflux", "4", **group)
        members = await_nodes(access, "member-0", "member-1")

    assert single
    assert sorted([taken, *members]) == ["node-0", "node-1", "node-2"]
    for name in ("others", "member-0", "member-1"):
        access.delete(f"{PODS}/{name}", gracePeriodSeconds=0)


def test_a_policy_schedules_on_a_cluster_as_it_does_in_a_run(cluster: Served) -> None:
    access = ClusterConnection(cluster.kubeconfig)
    for name in "abc":
        create(access, f"easy-{name}", "batkube", "4")

    with program("scheduler", "--policy", "easy", "--kubeconfig", str(cluster.kubeconfig)):
        nodes = await_nodes(access, "easy-a", "easy-b", "easy-c")

    assert nodes == ["node-0", "node-1", "node-2"]
    for name in "abc":
        access.delete(f"{PODS}/easy-{name}", gracePeriodSeconds=0)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["kubeflux"], "the kubeconfig is missing"),
        (["kubeflux", "--kubeconfig", "nowhere"], "no such file"),
        (["kubeflux", "--kubeconfig", "x", "--sync", "sometimes"], "one of none, own, rebuild, deltas"),
        (["kubeflux", "--kubeconfig", "x", "--match-policy", "tall"], "tall"),
        (["scheduler", "--kubeconfig", "x"], "the policy is missing"),
        (["scheduler", "--policy", "esay", "--kubeconfig", "x"], "no such file"),
    ],
)
def test_misuse_is_one_message(words: list[str], problem: str, tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "batkube", *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert result.returncode == 2
    assert problem in result.stderr
    assert "Traceback" not in result.stderr
