"""A real control plane on this machine: etcd, kube-apiserver, kube-controller-manager, kube-scheduler and KWOK's nodes.

    with control_plane(folder, "16x1") as plane:
        … plane.kubeconfig … plane.cpu_seconds() …

The programs are the upstream ones, without overlay, in real time. They are built on first use (minutes each), listen
on loopback, and are stopped at the end of the block. Simulations are compared with runs on this control plane.
"""

from __future__ import annotations

import contextlib
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

from batkube.cluster.mapping import ResourceModel, node_of
from batkube.cluster.store import KubeObject
from batkube.emulation.client.connection import ClusterConnection, ClusterUnreachable
from batkube.emulation.client.polling import pause, wait_until
from batkube.emulation.control_plane.commands import PlaneCommands, RateLimits
from batkube.kernel.errors import RunFailed
from batkube.kernel.instants import START
from batkube.platforms.model import Platform
from batkube.platforms.reader import read_platform
from batkube.schedulers.build.builder import ensure_built
from batkube.schedulers.build.toolchains import Report
from batkube.schedulers.installed import cache_folder
from batkube.schedulers.named_programs import find_recipe
from batkube.timing.processes.parent_death import kill_with_parent

SCHEDULER = "kube-scheduler@1.34.4"
_OTHER_PROGRAMS = ("etcd", "kube-apiserver@1.34.4", "kube-controller-manager@1.34.4", "kwok")
#: The time limit for programs to start, on a busy machine.
_START_TIMEOUT_S = 600.0
#: The time between SIGTERM and SIGKILL.
_STOP_TIMEOUT_S = 5.0
_LOG_LINES = 12
#: Parallel requests while nodes are created.
_REQUEST_THREADS = 8
#: The default duration of a node's lease. KWOK renews it after a quarter of that time.
_LEASE_S = 40


class ControlPlane:
    """A running control plane."""

    def __init__(self, folder: Path, commands: PlaneCommands) -> None:
        self._folder = folder
        self._commands = commands
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        #: The administrator's kubeconfig.
        self.kubeconfig = commands.kubeconfig

    def start(self, name: str, command: Sequence[str]) -> None:
        """Start a program with its own log file."""
        with self.log(name).open("wb") as log:
            # A new session, so that Ctrl-C reaches only this process, which stops the programs in order.
            self._processes[name] = subprocess.Popen(
                command,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                start_new_session=True,
                preexec_fn=kill_with_parent(),
            )

    def start_scheduler(self, configuration: Mapping[str, Any] | None = None, arguments: Sequence[str] = ()) -> None:
        """Start kube-scheduler with a configuration and further arguments, and wait until it is ready.

        Stops a running one first. Raises RunFailed.
        """
        previous = self._processes.pop("kube-scheduler", None)
        if previous is not None:
            _terminate(previous)
        self.start("kube-scheduler", self._commands.scheduler(configuration or {}, arguments))
        port = self._commands.scheduler_port
        self.wait_for("the scheduler", lambda: _is_scheduler_ready(port), "kube-scheduler")

    def log(self, name: str) -> Path:
        """Return the log of a program."""
        return self._folder / f"{name}.log"

    def cpu_seconds(self) -> dict[str, float]:
        """Return the CPU seconds of each program since its start."""
        self.check_alive()
        # The id of a process's CPU clock (Linux: include/linux/posix-timers.h, MAKE_PROCESS_CPUCLOCK).
        return {name: time.clock_gettime_ns(~process.pid << 3 | 2) / 1e9 for name, process in self._processes.items()}

    def process_ids(self) -> dict[str, int]:
        """Return the process id of each program."""
        self.check_alive()
        return {name: process.pid for name, process in self._processes.items()}

    def peak_memory_bytes(self) -> dict[str, int]:
        """Return the peak resident set size of each program."""
        self.check_alive()
        sizes = {}
        for name, process in self._processes.items():
            status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
            line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
            sizes[name] = int(line.split()[1]) * 1024
        return sizes

    def check_alive(self) -> None:
        """Raise RunFailed if a program has exited."""
        for name, process in self._processes.items():
            code = process.poll()
            if code is not None:
                raise RunFailed(
                    f"{name} exited with code {code}; the last lines of {self.log(name)}:\n{self._last_lines(name)}"
                )

    def wait_for(self, subject: str, condition: Callable[[], bool], program_name: str) -> None:
        """Wait for a condition. Raises RunFailed if a program exits, or after the time limit."""

        def is_met() -> bool:
            self.check_alive()
            return condition()

        if not wait_until(is_met, _START_TIMEOUT_S):
            log_end = self._last_lines(program_name)
            raise RunFailed(
                f"{subject} is not ready after {_START_TIMEOUT_S:.0f} s; the last lines of {program_name}:\n{log_end}"
            )

    def wait(self, seconds: float) -> None:
        """Sleep while the programs run. Raises RunFailed if one of them has exited."""
        pause(seconds)
        self.check_alive()

    def stop(self) -> None:
        """Stop all programs, in reverse order of their start; their data is discarded."""
        for process in reversed(self._processes.values()):
            _terminate(process)

    def _last_lines(self, name: str) -> str:
        lines = self.log(name).read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(f"  {line}" for line in lines[-_LOG_LINES:])


def _is_scheduler_ready(port: int) -> bool:
    """Return whether a scheduler has synced its caches (/readyz); old versions without this path count as ready."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with urllib.request.urlopen(f"https://127.0.0.1:{port}/readyz", timeout=5, context=context):
            return True
    except urllib.error.HTTPError as error:
        return error.code == 404
    except OSError:
        return False


def _terminate(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def build_programs(report: Report) -> dict[str, Path]:
    """Return the programs of a control plane by name; build missing ones, without overlay."""
    recipes = [msgspec.structs.replace(find_recipe(title), virtual=False) for title in (*_OTHER_PROGRAMS, SCHEDULER)]
    return {recipe.name: ensure_built(recipe, cache_folder(), report) for recipe in recipes}


@contextlib.contextmanager
def control_plane(
    folder: Path,
    platform: str | Platform,
    *,
    has_scheduler: bool = True,
    limits: RateLimits | None = None,
    lease_s: int = _LEASE_S,
    report: Report = lambda _: None,
) -> Iterator[ControlPlane]:
    """Run a control plane in `folder`, whose nodes are the machines of a platform, such as `1000x8,32Gi`.

    Without `has_scheduler`, call `start_scheduler`. By default the programs have their own rate limits; pass
    `commands.NO_LIMITS` for none. A longer `lease_s` makes KWOK renew the nodes' leases less often.
    """
    machines = read_platform(platform) if isinstance(platform, str) else platform
    binaries = build_programs(report)
    folder.mkdir(parents=True, exist_ok=True)
    commands = PlaneCommands(folder.resolve(), binaries, limits or RateLimits())
    plane = ControlPlane(folder, commands)
    try:
        cluster = _start_server(plane, commands)
        plane.start("kube-controller-manager", commands.controller_manager())
        plane.start("kwok", commands.kwok(lease_s))
        _create_nodes(plane, cluster, machines)
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        plane.wait_for("the default service account", lambda: cluster.exists(account), "kube-controller-manager")
        if has_scheduler:
            plane.start_scheduler()
        yield plane
    finally:
        plane.stop()


def _start_server(plane: ControlPlane, commands: PlaneCommands) -> ClusterConnection:
    plane.start("etcd", commands.etcd())
    plane.start("kube-apiserver", commands.apiserver())
    plane.wait_for("the certificate of kube-apiserver", commands.certificate.exists, "kube-apiserver")
    cluster = ClusterConnection(commands.kubeconfig)

    def is_ready() -> bool:
        try:
            return cluster.is_ready()
        except ClusterUnreachable:
            return False

    plane.wait_for("the API", is_ready, "kube-apiserver")
    return cluster


def _create_nodes(plane: ControlPlane, cluster: ClusterConnection, platform: Platform) -> None:
    """Create the nodes, and wait until none has more taints than its machine: all are ready."""

    def create(node: KubeObject) -> None:
        del node["status"]["conditions"]
        cluster.create("/api/v1/nodes", node)

    nodes = [node_of(machine, ResourceModel.REQUESTS, START)[1] for machine in platform.machines]
    with ThreadPoolExecutor(_REQUEST_THREADS) as executor:
        list(executor.map(create, nodes))
    taint_counts = {node["metadata"]["name"]: len(node["spec"].get("taints", ())) for node in nodes}

    def are_ready() -> bool:
        current = cluster.get("/api/v1/nodes")["items"]
        return all(
            len(node["spec"].get("taints", ())) <= taint_counts.get(node["metadata"]["name"], 0) for node in current
        )

    plane.wait_for("a node of every machine", are_ready, "kwok")
