"""Load a cluster for hours, and sample latencies, memory and errors: `batkube serve`, or a real control plane.

    python benchmarks/soak.py serve --minutes 120 --out soak-serve.csv
    python benchmarks/soak.py real --minutes 30 --out soak-real.csv

The load: 100 pods per second are created, run for 5 s, and are deleted 30 s after their creation. 15 watches of all
pods and 30 of one node's pods read everything; 5 of all pods read 4 KiB per second. A mutating webhook changes the pods
of a Deployment that is rolled out every minute. A validating webhook is called for every tenth of the other pods; it
lets every fiftieth call time out (1 s, Ignore). Every three minutes a node is deleted, and it returns a minute later.
Other connections list 50 pods five times a second and get one pod ten times a second. Every five seconds kubectl gets
and labels a pod.

The real control plane is etcd (without fsync), kube-apiserver, kube-controller-manager and kube-scheduler, without rate
limits, and KWOK in place of kubelets. Its figures are those of kube-apiserver and etcd; those of all programs have
their own columns.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import csv
import functools
import json
import multiprocessing
import os
import queue
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from api import PODS, Served, ours, pod  # also adds the folder of the tests to the path
from batkube.emulation.client.connection import ClusterConnection
from batkube.emulation.control_plane.commands import NO_LIMITS
from batkube.emulation.control_plane.plane import control_plane
from client_processes import running
from clients.kubectl import Kubectl, build_kubectl
from hostile import kubectl_times_ms
from soak_clients import Access, Recorder, Report, WatchCounts, change_and_read, change_priority, watch_pods
from soak_hooks import Registration, webhooks

OPERATIONS = ("create", "create checked", "delete", "list of 50", "get", "kubectl", "rollout")
#: Programs whose memory and CPU time are compared with those of `batkube serve`.
SERVERS = ("batkube", "kube-apiserver", "etcd")
_KUBECTL_INTERVAL_S = 5.0
_ROLLOUT_INTERVAL_S = 60.0
_NODE_INTERVAL_S, _NODE_ABSENCE_S = 180.0, 60.0
_DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
_REPLICAS = 20


class Target(NamedTuple):
    """A cluster under load."""

    kubeconfig: Path
    #: By name.
    programs: dict[str, Served]


@contextlib.contextmanager
def served_target(folder: Path, platform: str) -> Iterator[Target]:
    """Run `batkube serve`."""
    with ours(folder, ("--platform", platform)) as server:
        yield Target(folder / "served" / "kubeconfig", {"batkube": server})


@contextlib.contextmanager
def real_target(folder: Path, platform: str) -> Iterator[Target]:
    """Run a real control plane."""
    with control_plane(folder / "plane", platform, limits=NO_LIMITS, report=print) as plane:
        programs = {name: Served(name, "", (pid,)) for name, pid in plane.process_ids().items()}
        yield Target(plane.kubeconfig, programs)


TARGETS = {"serve": served_target, "real": real_target}


def access_of(kubeconfig: Path) -> Access:
    """Return the URL and the token of a kubeconfig."""
    content = yaml.safe_load(kubeconfig.read_text())
    return Access(content["clusters"][0]["cluster"]["server"], content["users"][0]["user"]["token"])


# The load of the administrator


def prepare(cluster: ClusterConnection, registrations: list[Registration]) -> None:
    """Register the webhooks, and create the Deployment and the pods that kubectl uses."""
    for registration in registrations:
        cluster.create(registration.path, registration.body)
    container = {"name": "web", "image": "web:1", "resources": {"requests": {"cpu": "100m"}}}
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": _REPLICAS, "selector": {"matchLabels": labels}, "template": template}
    cluster.create(
        _DEPLOYMENTS, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    )
    for number in (1, 3):
        obj = json.loads(pod(number))
        obj["spec"] |= {"nodeName": "node-0", "restartPolicy": "Always"}
        cluster.create(PODS, obj)


class Repetition(NamedTuple):
    """An action that is repeated until the end of the soak."""

    name: str
    interval_s: float
    action: Callable[[Recorder], None]

    def run(self, recorder: Recorder, ended: threading.Event) -> None:
        """Repeat the action; count and print its failures."""
        while not ended.is_set():
            began_s = time.perf_counter()
            try:
                self.action(recorder)
            except Exception as error:
                if ended.is_set():
                    break
                recorder.count(f"{self.name} {type(error).__name__}")
                print(f"{self.name}: {str(error)[-500:]}", file=sys.stderr, flush=True)
            ended.wait(max(0.0, began_s + self.interval_s - time.perf_counter()))


def use_kubectl(kubectl: Kubectl, recorder: Recorder) -> None:
    """Get and label a pod; record the latencies of the requests that kubectl prints."""
    for latency_ms in kubectl_times_ms(kubectl, 0.01):
        recorder.latency("kubectl", time.perf_counter() - latency_ms / 1000)


def roll_out(kubectl: Kubectl, recorder: Recorder) -> None:
    """Restart the Deployment and wait until all its pods are new."""
    began_s = time.perf_counter()
    kubectl("rollout", "restart", "deployment/web")
    kubectl("rollout", "status", "deployment/web", "--timeout=55s")
    recorder.latency("rollout", began_s)


def fail_node(cluster: ClusterConnection, name: str, recorder: Recorder) -> None:
    """Delete a node and create it again after some time."""
    path = f"/api/v1/nodes/{name}"
    node = cluster.get(path)
    cluster.delete(path)
    time.sleep(_NODE_ABSENCE_S)
    status = {field: node["status"][field] for field in ("capacity", "allocatable")}
    cluster.create("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status})
    recorder.count("node returned")


# The samples


def percentile(latencies_ms: list[float], share: float) -> float | None:
    """Return a percentile; None without latencies."""
    ordered = sorted(latencies_ms)
    return round(ordered[min(len(ordered) - 1, int(len(ordered) * share))], 2) if ordered else None


def object_count(cluster: ClusterConnection, path: str) -> int:
    """Return the number of objects of a collection."""
    collection = cluster.get(path, limit=1)
    return len(collection["items"]) + int(collection["metadata"].get("remainingItemCount", 0))


def sample(target: Target, cluster: ClusterConnection, report: Report) -> dict[str, Any]:
    """Return a row of the table."""
    row: dict[str, Any] = {"load average": os.getloadavg()[0]}
    for operation in OPERATIONS:
        latencies_ms = report.latencies_ms.get(operation, [])
        row[f"{operation} count"] = len(latencies_ms)
        for label, share in (("p50", 0.5), ("p99", 0.99), ("max", 1.0)):
            row[f"{operation} {label} ms"] = percentile(latencies_ms, share)
    servers = [program for name, program in target.programs.items() if name in SERVERS]
    for label, programs in (("servers", servers), ("all programs", list(target.programs.values()))):
        row[f"{label} MB"] = round(sum(program.memory_mb() for program in programs), 1)
        row[f"{label} CPU s"] = round(sum(program.cpu_s() for program in programs), 2)
    for name, path in (("pods", "/api/v1/pods"), ("events", "/api/v1/events")):
        row[name] = object_count(cluster, path)
    counts = dict(report.counts)
    row["skipped"], row["watch events"] = counts.pop("skipped", 0), counts.pop("watch events", 0)
    row["other"] = "; ".join(f"{name}: {count}" for name, count in sorted(counts.items()))
    return row


def drain(reports: multiprocessing.Queue[Report]) -> Report:
    """Return everything that was reported since the last call."""
    total = Report()
    with contextlib.suppress(queue.Empty):
        while True:
            total.add(reports.get_nowait())
    return total


def _change_and_read(access: Access, reports: multiprocessing.Queue[Report], rate: float) -> None:
    # The main process has a lower priority than the servers.
    change_priority(2)
    asyncio.run(change_and_read(access, Recorder(reports), rate))


def _watch(access: Access, reports: multiprocessing.Queue[Report], counts: WatchCounts) -> None:
    watch_pods(access, Recorder(reports), counts)


@contextlib.contextmanager
def clients(access: Access, reports: multiprocessing.Queue[Report], options: argparse.Namespace) -> Iterator[None]:
    """Run the clients in processes of their own."""
    processes = [
        multiprocessing.Process(target=_watch, args=(access, reports, WatchCounts(*options.watches)), daemon=True),
        multiprocessing.Process(target=_change_and_read, args=(access, reports, options.rate), daemon=True),
    ]
    with running(processes):
        yield


@contextlib.contextmanager
def administrators(
    target: Target, kubectl: Kubectl, reports: multiprocessing.Queue[Report], node: str
) -> Iterator[None]:
    """Use kubectl, roll out, and delete and create a node in threads."""
    cluster = ClusterConnection(target.kubeconfig)
    ended = threading.Event()
    for repetition in (
        Repetition("kubectl", _KUBECTL_INTERVAL_S, functools.partial(use_kubectl, kubectl)),
        Repetition("rollout", _ROLLOUT_INTERVAL_S, functools.partial(roll_out, kubectl)),
        Repetition("node", _NODE_INTERVAL_S, functools.partial(fail_node, cluster, node)),
    ):
        threading.Thread(target=repetition.run, args=(Recorder(reports), ended), daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def soak(target: Target, folder: Path, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Load the cluster, and yield a row at the end of each interval."""
    reports: multiprocessing.Queue[Report] = multiprocessing.Queue()
    # What is reported after the last sample is not read.
    reports.cancel_join_thread()
    cluster = ClusterConnection(target.kubeconfig)
    kubectl = Kubectl(build_kubectl(), target.kubeconfig, folder)
    with webhooks() as registrations:
        prepare(cluster, registrations)
        change_priority(-1)
        # Processes are forked before threads are started.
        with (
            clients(access_of(target.kubeconfig), reports, options),
            administrators(target, kubectl, reports, options.node),
        ):
            began_s, end_s = time.perf_counter(), options.minutes * 60
            for number in range(1, int(end_s / options.interval) + 1):
                time.sleep(max(0.0, began_s + number * options.interval - time.perf_counter()))
                elapsed_s = round(time.perf_counter() - began_s, 1)
                yield {"elapsed s": elapsed_s, **sample(target, cluster, drain(reports))}


def main() -> None:
    """Measure, and write a row for each interval."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--minutes", type=float, default=120)
    parser.add_argument("--interval", type=float, default=30, help="seconds between samples")
    parser.add_argument("--platform", default="100x16,64Gi")
    parser.add_argument("--node", default="node-99", help="the node that fails")
    parser.add_argument("--rate", type=float, default=100, help="pods per second")
    parser.add_argument(
        "--watches", type=int, nargs=3, default=(15, 30, 5), help="of all pods, of a node's pods, and slow ones"
    )
    parser.add_argument("--out", type=Path, required=True, help="a CSV file")
    options = parser.parse_args()
    # As after Ctrl-C, the servers are stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with (
        tempfile.TemporaryDirectory() as name,
        TARGETS[options.target](Path(name), options.platform) as target,
        options.out.open("w", encoding="utf-8", newline="") as file,
    ):
        writer = None
        for row in soak(target, Path(name), options):
            if writer is None:
                writer = csv.DictWriter(file, list(row), lineterminator="\n")
                writer.writeheader()
            writer.writerow(row)
            file.flush()
            print(row, flush=True)


if __name__ == "__main__":
    main()
