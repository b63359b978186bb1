"""The routes of a pod on the architecture page: real runs execute every file, and no route is long."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from clients.serving import served
from test_architecture import PAGE

#: Files that an engineer reads to follow a pod, at most.
MAX_FILES = 20
TRACER = [sys.executable, str(Path(__file__).parent / "trace_modules.py")]
WORKLOAD = {
    "nb_res": 4,
    "jobs": [{"id": "1", "subtime": 1, "res": 2, "profile": "sleep"}],
    "profiles": {"sleep": {"type": "delay", "delay": 10}},
}
LABELS = {"app": "web"}
DEPLOYMENT = {
    "metadata": {"name": "web"},
    "spec": {
        "selector": {"matchLabels": LABELS},
        "template": {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}},
    },
}


def listed_files(title: str) -> list[str]:
    """Return the files of a route, in the order of the page."""
    section = PAGE.split(f"**{title}:**", 1)[1].lstrip().split("\n\n", 1)[0]
    return re.findall(r"^\d+\. `([\w/]+\.py)`", section, re.MULTILINE)


def executed_modules(folder: Path, scheduler: str) -> set[str]:
    """Run the workload under a scheduler; return the modules that it executed."""
    (folder / "workload.json").write_text(json.dumps(WORKLOAD))
    options = ["--workload", "workload.json", "--platform", "4x1", "--scheduler", scheduler, "--out", "out", "--quiet"]
    subprocess.run([*TRACER, "modules.json", "run", *options], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return set(json.loads((folder / "modules.json").read_text()))


def check_route(route: list[str], executed: set[str]) -> None:
    """Check that a route is short, visits no file twice, and that a run executed all of it."""
    assert 10 < len(route) <= MAX_FILES
    assert len(set(route)) == len(route)
    assert [name for name in route if name not in executed] == []


def test_a_job_under_a_policy_takes_the_route_of_the_page(tmp_path: Path) -> None:
    check_route(listed_files("A job under a policy"), executed_modules(tmp_path, "policy:easy"))


def test_a_job_under_kube_scheduler_takes_the_route_of_the_page(tmp_path: Path, kube_scheduler: str) -> None:
    check_route(listed_files("A job under kube-scheduler"), executed_modules(tmp_path, kube_scheduler))


def test_a_served_deployments_pod_takes_the_route_of_the_page(tmp_path: Path) -> None:
    pytest.importorskip("kubernetes", reason="needs the Python client: pip install kubernetes")
    from kubernetes import client, config

    modules = tmp_path / "modules.json"
    with (
        served(tmp_path / "out", "--platform", "1x4,8Gi", program=[*TRACER, str(modules)]) as server,
        config.new_client_from_config(str(server.kubeconfig)) as api,
    ):
        client.AppsV1Api(api).create_namespaced_deployment("default", DEPLOYMENT)
        phases: list[str] = []
        deadline = time.monotonic() + 180
        while phases != ["Running"]:
            assert time.monotonic() < deadline, phases
            time.sleep(0.1)
            phases = [pod.status.phase for pod in client.CoreV1Api(api).list_namespaced_pod("default").items]

    check_route(listed_files("A Deployment's pod in `serve`"), set(json.loads(modules.read_text())))
