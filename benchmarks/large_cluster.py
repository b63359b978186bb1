"""Measure `batkube serve` with thousands of nodes and hundreds of watches while pods are created at a steady rate.

    python benchmarks/large_cluster.py [--nodes 5000] [--watches 0 500] [--rate 50] [--seconds 20]

Each pod is created by a client, bound by the scheduler and started by its kubelet: four changes, which each watch
reports. Another connection lists 50 pods twenty times a second. The CPU time is that of the server, lists included. The
watches are read by a process of their own, without TLS.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import multiprocessing
import selectors
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from api import PODS, Client, Served, ours, pod, request
from hostile import connect

_LIST_INTERVAL_S = 0.05


def watch_pods(url: str, count: int) -> None:
    """Open watches, and read what they report."""
    with selectors.DefaultSelector() as selector:
        for _ in range(count):
            connection = connect(url, tls=False)
            connection.sendall(request("GET", "/api/v1/pods?watch=true&resourceVersion=0"))
            selector.register(connection, selectors.EVENT_READ, connection)
        while True:
            for key, _ in selector.select():
                key.data.recv(1 << 16)


@contextlib.contextmanager
def watching(url: str, count: int) -> Iterator[None]:
    """Open `count` watches in another process."""
    process = multiprocessing.Process(target=watch_pods, args=(url, count), daemon=True)
    process.start()
    time.sleep(2 + count / 100)
    try:
        yield
    finally:
        process.kill()
        process.join()


async def latency_ms(client: Client, method: str, path: str, body: bytes = b"") -> float:
    """Send a request and read the response; return how long both took."""
    start = time.perf_counter()
    await client.send(method, path, body)
    return (time.perf_counter() - start) * 1000


async def list_pods(url: str, latencies_ms: list[float]) -> None:
    """List 50 pods repeatedly, until cancelled."""
    client = await Client(url).open()
    while True:
        latencies_ms.append(await latency_ms(client, "GET", f"{PODS}?limit=50"))
        await asyncio.sleep(_LIST_INTERVAL_S)


async def load(url: str, rate: float, count: int) -> tuple[list[float], list[float], float]:
    """Create pods, at `rate` if the server allows; return the latencies of creations and lists, and the rate."""
    client, lists_ms = await Client(url).open(), list[float]()
    lister, creations_ms, start = asyncio.create_task(list_pods(url, lists_ms)), [], time.perf_counter()
    for number in range(count):
        await asyncio.sleep(max(0.0, start + number / rate - time.perf_counter()))
        creations_ms.append(await latency_ms(client, "POST", PODS, pod(number)))
    reached = count / (time.perf_counter() - start)
    lister.cancel()
    return creations_ms, lists_ms, reached


def percentiles(latencies_ms: list[float]) -> str:
    """Return a cell of the table."""
    latencies_ms.sort()
    p50, p99 = (latencies_ms[int(len(latencies_ms) * share)] for share in (0.5, 0.99))
    return f"{p50:.0f} / {p99:.0f} ms"


def row(server: Served, watches: int, rate: float, count: int) -> str:
    """Measure with so many watches; return a row of the table."""
    with watching(server.url, watches):
        before_s = server.cpu_s()
        creations_ms, lists_ms, reached = asyncio.run(load(server.url, rate, count))
        time.sleep(1)
        cpu_ms = (server.cpu_s() - before_s) * 1000 / count
    cells = f"{reached:.0f} | {cpu_ms:.1f} ms | {percentiles(creations_ms)} | {percentiles(lists_ms)}"
    return f"| {watches} | {cells} | {server.memory_mb():.0f} MB |"


def main() -> None:
    """Measure and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--watches", type=int, nargs="+", default=[0, 500])
    parser.add_argument("--rate", type=float, default=50, help="pods per second")
    parser.add_argument("--seconds", type=float, default=20)
    options = parser.parse_args()
    print("| watches | pods per second | CPU per pod | creation p50 / p99 | list of 50 p50 / p99 | memory |")
    print("|--:|--:|--:|--:|--:|--:|")
    for watches in options.watches:
        with (
            tempfile.TemporaryDirectory() as folder,
            ours(Path(folder), ("--platform", f"{options.nodes}x64")) as server,
        ):
            print(row(server, watches, options.rate, int(options.rate * options.seconds)), flush=True)


if __name__ == "__main__":
    main()
