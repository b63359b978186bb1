"""Measure API requests: `batkube serve --bare` beside the real kube-apiserver and etcd, under the same load.

    python benchmarks/api.py [--pods 5000] [--no-peer] [--memory]

The clients run in processes of their own, which are not measured; CPU time is that of the server's processes, from
/proc. Both servers use TLS. kube-apiserver and etcd are built on first use (minutes). `--memory` also fills our server
with 150,000 pods.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import os
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from batkube.emulation.control_plane.commands import free_ports

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from conformance.real_server import real_server  # noqa: E402 - in the folder of the tests

_CONNECTIONS = 8
_WATCHERS = 20
_PACED_PER_S = 500
_PACED_S = 10
_MERGE = "application/strategic-merge-patch+json"


class Served(NamedTuple):
    """A server under load."""

    name: str
    url: str
    processes: tuple[int, ...]

    def cpu_s(self) -> float:
        """Return the CPU time of its processes so far."""
        return sum(_cpu_s(pid) for pid in self.processes)

    def memory_mb(self) -> float:
        """Return the resident memory of its processes."""
        return sum(_resident_mb(pid) for pid in self.processes)


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


@contextlib.contextmanager
def ours(folder: Path, cluster: Sequence[str] = ("--bare",)) -> Iterator[Served]:
    """Run `batkube serve`, without a cluster unless its options are given."""
    tokens = folder / "tokens.csv"
    tokens.write_text('admin-token,admin,1,"system:masters"\nother-token,other,2,"system:masters"\n')
    (port,) = free_ports(1)
    out = folder / "served"
    command = [sys.executable, "-m", "batkube", "serve", *cluster, "--quiet"]
    command += ["--out", str(out), "--port", str(port), "--token-auth-file", str(tokens)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        while not (out / "kubeconfig").exists():
            time.sleep(0.05)
        yield Served("batkube", f"https://127.0.0.1:{port}", (process.pid,))
    finally:
        process.terminate()
        process.wait(10)


# Clients


def request(
    method: str, path: str, body: bytes = b"", content_type: str = "application/json", token: str = "admin-token"
) -> bytes:
    """Return the bytes of a request."""
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class Rejected(RuntimeError):
    """A response with an error status."""

    def __init__(self, method: str, path: str, status: int, text: bytes) -> None:
        super().__init__(f"{method} {path}: {status} {text!r}")
        self.status = status


class Client:
    """A keep-alive connection."""

    def __init__(self, url: str, token: str = "admin-token") -> None:
        self._host = urlsplit(url)
        self._token = token

    async def open(self) -> Client:
        """Connect."""
        context = ssl._create_unverified_context()
        self._reader, self._writer = await asyncio.open_connection(
            self._host.hostname, self._host.port, ssl=context, limit=1 << 26
        )
        return self

    async def send(self, method: str, path: str, body: bytes = b"", content_type: str = "application/json") -> int:
        """Send a request and read the response; return the length of its body."""
        self._writer.write(request(method, path, body, content_type, self._token))
        head = await self._reader.readuntil(b"\r\n\r\n")
        status, headers = int(head[9:12]), head.decode().lower()
        if status >= 300:
            raise Rejected(method, path, status, await self._reader.read(500))
        if "transfer-encoding: chunked" in headers:
            return await self._chunks()
        length = int(headers.split("content-length: ")[1].split("\r\n")[0])
        await self._reader.readexactly(length)
        return length

    def close(self) -> None:
        """Close the connection."""
        self._writer.close()

    async def _chunks(self) -> int:
        total = 0
        while size := int(await self._reader.readline(), 16):
            await self._reader.readexactly(size + 2)
            total += size
        await self._reader.readline()
        return total


def pod(number: int) -> bytes:
    """Return a pod of a batch job."""
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}}
    container = {"name": "main", "image": "solver:1", "resources": resources}
    spec = {"restartPolicy": "Never", "containers": [container]}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"pod-{number}", "labels": {"app": "solver", "job": f"job-{number % 100}"}},
            "spec": spec,
        }
    ).encode()


def binding(number: int) -> bytes:
    """Return the binding of a pod to a node."""
    target = {"apiVersion": "v1", "kind": "Node", "name": f"node-{number % 1000}"}
    return json.dumps(
        {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": f"pod-{number}"}, "target": target}
    ).encode()


_RUNNING = json.dumps(
    {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}], "podIP": "10.0.0.1"}}
).encode()
PODS = "/api/v1/namespaces/default/pods"

Operation = Callable[[Client, int], Awaitable[int]]
OPERATIONS: dict[str, Operation] = {
    "create": lambda client, number: client.send("POST", PODS, pod(number)),
    "bind": lambda client, number: client.send("POST", f"{PODS}/pod-{number}/binding", binding(number)),
    "status": lambda client, number: client.send("PATCH", f"{PODS}/pod-{number}/status", _RUNNING, _MERGE),
    "list": lambda client, number: client.send("GET", PODS),
}


async def saturating(url: str, operation: str, numbers: range) -> list[float]:
    """Send one request for each number on several connections; return the latencies."""
    latencies: list[float] = []
    remaining = iter(numbers)

    async def work(client: Client) -> None:
        for number in remaining:
            began = time.perf_counter()
            await OPERATIONS[operation](client, number)
            latencies.append(time.perf_counter() - began)

    clients = [await Client(url).open() for _ in range(1 if operation == "list" else _CONNECTIONS)]
    await asyncio.gather(*(work(client) for client in clients))
    return latencies


async def paced(url: str, first: int) -> list[float]:
    """Create pods at a constant rate for some seconds; return the latencies."""
    clients = [await Client(url).open() for _ in range(_CONNECTIONS)]
    free: asyncio.Queue[Client] = asyncio.Queue()
    for client in clients:
        free.put_nowait(client)
    latencies: list[float] = []

    async def one(number: int, due: float) -> None:
        client = await free.get()
        await OPERATIONS["create"](client, number)
        latencies.append(time.perf_counter() - due)
        free.put_nowait(client)

    began, tasks = time.perf_counter(), []
    for number in range(_PACED_PER_S * _PACED_S):
        due = began + number / _PACED_PER_S
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        tasks.append(asyncio.create_task(one(first + number, max(due, time.perf_counter()))))
    await asyncio.gather(*tasks)
    return latencies


def _run_load(kind: str, url: str, argument: object, results: multiprocessing.Queue[list[float]]) -> None:
    if kind == "paced":
        assert isinstance(argument, int)
        results.put(asyncio.run(paced(url, argument)))
    else:
        assert isinstance(argument, range)
        results.put(asyncio.run(saturating(url, kind, argument)))


def under_load(server: Served, kind: str, argument: object) -> tuple[list[float], float, float]:
    """Run a load in its own process; return the latencies, the server's CPU seconds and the real seconds."""
    results: multiprocessing.Queue[list[float]] = multiprocessing.Queue()
    cpu, real = server.cpu_s(), time.perf_counter()
    process = multiprocessing.Process(target=_run_load, args=(kind, server.url, argument, results))
    process.start()
    latencies = results.get()
    process.join()
    return latencies, server.cpu_s() - cpu, time.perf_counter() - real


async def _watch(url: str, count: int) -> None:
    client = await Client(url).open()
    path = f"{PODS}?watch=true&resourceVersion=0&timeoutSeconds=600"
    client._writer.write(request("GET", path))
    events = 0
    while events < count:
        events += (await client._reader.read(1 << 20)).count(b'"type":"')


def _run_watchers(url: str, count: int) -> None:
    async def watch_all() -> None:
        await asyncio.gather(*(_watch(url, count) for _ in range(_WATCHERS)))

    asyncio.run(watch_all())


def fan_out(server: Served, pods: int) -> float:
    """Patch every pod while many clients watch; return the server's CPU seconds until all have received all events."""
    watchers = multiprocessing.Process(target=_run_watchers, args=(server.url, 2 * pods))
    watchers.start()
    time.sleep(3 + pods / 2000)
    _, cpu, _ = under_load(server, "status", range(pods))
    before = server.cpu_s()
    watchers.join()
    return cpu + server.cpu_s() - before


def rows(server: Served, pods: int) -> dict[str, str]:
    """Measure one server."""
    cells: dict[str, str] = {}
    for name in ("create", "bind"):
        _, cpu, real = under_load(server, name, range(pods))
        cells[name] = f"{pods / cpu:,.0f} per CPU-s, {pods / real:,.0f}/s"
    cpu = fan_out(server, pods)
    cells[f"status patch, {_WATCHERS} watchers"] = f"{pods / cpu:,.0f} per CPU-s"
    latencies, cpu, _ = under_load(server, "paced", pods)
    latencies.sort()
    p50, p99 = (latencies[int(len(latencies) * share)] * 1000 for share in (0.5, 0.99))
    cells[f"create at {_PACED_PER_S}/s: p50, p99"] = f"{p50:.1f} ms, {p99:.1f} ms"
    _, cpu, real = under_load(server, "list", range(5))
    total = pods + _PACED_PER_S * _PACED_S
    cells[f"list of {total:,} pods"] = f"{cpu / 5 * 1000:,.0f} ms CPU, {real / 5 * 1000:,.0f} ms"
    cells["memory then"] = f"{server.memory_mb():,.0f} MB"
    return cells


def fill(server: Served) -> str:
    """Fill a server with 150,000 bound pods; return its memory."""
    under_load(server, "create", range(150_000))
    under_load(server, "bind", range(150_000))
    return f"{server.memory_mb():,.0f} MB"


def main() -> None:
    """Measure and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--no-peer", action="store_true", help="measure our server only")
    parser.add_argument("--memory", action="store_true", help="also measure 150,000 pods (some minutes)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with ours(folder) as server:
            measured = {"batkube": rows(server, options.pods)}
        if not options.no_peer:
            (folder / "peer").mkdir()
            with real_server(folder / "peer") as real:
                peer = Served("kube-apiserver + etcd", real.url, real.processes)
                measured[peer.name] = rows(peer, options.pods)
        if options.memory:
            (folder / "full").mkdir()
            with ours(folder / "full") as server:
                measured["batkube"]["150,000 pods"] = fill(server)
    names = list(measured)
    print(f"| {options.pods:,} pods | " + " | ".join(names) + " |")
    print("|---|" + "---|" * len(names))
    for row in measured["batkube"]:
        print(f"| {row} | " + " | ".join(measured[each].get(row, "") for each in names) + " |")


if __name__ == "__main__":
    main()
