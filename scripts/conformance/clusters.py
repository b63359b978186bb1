"""Served clusters for the suite, and a log of their memory."""

from __future__ import annotations

import contextlib
import csv
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
_MINUTE_S = 60.0
#: After this time without load, a server has collected its garbage.
_CLEANING_S = 5.0


class Cluster(NamedTuple):
    """A served cluster."""

    name: str
    kubeconfig: Path
    #: The process of the server.
    pid: int

    def memory_mb(self) -> float:
        """Return the resident memory of the server."""
        lines = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


@contextlib.contextmanager
def serve_cluster(out: Path, name: str, platform: str, more: Sequence[str]) -> Iterator[Cluster]:
    """Serve a cluster during the block."""
    folder, log_file = out / name, out / f"{name}.log"
    command = [sys.executable, "-m", "batkube", "serve", "--platform", platform, "--out", str(folder)]
    command += ["--rules", str(HERE / "rules.yaml"), "--latencies", str(HERE / "latencies.yaml"), *more]
    with log_file.open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as server:
        try:
            for _ in range(1200):
                if (folder / "kubeconfig").exists():
                    break
                if server.poll() is not None:
                    sys.exit(f"batkube serve ended:\n{log_file.read_text()}")
                time.sleep(0.5)
            yield Cluster(name, folder / "kubeconfig", server.pid)
        finally:
            server.terminate()


def settled_memory(clusters: Sequence[Cluster]) -> str:
    """Return the memory of the servers after some seconds without load, as text."""
    time.sleep(_CLEANING_S)
    return ", ".join(f"{one.name} {one.memory_mb():.1f} MB" for one in clusters)


@contextlib.contextmanager
def memory_log(clusters: Sequence[Cluster], path: Path) -> Iterator[None]:
    """Write the memory of the servers to a file every minute, until one of them ends or the block ends."""
    is_finished = threading.Event()

    def watch() -> None:
        with path.open("w", encoding="utf-8", newline="") as stream, contextlib.suppress(FileNotFoundError):
            writer = csv.writer(stream)
            writer.writerow(["minute", *(f"{one.name}_mb" for one in clusters)])
            minute = 0
            while True:
                writer.writerow([minute, *(f"{one.memory_mb():.1f}" for one in clusters)])
                stream.flush()
                minute += 1
                if is_finished.wait(_MINUTE_S):
                    return

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        is_finished.set()
        thread.join()
