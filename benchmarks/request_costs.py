"""Compare the cost of requests to `serve` with that of an earlier commit.

    python benchmarks/request_costs.py c9df1ff [--rounds 21]

Both servers (`serve --bare`) run at the same time, with TLS and with plain HTTP. Each request goes to one and then to
the other, so that other load of the machine affects both. Each round starts new servers, because two processes of one
source differ by some per cent. The CPU time is that of the server alone, as accounted by the kernel's scheduler, and
that of a whole `batkube run` of a burst of jobs.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import re
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from batkube.emulation.control_plane.commands import free_ports

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from api import PODS, binding, pod, request  # noqa: E402 - beside this file
from side_by_side import source_of  # noqa: E402 - beside this file

_STATUS = json.dumps({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}).encode()
_MERGE = "application/strategic-merge-patch+json"
#: The requests for a pod by its number, in this order.
OPERATIONS: dict[str, Callable[[int], bytes]] = {
    "create": lambda number: request("POST", PODS, pod(number)),
    "bind": lambda number: request("POST", f"{PODS}/pod-{number}/binding", binding(number)),
    "status patch": lambda number: request("PATCH", f"{PODS}/pod-{number}/status", _STATUS, _MERGE),
    "get": lambda number: request("GET", f"{PODS}/pod-{number}"),
}
_BURST = ["--platform", "16x1", "--scheduler", "policy:fcfs"]
_BURST_JOBS = 2000
_PIECE = 1 << 16


class Server:
    """A server that runs one of the sources."""

    def __init__(self, source: Path, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()
        tokens = folder / "tokens.csv"
        tokens.write_text('admin-token,admin,1,"system:masters"\n')
        (self.port,) = free_ports(1)
        command = [sys.executable, "-m", "batkube", "serve", "--bare", "--quiet"]
        command += ["--out", str(folder / "out"), "--port", str(self.port), "--token-auth-file", str(tokens)]
        self.process = subprocess.Popen(command, env=environment(source), stdout=subprocess.DEVNULL)

    def wait(self) -> None:
        """Wait until requests are accepted."""
        while not (self._folder / "out" / "kubeconfig").exists():
            if self.process.poll() is not None:
                raise SystemExit(f"the server in {self._folder} has ended")
            time.sleep(0.05)

    def used_ns(self) -> int:
        """Return its CPU time so far."""
        return int(Path(f"/proc/{self.process.pid}/schedstat").read_text().split()[0])

    def end(self) -> None:
        """Stop it."""
        self.process.kill()
        self.process.wait()


def environment(source: Path) -> dict[str, str]:
    """Return an environment that imports `source`, and stores compiled modules as it does for users."""
    others = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**others, "PYTHONPATH": str(source), "PYTHONHASHSEED": "0"}


@contextlib.contextmanager
def servers(sources: Sequence[Path], folder: Path) -> Iterator[list[Server]]:
    """Run a server of each source."""
    running = [Server(source, folder / str(number)) for number, source in enumerate(sources)]
    try:
        for server in running:
            server.wait()
        yield running
    finally:
        for server in running:
            server.end()


class Client:
    """A keep-alive connection."""

    def __init__(self, port: int, *, is_tls: bool) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=600)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if is_tls:
            self._socket = ssl._create_unverified_context().wrap_socket(self._socket)

    def send(self, data: bytes) -> None:
        """Send a request and read the response, which must be successful."""
        self._socket.sendall(data)
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += self._socket.recv(_PIECE)
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head[9:10] == b"2", answer
        length = re.search(rb"content-length: (\d+)", head.lower())
        assert length is not None, "the response has a length"
        remaining = int(length[1]) - len(body)
        while remaining > 0:
            remaining -= len(self._socket.recv(_PIECE))


def request_costs(running: Sequence[Server], requests: int) -> list[dict[str, float]]:
    """Send requests to the servers in turn; return the mean CPU nanoseconds of each operation, for each server."""
    costs: list[dict[str, float]] = [{} for _ in running]
    for is_tls in (True, False):
        clients = [Client(server.port, is_tls=is_tls) for server in running]
        first = requests * (1 + is_tls)
        for name, make in OPERATIONS.items():
            before = [server.used_ns() for server in running]
            for number in range(first, first + requests):
                for client in clients:
                    client.send(make(number))
            for each, server, base in zip(costs, running, before, strict=True):
                each[f"{name}, {'TLS' if is_tls else 'plain'}"] = (server.used_ns() - base) / requests
    return costs


def burst_ns(source: Path, folder: Path) -> float:
    """Return the CPU time of `batkube run` of a burst of jobs."""
    workload = folder / "burst.json"
    jobs = [{"id": str(number), "profile": "p", "res": 1, "subtime": 0} for number in range(_BURST_JOBS)]
    workload.write_text(json.dumps({"nb_res": 16, "jobs": jobs, "profiles": {"p": {"type": "delay", "delay": 170}}}))
    command = [sys.executable, "-m", "batkube", "run", "--workload", str(workload), *_BURST, "--quiet"]
    command += ["--out", str(folder / f"burst-{time.monotonic_ns()}")]
    process = subprocess.Popen(command, env=environment(source), stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"batkube run with {source} has failed")
    return (usage.ru_utime + usage.ru_stime) * 1e9


def difference(then: Sequence[float], now: Sequence[float]) -> tuple[float, float, float]:
    """Return the relative increase from `then` to `now`: its median over all rounds, between the bounds of 95 %.

    Both measurements of a round had the same disturbances, so the ratios vary less than the costs. The bounds are those
    of the sign test, which assumes nothing about the distribution of the noise.
    """
    ratios = sorted(after / before - 1 for before, after in zip(then, now, strict=True))
    count, outside = len(ratios), 0
    tail = 0.5**count
    while tail + math.comb(count, outside + 1) * 0.5**count <= 0.025:
        outside += 1
        tail += math.comb(count, outside) * 0.5**count
    return ratios[outside], statistics.median(ratios), ratios[count - 1 - outside]


def main() -> None:
    """Measure both sources and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", help="the commit to compare with")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--requests", type=int, default=1000, help="number of requests of each kind in a round")
    options = parser.parse_args()
    rounds: list[list[dict[str, float]]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sources = [source_of(options.commit, folder), HERE.parent / "src"]
        for number in range(options.rounds):
            inner = folder / f"round-{number}"
            inner.mkdir()
            with servers(sources, inner) as running:
                costs = request_costs(running, options.requests)
            for each, source in zip(costs, sources, strict=True):
                each[f"run of a burst of {_BURST_JOBS:,} jobs"] = burst_ns(source, inner)
            rounds.append(costs)
    print(f"| CPU µs, median of {len(rounds)} | {options.commit} | now | difference | 95 % of it within |")
    print("|---|---|---|---|---|")
    for name in rounds[0][0]:
        then, now = ([each[side][name] / 1000 for each in rounds] for side in (0, 1))
        low, middle, high = difference(then, now)
        medians = " | ".join(f"{statistics.median(figures):,.0f}" for figures in (then, now))
        print(f"| {name} | {medians} | {middle:+.1%} | {low:+.1%} … {high:+.1%} |")


if __name__ == "__main__":
    main()
