"""Times beyond the longest run, in fields that clients may write: they never come, and cause no errors.

Each of these once made the server log a traceback, and left a pod that did not start or could not be deleted.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from tests.commands import run_batkube

from batkube.kernel.instants import LATEST_NS, bounded_seconds, seconds
from hostile.attacked import Attacked, attacked

LONGEST = 2**63 - 1
PODS = "/api/v1/namespaces/default/pods"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
CRON_JOBS = "/apis/batch/v1/namespaces/default/cronjobs"


def pod_spec(command: str, **more: object) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "command": ["sh", "-c", command]}
    return {"restartPolicy": "Never", "containers": [container], **more}


def made(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    version = "v1" if kind == "Pod" else "batch/v1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def send(server: Attacked, path: str, value: dict[str, Any], method: str = "POST") -> int:
    return int(server.ask(path, method, json.dumps(value).encode()).split()[1])


def test_a_served_cluster_accepts_times_beyond_the_longest_run(tmp_path: Path) -> None:
    toleration = {"key": "x", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": LONGEST}
    template = {"template": {"spec": pod_spec("sleep 1")}}
    cron_job = {"schedule": "* * * * *", "startingDeadlineSeconds": LONGEST, "jobTemplate": {"spec": template}}

    direct = {"containers": [{"name": "c", "image": "i", "command": ["sleep", "10000000000"]}]}

    with attacked(tmp_path, "--platform", "1x4,16Gi", "--speed", "1000") as server:
        taint = {"key": "x", "effect": "NoExecute"}
        node = json.loads(server.ask("/api/v1/nodes/node-0").partition(b"\r\n\r\n")[2])
        statuses = [
            send(server, PODS, made("Pod", "sleeps", pod_spec(f"sleep {LONGEST}"))),
            send(server, PODS, made("Pod", "sleeps-directly", direct)),
            send(server, PODS, made("Pod", "sleeps-less", pod_spec("timeout 9000000000 sleep 9000000000"))),
            send(server, PODS, made("Pod", "stays", pod_spec("sleep 9999", terminationGracePeriodSeconds=LONGEST))),
            send(server, PODS, made("Pod", "tolerates", pod_spec("sleep 9999", tolerations=[toleration]))),
            send(server, JOBS, made("Job", "limited", {**template, "activeDeadlineSeconds": LONGEST})),
            send(server, CRON_JOBS, made("CronJob", "late", cron_job)),
        ]
        time.sleep(0.5)  # 500 virtual seconds
        statuses.append(send(server, f"{PODS}/stays", {"gracePeriodSeconds": LONGEST}, "DELETE"))
        statuses.append(send(server, "/api/v1/nodes/node-0", {**node, "spec": {"taints": [taint]}}, "PUT"))
        time.sleep(0.5)
        phases = {
            pod["metadata"]["name"]: pod["status"]["phase"]
            for pod in json.loads(server.ask(PODS).partition(b"\r\n\r\n")[2])["items"]
        }

    assert statuses == [201] * 7 + [200] * 2
    assert phases["tolerates"] == "Running"
    assert server.errors.read_text() == ""


@pytest.mark.parametrize("sign", [1, -1])
def test_seconds_of_a_field_are_bounded_by_the_longest_run(sign: int) -> None:
    assert bounded_seconds(sign * 90) == seconds(sign * 90)
    assert bounded_seconds(sign * LONGEST) == sign * LATEST_NS


@pytest.mark.parametrize(
    "command",
    ["sleep 10000000000", "sleep 9000000000; sleep 9000000000", "sleep infinity", "timeout 9223372036 sleep 9e99"],
)
def test_a_run_ends_at_until_whatever_containers_sleep(tmp_path: Path, command: str) -> None:
    (tmp_path / "pod.yaml").write_text(json.dumps(made("Pod", "sleeps", pod_spec(command))))
    run = ("run", "--workload", "pod.yaml", "--platform", "1x4,16Gi")

    bounded = run_batkube(tmp_path, *run, "--until", "1d", "--out", "bounded")
    unbounded = run_batkube(tmp_path, *run, "--out", "unbounded")

    assert bounded.returncode == 0, bounded.stderr
    assert unbounded.returncode in (0, 1), unbounded.stderr
    assert "did not start them" not in unbounded.stderr
