"""`batkube serve` with the real kube-controller-manager as a client."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from tests.process_ends import wait_for_end

from clients.kubectl import Kubectl
from clients.serving import Served, command, served

MANAGER = "kube-controller-manager@1.34.4"
LOG = "kube-controller-manager.log"
WEB = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "web:1"}]}},
    },
}


@pytest.fixture(scope="module")
def managed(built_program: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A simulated cluster with the real controllers."""
    folder = tmp_path_factory.mktemp("managed") / "out"
    with served(folder, "--platform", "4x4,16Gi", "--controllers", built_program(MANAGER)) as running:
        yield running


@pytest.fixture
def kubectl(managed: Served, kubectl_program: Path, tmp_path: Path, namespace: str) -> Kubectl:
    everywhere = Kubectl(kubectl_program, managed.kubeconfig, tmp_path)
    everywhere("create", "namespace", namespace)
    return everywhere.within(namespace)


def only_child(pid: int) -> int:
    """Wait for the only child of a process, and return its id."""
    deadline = time.monotonic() + 30
    while not (texts := Path(f"/proc/{pid}/task/{pid}/children").read_text().split()) and time.monotonic() < deadline:
        time.sleep(0.05)
    (text,) = texts
    return int(text)


def items(kubectl: Kubectl, kind: str) -> list[dict]:
    return json.loads(kubectl("get", kind, "-o", "json", "--show-managed-fields"))["items"]


def test_a_deployment_is_created_updated_and_deleted_by_the_real_controllers(managed: Served, kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=yaml.safe_dump(WEB))
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/web", "--timeout=50s")

    pods, (replicas,) = items(kubectl, "pods"), items(kubectl, "replicasets")
    assert [pod["status"]["phase"] for pod in pods] == ["Running"] * 3
    assert {owner["name"] for pod in pods for owner in pod["metadata"]["ownerReferences"]} == {
        replicas["metadata"]["name"]
    }
    managers = {entry["manager"] for entry in replicas["metadata"]["managedFields"]}
    assert managers == {"kube-controller-manager"}, "our controllers have other names"
    assert '"Starting" version="v1.34.4"' in (managed.kubeconfig.parent / LOG).read_text()

    kubectl("set", "image", "deployment/web", "c=web:2")
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/web", "--timeout=50s")
    kubectl("wait", "pod", "--for=delete", "--timeout=50s", *[f"{pod['metadata']['name']}" for pod in pods])
    images = [pod["spec"]["containers"][0]["image"] for pod in items(kubectl, "pods")]
    assert images == ["web:2"] * 3

    kubectl("delete", "deployment", "web", "--cascade=foreground", "--timeout=50s")
    assert items(kubectl, "pods") == items(kubectl, "replicasets") == []


def test_a_job_is_completed_by_the_real_controllers(kubectl: Kubectl) -> None:
    kubectl("create", "job", "brief", "--image=i", "--", "sleep", "1")
    kubectl("wait", "job/brief", "--for=condition=complete", "--timeout=50s")

    (job,) = items(kubectl, "jobs")
    assert job["status"]["succeeded"] == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_real_controllers_are_stopped_with_the_server(
    built_program: Callable[[str], str], tmp_path: Path, number: signal.Signals
) -> None:
    line = command(tmp_path / "out", "--platform", "2x4", "--controllers", built_program(MANAGER))
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("serving 2 nodes")
            manager = only_child(process.pid)

            process.send_signal(number)
            _, errors = process.communicate(timeout=30)
        finally:
            process.kill()

    assert (process.returncode, errors) == (0, "")
    wait_for_end(manager)


def test_a_server_whose_real_controllers_exit_fails_with_their_output(
    built_program: Callable[[str], str], tmp_path: Path
) -> None:
    line = command(tmp_path / "out", "--platform", "2x4", "--controllers", f"{built_program(MANAGER)} --nonsense")

    result = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)

    assert result.returncode == 1
    assert "kube-controller-manager@1.34.4 ended with exit code 1" in result.stderr
    assert "unknown flag: --nonsense" in result.stderr
