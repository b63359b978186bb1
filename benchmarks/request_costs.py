"""What requests cost in two trees of Batkube, side by side in one run: has a change made `serve` or `run` dearer?

    git archive c9df1ff | tar x -C /tmp/before
    python benchmarks/request_costs.py /tmp/before . [--rounds 7] [--instructions]

Both trees are served at once (`serve --bare`), over TLS and as plain HTTP, and are asked in turn, so that whatever else
the machine does meets both. Each round starts anew, as two starts of one tree differ by some per cent. Counted is the
CPU time of the server alone, as the kernel's scheduler accounts it, and of `batkube run` of a burst of jobs as a whole.
With `--instructions` the servers run in valgrind and instructions are counted instead: it takes minutes and leaves out
the kernel, but the same is counted on a machine that is busy with other things.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "tests"))

from api import PODS, binding, pod, request  # noqa: E402 - it lies beside this file
from conformance.real_server import free_ports  # noqa: E402 - it lies with the tests

_STATUS = json.dumps({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}).encode()
_MERGE = "application/strategic-merge-patch+json"
#: What is asked, for pods by number, in this order.
OPERATIONS: dict[str, Callable[[int], bytes]] = {
    "create": lambda number: request("POST", PODS, pod(number)),
    "bind": lambda number: request("POST", f"{PODS}/pod-{number}/binding", binding(number)),
    "status patch": lambda number: request("PATCH", f"{PODS}/pod-{number}/status", _STATUS, _MERGE),
    "get": lambda number: request("GET", f"{PODS}/pod-{number}"),
}
_BURST = ["--platform", "16x1", "--scheduler", "policy:fcfs"]
_PIECE = 1 << 16


class Server:
    """A server of one tree, and what it has used."""

    def __init__(self, tree: Path, folder: Path, *, is_counted: bool) -> None:
        self._folder = folder
        folder.mkdir()
        tokens = folder / "tokens.csv"
        tokens.write_text('admin-token,admin,1,"system:masters"\n')
        (self.port,) = free_ports(1)
        command = [sys.executable, "-m", "batkube", "serve", "--bare", "--quiet"]
        command += ["--out", str(folder / "out"), "--port", str(self.port), "--token-auth-file", str(tokens)]
        self._is_counted = is_counted
        if is_counted:
            command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/counts", *command]
        self.process = subprocess.Popen(
            command, env=environment(tree), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def wait(self) -> None:
        """Wait until requests are accepted."""
        while not (self._folder / "out" / "kubeconfig").exists():
            if self.process.poll() is not None:
                raise SystemExit(f"the server in {self._folder} has ended")
            time.sleep(0.05)
        self.used()

    def used(self) -> float:
        """Return what it has used: CPU nanoseconds since it started, or instructions since this was last asked."""
        if not self._is_counted:
            return int(Path(f"/proc/{self.process.pid}/schedstat").read_text().split()[0])
        before = set(self._folder.glob("counts.*"))
        subprocess.run(["callgrind_control", "-d", str(self.process.pid)], check=True, capture_output=True)
        (dump,) = set(self._folder.glob("counts.*")) - before
        totals = re.search(r"^(?:totals|summary): (\d+)", dump.read_text(), re.MULTILINE)
        assert totals is not None, "callgrind tells how many instructions there were"
        return int(totals[1])

    def end(self) -> None:
        """Stop it."""
        self.process.kill()
        self.process.wait()


def environment(tree: Path) -> dict[str, str]:
    """Return an environment in which that tree is the one that is run."""
    return {**os.environ, "PYTHONPATH": str(tree / "src"), "PYTHONHASHSEED": "0"}


@contextlib.contextmanager
def servers(trees: list[Path], folder: Path, *, is_counted: bool) -> Iterator[list[Server]]:
    """Serve each of the trees."""
    running = [Server(tree, folder / str(number), is_counted=is_counted) for number, tree in enumerate(trees)]
    try:
        for server in running:
            server.wait()
        yield running
    finally:
        for server in running:
            server.end()


class Client:
    """One connection that keeps alive, and asks one thing after the other."""

    def __init__(self, port: int, *, is_tls: bool) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=600)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if is_tls:
            self._socket = ssl._create_unverified_context().wrap_socket(self._socket)

    def ask(self, asked: bytes) -> None:
        """Send a request and read its answer, which must be a good one."""
        self._socket.sendall(asked)
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += self._socket.recv(_PIECE)
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head[9:10] == b"2", answer
        length = re.search(rb"content-length: (\d+)", head.lower())
        assert length is not None, "an answer that is whole"
        left = int(length[1]) - len(body)
        while left > 0:
            left -= len(self._socket.recv(_PIECE))


def asked(running: list[Server], requests: int, *, is_counted: bool) -> list[dict[str, float]]:
    """Ask the servers in turn; return for each what an operation used, on average."""
    found: list[dict[str, float]] = [{} for _ in running]
    for is_tls in (True, False):
        clients = [Client(server.port, is_tls=is_tls) for server in running]
        first = requests * (1 + is_tls)
        for name, make in OPERATIONS.items():
            before = [server.used() for server in running]
            for number in range(first, first + requests):
                for client in clients:
                    client.ask(make(number))
            for each, server, base in zip(found, running, before, strict=True):
                used = server.used() - (0 if is_counted else base)
                each[f"{name}, {'TLS' if is_tls else 'plain'}"] = used / requests
    return found


def burst(tree: Path, folder: Path) -> float:
    """Return the CPU nanoseconds of `batkube run` of a burst of jobs."""
    workload = folder / "burst.json"
    jobs = [{"id": str(number), "profile": "p", "res": 1, "subtime": 0} for number in range(2000)]
    workload.write_text(json.dumps({"nb_res": 16, "jobs": jobs, "profiles": {"p": {"type": "delay", "delay": 170}}}))
    out = folder / f"burst-{time.monotonic_ns()}"
    command = [sys.executable, "-m", "batkube", "run", "--workload", str(workload), *_BURST, "--quiet"]
    process = subprocess.Popen([*command, "--out", str(out)], env=environment(tree), stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"batkube run of {tree} has failed")
    return (usage.ru_utime + usage.ru_stime) * 1e9


def main() -> None:
    """Measure both and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", type=Path, nargs=2, metavar="TREE", help="the one before, and the one after")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--requests", type=int, default=1000, help="of each kind and round")
    parser.add_argument("--instructions", action="store_true", help="count instructions in valgrind, in one round")
    options = parser.parse_args()
    trees = [tree.resolve() for tree in options.trees]
    rounds: list[list[dict[str, float]]] = []
    for _ in range(1 if options.instructions else options.rounds):
        with tempfile.TemporaryDirectory() as name:
            with servers(trees, Path(name), is_counted=options.instructions) as running:
                found = asked(running, options.requests, is_counted=options.instructions)
            if not options.instructions:
                for each, tree in zip(found, trees, strict=True):
                    each["run of a burst of 2,000 jobs"] = burst(tree, Path(name))
            rounds.append(found)
    unit, scale = ("thousand instructions", 1e3) if options.instructions else ("CPU µs", 1e3)
    print(f"| {unit}, least (median) of {len(rounds)} | before | after | difference |\n|---|---|---|---|")
    for name in rounds[0][0]:
        before, after = ([each[side][name] / scale for each in rounds] for side in (0, 1))
        told = [f"{min(figures):,.0f} ({statistics.median(figures):,.0f})" for figures in (before, after)]
        least, middle = min(after) / min(before) - 1, statistics.median(after) / statistics.median(before) - 1
        print(f"| {name} | {told[0]} | {told[1]} | {least:+.1%} ({middle:+.1%}) |")


if __name__ == "__main__":
    main()
