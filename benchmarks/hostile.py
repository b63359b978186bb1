"""What a kubectl user notices of an attack on `batkube serve --bare`, and what memory is left of it.

    python benchmarks/hostile.py [--seconds 20] [--pods 1000]

Beside the user, a thousand connections say nothing, a thousand watches of another user are not read, and a flood of
that user's requests comes on pipelined connections, reads and writes mixed. The times are kubectl's own (`-v=6` tells
how long each answer took); the same requests are also made by a plain client, on a new connection each; and it is told
for how long the server had a core meanwhile, which is what it would take if nobody else used the machine. The attackers
have the lowest priority.
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

from api import PODS, Served, ours, pod, request, under_load  # beside this file; it makes the tests' folder known
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

#: They have a user and a token of their own.
demand = functools.partial(request, token="other-token")


def stay_silent(url: str) -> None:
    """Connect and say nothing, or only the first bytes of a greeting; again when the server has had enough of it."""
    while True:
        connections = [connect(url, tls=False) for _ in range(_SILENT)]
        for connection in connections[::2]:
            connection.sendall(b"\x16\x03\x01\x02\x00\x01\x00")
        time.sleep(10)
        for connection in connections:
            connection.close()


def watch_unread(url: str) -> None:
    """Watch all pods and read nothing."""
    connections = [connect(url, tls=True) for _ in range(_UNREAD)]
    for connection in connections:
        connection.sendall(demand("GET", f"{PODS}?watch=true&resourceVersion=0"))
    time.sleep(3600)


def flood(url: str) -> None:
    """Ask without a pause on many connections at once."""
    asked = demand("GET", f"{PODS}/pod-1") + demand("GET", f"{PODS}?limit=50") + demand("GET", "/api/v1/nodes")
    asked += demand("POST", f"{PODS}?dryRun=All", pod(10**9)) + demand("PUT", f"{PODS}/pod-2", b"{}")
    with selectors.DefaultSelector() as selector:
        for _ in range(_FLOODING):
            connection = connect(url, tls=True)
            connection.setblocking(False)
            selector.register(connection, selectors.EVENT_READ)
            connection.send(asked * _PIPELINED)
        while True:
            for key, _ in selector.select():
                with contextlib.suppress(OSError):
                    while key.fileobj.recv(1 << 18):  # type: ignore[union-attr]
                        pass
                with contextlib.suppress(OSError):
                    key.fileobj.send(asked * _PIPELINED)  # type: ignore[union-attr]


def attack_from_afar(attack: Callable[[str], None], url: str) -> None:
    """Attack with as little of this machine as it has left."""
    os.nice(19)
    attack(url)


@contextlib.contextmanager
def attackers(url: str, *attacks: Callable[[str], None]) -> Iterator[None]:
    """Run each attack in a process of its own."""
    processes = [
        multiprocessing.Process(target=attack_from_afar, args=(attack, url), daemon=True) for attack in attacks
    ]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.join()


# The user


def on_core_ms(server: Served) -> float:
    """Return how long the server has had a core so far (Linux: Documentation/scheduler/sched-stats.rst)."""
    return sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in server.processes) / 1e6


def stolen_ms() -> float:
    """Return how long cores of this machine had work and were lent to another by its host so far (proc(5), steal)."""
    return int(Path("/proc/stat").read_text().split()[8]) * 1000 / os.sysconf("SC_CLK_TCK")


def plain_times_ms(server: Served, seconds: float) -> tuple[list[float], list[float]]:
    """Ask for a pod and for a list on a new connection each time; return how long each took, greetings included.

    Second comes how long the server had a core meanwhile.
    """
    times, on_core, end = [], [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        for path in (f"{PODS}/pod-1", f"{PODS}?limit=50"):
            began, had = time.perf_counter(), on_core_ms(server)
            with connect(server.url, tls=True) as connection:
                connection.sendall(request("GET", path))
                connection.recv(1 << 16)
            times.append((time.perf_counter() - began) * 1000)
            on_core.append(on_core_ms(server) - had)
        time.sleep(0.1)
    return times, on_core


def kubectl_times_ms(kubectl: Kubectl, seconds: float) -> list[float]:
    """Run kubectl commands again and again; return how long each answer took, as kubectl itself tells."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for command in (["get", "pod", "pod-1"], ["label", "pod", "pod-3", f"n={len(times)}", "--overwrite"]):
            times += map(float, _TOOK.findall(kubectl(*command, "-v=6")))
        time.sleep(0.1)
    return times


def told(times_ms: list[float]) -> str:
    """Return a cell of the table."""
    times_ms.sort()
    p50, p99 = (times_ms[int(len(times_ms) * share)] for share in (0.5, 0.99))
    return f"{p50:.0f} / {p99:.0f} / {times_ms[-1]:.0f} ms ({len(times_ms)})"


def memory_after(server: Served, before_mb: float) -> float:
    """Return the memory once it has been given back, or when half a minute has passed."""
    for _ in range(30):
        time.sleep(1)
        if server.memory_mb() - before_mb < 20:
            break
    return server.memory_mb()


def main() -> None:
    """Measure and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20, help="how long each client is measured")
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
        print(f"| {label} | {' | '.join(map(told, columns))} |")
    print(f"\nMemory: {before:.0f} MB before, {peak:.0f} MB under attack, {after:.0f} MB after.")
    print(f"The machine's host took {stolen:.0f} ms from it while it was attacked.")


if __name__ == "__main__":
    main()
