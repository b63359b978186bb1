"""Measure how an attack on `batkube serve --bare` slows down a kubectl user, and the memory that it leaves in use.

    python benchmarks/hostile.py [--seconds 20] [--pods 1000]

The attack consists of a thousand silent connections, a thousand watches of another user that are not read, and a flood
of that user's requests, reads and writes, on pipelined connections. The attackers have the lowest priority. The
latencies are those that kubectl prints (`-v=6`), and those of a plain client that sends similar requests on new
connections. For the plain client the table also has the time that the server spent on a core, which would be the
latency on an idle machine.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import multiprocessing
import os
import re
import selectors
import socket
import ssl
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

from api import PODS, Served, ours, pod, request, under_load  # also adds the folder of the tests to the path
from client_processes import running
from clients.kubectl import Kubectl, build_kubectl

_SILENT = 1000
_UNREAD = 1000
_FLOODING = 16
_PIPELINED = 20
_TOOK = re.compile(r"(?:milliseconds=|in )(\d+)")


def connect(url: str, *, tls: bool) -> socket.socket:
    """Open a connection."""
    host = urlsplit(url)
    connection = socket.create_connection((host.hostname or "", host.port or 0))
    return ssl._create_unverified_context().wrap_socket(connection) if tls else connection


# The attackers

#: The attackers have their own user and token.
other_request = functools.partial(request, token="other-token")


def stay_silent(url: str) -> None:
    """Connect and send nothing, or only the start of a TLS handshake; reconnect every ten seconds."""
    while True:
        connections = [connect(url, tls=False) for _ in range(_SILENT)]
        for connection in connections[::2]:
            connection.sendall(b"\x16\x03\x01\x02\x00\x01\x00")
        time.sleep(10)
        for connection in connections:
            connection.close()


def watch_unread(url: str) -> None:
    """Watch all pods without reading the events."""
    connections = [connect(url, tls=True) for _ in range(_UNREAD)]
    for connection in connections:
        connection.sendall(other_request("GET", f"{PODS}?watch=true&resourceVersion=0"))
    time.sleep(3600)


def flood(url: str) -> None:
    """Send requests without a pause on several connections."""
    requests = (
        other_request("GET", f"{PODS}/pod-1")
        + other_request("GET", f"{PODS}?limit=50")
        + other_request("GET", "/api/v1/nodes")
    )
    requests += other_request("POST", f"{PODS}?dryRun=All", pod(10**9)) + other_request("PUT", f"{PODS}/pod-2", b"{}")
    with selectors.DefaultSelector() as selector:
        for _ in range(_FLOODING):
            connection = connect(url, tls=True)
            connection.setblocking(False)
            selector.register(connection, selectors.EVENT_READ)
            connection.send(requests * _PIPELINED)
        while True:
            for key, _ in selector.select():
                with contextlib.suppress(OSError):
                    while key.fileobj.recv(1 << 18):  # type: ignore[union-attr]
                        pass
                with contextlib.suppress(OSError):
                    key.fileobj.send(requests * _PIPELINED)  # type: ignore[union-attr]


def attack_with_low_priority(attack: Callable[[str], None], url: str) -> None:
    """Attack with the lowest priority."""
    os.nice(19)
    attack(url)


@contextlib.contextmanager
def attackers(url: str, *attacks: Callable[[str], None]) -> Iterator[None]:
    """Run each attack in its own process."""
    processes = [
        multiprocessing.Process(target=attack_with_low_priority, args=(attack, url), daemon=True) for attack in attacks
    ]
    with running(processes):
        yield


# The user


def on_core_ms(server: Served) -> float:
    """Return how long the server has run on a core so far (Linux: Documentation/scheduler/sched-stats.rst)."""
    return sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in server.processes) / 1e6


def stolen_ms() -> float:
    """Return how long the host of this virtual machine has withheld cores from it so far (proc(5), steal)."""
    return int(Path("/proc/stat").read_text().split()[8]) * 1000 / os.sysconf("SC_CLK_TCK")


def plain_times_ms(server: Served, seconds: float) -> tuple[list[float], list[float]]:
    """Get a pod and a list, each on a new connection; return the latencies, TLS handshakes included.

    The second list has the time that the server spent on a core during each request.
    """
    times, on_core, end = [], [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        for path in (f"{PODS}/pod-1", f"{PODS}?limit=50"):
            start, on_core_before = time.perf_counter(), on_core_ms(server)
            with connect(server.url, tls=True) as connection:
                connection.sendall(request("GET", path))
                connection.recv(1 << 16)
            times.append((time.perf_counter() - start) * 1000)
            on_core.append(on_core_ms(server) - on_core_before)
        time.sleep(0.1)
    return times, on_core


def kubectl_times_ms(kubectl: Kubectl, seconds: float) -> list[float]:
    """Run kubectl commands repeatedly; return the latencies that kubectl prints."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for command in (["get", "pod", "pod-1"], ["label", "pod", "pod-3", f"n={len(times)}", "--overwrite"]):
            times += map(float, _TOOK.findall(kubectl(*command, "-v=6")))
        time.sleep(0.1)
    return times


def format_times(times_ms: list[float]) -> str:
    """Return a cell of the table."""
    times_ms.sort()
    p50, p99 = (times_ms[int(len(times_ms) * share)] for share in (0.5, 0.99))
    return f"{p50:.0f} / {p99:.0f} / {times_ms[-1]:.0f} ms ({len(times_ms)})"


def memory_after(server: Served, before_mb: float) -> float:
    """Return the memory after it has been released, or after half a minute."""
    for _ in range(30):
        time.sleep(1)
        if server.memory_mb() - before_mb < 20:
            break
    return server.memory_mb()


def main() -> None:
    """Measure and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20, help="duration of the measurement of each client")
    parser.add_argument("--pods", type=int, default=1000)
    options = parser.parse_args()
    program = build_kubectl()
    with tempfile.TemporaryDirectory() as name, ours(Path(name)) as server:
        kubectl = Kubectl(program, Path(name) / "served" / "kubeconfig", Path(name))
        under_load(server, "create", range(options.pods))
        rows = {"calm": (*plain_times_ms(server, 3), kubectl_times_ms(kubectl, 5))}
        time.sleep(5)
        before = peak = server.memory_mb()
        with attackers(server.url, stay_silent, watch_unread, flood):
            time.sleep(5)
            stolen = stolen_ms()
            plain = plain_times_ms(server, options.seconds)
            rows["under attack"] = *plain, kubectl_times_ms(kubectl, options.seconds)
            stolen = stolen_ms() - stolen
            peak = server.memory_mb()
        after = memory_after(server, before)
    print("| p50 / p99 / longest answer | plain client | on the server's core | kubectl |")
    print("|---|---|---|---|")
    for label, columns in rows.items():
        print(f"| {label} | {' | '.join(map(format_times, columns))} |")
    print(f"\nMemory: {before:.0f} MB before, {peak:.0f} MB under attack, {after:.0f} MB after.")
    print(f"The machine's host withheld cores for {stolen:.0f} ms during the attack.")


if __name__ == "__main__":
    main()
