"""Measure the same pods on a real control plane, in real time, and in a run in virtual time; see README.md."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from batkube.emulation.client.connection import ClusterConnection
from batkube.emulation.control_plane.commands import NO_LIMITS
from batkube.emulation.control_plane.plane import ControlPlane, control_plane

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "control_plane.md"
BATKUBE = str(Path(sys.executable).with_name("batkube"))
SCHEDULER = "kube-scheduler@1.34.4"
PODS = "/api/v1/namespaces/default/pods"
#: With kube-scheduler's default of 50 requests a second, the limit would determine the result.
FAST_CLIENT = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "clientConnection": {"qps": 100_000, "burst": 100_000},
}
LENGTH_S = 3600


@dataclass(frozen=True, slots=True)
class Measured:
    """The cost of one side: real seconds, CPU seconds by program, and peak resident bytes by program."""

    real_s: float
    cpu_s: dict[str, float]
    peak_bytes: dict[str, int]


def on_control_plane(nodes: str, pods: int) -> Measured:
    """Create the pods through the API on eight connections; measure until the last one is bound."""
    with (
        tempfile.TemporaryDirectory() as name,
        control_plane(Path(name) / "plane", nodes, limits=NO_LIMITS, report=_report) as plane,
    ):
        access = ClusterConnection(plane.kubeconfig)
        before, began_s = plane.cpu_seconds(), time.perf_counter()
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda number: access.create(PODS, _pod(number)), range(pods)))
        _wait_until_bound(plane, access)
        real_s = time.perf_counter() - began_s
        cpu_s = {program: used - before.get(program, 0.0) for program, used in plane.cpu_seconds().items()}
        return Measured(real_s, cpu_s, plane.peak_memory_bytes())


def _wait_until_bound(plane: ControlPlane, access: ClusterConnection) -> None:
    while access.get(PODS, fieldSelector="spec.nodeName=", limit=1)["items"]:
        plane.check_alive()
        time.sleep(0.5)


def _pod(number: int) -> dict[str, object]:
    container = {"name": "job", "image": "batkube.io/simulated", "resources": {"requests": {"cpu": "1"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"w0-{number}", "annotations": {"batkube.io/duration": f"{LENGTH_S}s"}},
        "spec": {"containers": [container], "restartPolicy": "Never"},
    }


def on_virtual_time(nodes: str, pods: int) -> Measured:
    """Simulate the pods; measure the whole command, from its start to its outputs, not only until all are bound."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        jobs = [{"id": str(number), "subtime": 0, "res": 1, "profile": "one", "cpu": "1"} for number in range(pods)]
        profiles = {"one": {"type": "delay", "delay": LENGTH_S}}
        workload, configuration, out = folder / "w.json", folder / "configuration.yaml", folder / "out"
        workload.write_text(json.dumps({"nb_res": 1, "jobs": jobs, "profiles": profiles}))
        configuration.write_text(json.dumps(FAST_CLIENT))
        command = [BATKUBE, "run", "--quiet", "--workload", str(workload), "--platform", nodes, "--out", str(out)]
        command += ["--scheduler", SCHEDULER, "--scheduler-config", str(configuration), "--resources", "requests"]
        began_s = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        real_s = time.perf_counter() - began_s
        real = json.loads((out / "manifest.json").read_text())["real"]
        (scheduler,) = real["programs"]
        cpu_s = {"kube-scheduler": scheduler["cpu_s"], "batkube": real["cpu_s"]}
        peaks = {"kube-scheduler": scheduler["peak_memory_bytes"], "batkube": real["peak_memory_bytes"]}
        return Measured(real_s, cpu_s, peaks)


def _line(name: str, pods: int, measured: Measured) -> str:
    total_s = sum(measured.cpu_s.values())
    split = ", ".join(f"{program} {cpu_s:.1f}" for program, cpu_s in measured.cpu_s.items())
    memory = ", ".join(f"{program} {peak / 2**20:.0f}" for program, peak in measured.peak_bytes.items())
    return f"| {name} | {measured.real_s:.1f} | {pods / measured.real_s:.0f} | {total_s:.1f} | {split} | {memory} |"


def _report(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    """Run both sides for each number of nodes and append the table to the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("nodes", nargs="*", type=int, default=[1000, 5000])
    parser.add_argument("--pods", type=int, default=10_000)
    options = parser.parse_args()
    subprocess.run([BATKUBE, "schedulers", "build", SCHEDULER], check=True, stdout=subprocess.DEVNULL)
    load = os.getloadavg()[0]
    lines = [
        "",
        f"## {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, load {load:.1f}",
        "",
        f"{options.pods:,} pods of one cpu; `python benchmarks/control_plane.py`",
        "",
        "| where | real s | pods / s | CPU s | of which | MiB at most |",
        "|---|---|---|---|---|---|",
    ]
    for count in options.nodes:
        nodes = f"{count}x32,128Gi"
        for name, measure in (("control plane", on_control_plane), ("virtual time", on_virtual_time)):
            lines.append(_line(f"{count:,} nodes, {name}", options.pods, measure(nodes, options.pods)))
            print(lines[-1], flush=True)
    with RESULTS.open("a", encoding="utf-8") as results:
        results.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
