"""A real control plane on this machine: etcd, kube-apiserver, kube-controller-manager, kube-scheduler and KWOK's nodes.

    with control_plane(folder, "16x1") as plane:
        … plane.kubeconfig … plane.cpu_seconds() …

Every program is the published one, without our overlay, in real time. They are built on first use (minutes each), run
natively on loopback, and are ended when the block is left. It is what simulations are compared with.
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
#: KWOK's own default; leases are renewed four times as often.
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
        """Start a program, which writes to its own log."""
        with self.log(name).open("wb") as log:
            # In a session of its own, so that Ctrl-C at a terminal reaches us alone and we end things in order.
            self._processes[name] = subprocess.Popen(
                command,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                start_new_session=True,
                preexec_fn=kill_with_parent(),
            )

    def start_scheduler(self, configuration: Mapping[str, Any] | None = None, arguments: Sequence[str] = ()) -> None:
        """Start kube-scheduler with a configuration and further arguments and wait until it is at work.

        An earlier one is ended. Raises RunFailed.
        """
        earlier = self._processes.pop("kube-scheduler", None)
        if earlier is not None:
            _terminate(earlier)
        self.start("kube-scheduler", self._commands.scheduler(configuration or {}, arguments))
        port = self._commands.scheduler_port
        self.wait_for("the scheduler", lambda: _is_scheduler_ready(port), "kube-scheduler")

    def log(self, name: str) -> Path:
        """Return the log of a program."""
        return self._folder / f"{name}.log"

    def cpu_seconds(self) -> dict[str, float]:
        """Return the CPU seconds that each program has used so far."""
        self.check_alive()
        # Linux: the clock of a process's CPU.
        return {name: time.clock_gettime_ns(~one.pid << 3 | 2) / 1e9 for name, one in self._processes.items()}

    def peak_memory_bytes(self) -> dict[str, int]:
        """Return the largest resident size of each program."""
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
                    f"{name} ended with code {code}; the last lines of {self.log(name)}:\n{self._last_lines(name)}"
                )

    def wait_for(self, what: str, is_so: Callable[[], bool], program_name: str) -> None:
        """Wait for a condition. Raises RunFailed if a program exits, or after the time limit."""

        def is_so_now() -> bool:
            self.check_alive()
            return is_so()

        if not wait_until(is_so_now, _START_TIMEOUT_S):
            log_end = self._last_lines(program_name)
            raise RunFailed(
                f"{what} is not there after {_START_TIMEOUT_S:.0f} s; the last lines of {program_name}:\n{log_end}"
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
    trusting = ssl.create_default_context()
    trusting.check_hostname = False
    trusting.verify_mode = ssl.CERT_NONE
    try:
        with urllib.request.urlopen(f"https://127.0.0.1:{port}/readyz", timeout=5, context=trusting):
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
    """Return the programs of a control plane by name, built if need be; none has our overlay in it."""
    wanted = [msgspec.structs.replace(find_recipe(title), virtual=False) for title in (*_OTHER_PROGRAMS, SCHEDULER)]
    return {one.name: ensure_built(one, cache_folder(), report) for one in wanted}


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
    """Run a control plane whose nodes are the machines of a platform, such as `1000x8,32Gi`; its files go to `folder`.

    Unless it `has_scheduler`, none is started until `start_scheduler`. `limits` are the programs' own unless given
    (`commands.NO_LIMITS`). A longer `lease_s` makes KWOK renew the nodes' leases less often.
    """
    machines = read_platform(platform) if isinstance(platform, str) else platform
    binaries = build_programs(report)
    folder.mkdir(parents=True, exist_ok=True)
    commands = PlaneCommands(folder.resolve(), binaries, limits or RateLimits())
    plane = ControlPlane(folder, commands)
    try:
        access = _start_server(plane, commands)
        plane.start("kube-controller-manager", commands.controller_manager())
        plane.start("kwok", commands.kwok(lease_s))
        _create_nodes(plane, access, machines)
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        plane.wait_for("the default service account", lambda: access.exists(account), "kube-controller-manager")
        if has_scheduler:
            plane.start_scheduler()
        yield plane
    finally:
        plane.stop()


def _start_server(plane: ControlPlane, commands: PlaneCommands) -> ClusterConnection:
    plane.start("etcd", commands.etcd())
    plane.start("kube-apiserver", commands.apiserver())
    plane.wait_for("the server's certificate", commands.certificate.exists, "kube-apiserver")
    access = ClusterConnection(commands.kubeconfig)

    def is_ready() -> bool:
        try:
            return access.is_ready()
        except ClusterUnreachable:
            return False

    plane.wait_for("the API", is_ready, "kube-apiserver")
    return access


def _create_nodes(plane: ControlPlane, access: ClusterConnection, platform: Platform) -> None:
    """Register the machines, and wait until every node is ready and open to pods."""

    def make(node: KubeObject) -> None:
        del node["status"]["conditions"]
        access.create("/api/v1/nodes", node)

    nodes = [node_of(machine, ResourceModel.REQUESTS, START)[1] for machine in platform.machines]
    with ThreadPoolExecutor(_REQUEST_THREADS) as hands:
        list(hands.map(make, nodes))
    own = {node["metadata"]["name"]: len(node["spec"].get("taints", ())) for node in nodes}

    def are_ready() -> bool:
        listed = access.get("/api/v1/nodes")["items"]
        return all(len(node["spec"].get("taints", ())) <= own.get(node["metadata"]["name"], 0) for node in listed)

    plane.wait_for("a ready node for every machine", are_ready, "kwok")
