"""`batkube serve` as a program of its own, as a user starts it."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import yaml

_START_SECONDS = 60.0


class Served(NamedTuple):
    """A cluster that is being served."""

    kubeconfig: Path
    url: str
    token: str
    authority: str
    #: The process of the server.
    pid: int

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self.url.rpartition(":")[2])


def command(out: Path, *options: str) -> list[str]:
    """Return the command line that serves into the folder `out`."""
    return [sys.executable, "-m", "batkube", "serve", "--out", str(out), *options]


@contextlib.contextmanager
def served(out: Path, *options: str) -> Iterator[Served]:
    """Serve with these options until the end of the block; ready when entered."""
    log = out.with_suffix(".log")
    with log.open("wb") as file:
        process = subprocess.Popen(command(out, *options), stdout=file, stderr=subprocess.STDOUT)
        try:
            _await(out / "kubeconfig", process, log)
            config = yaml.safe_load((out / "kubeconfig").read_text())
            cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
            authority = cluster["certificate-authority-data"]
            yield Served(out / "kubeconfig", cluster["server"], user["token"], authority, process.pid)
        finally:
            process.terminate()
            process.wait(30)


def _await(kubeconfig: Path, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + _START_SECONDS
    while not (kubeconfig.exists() and kubeconfig.stat().st_size):
        assert process.poll() is None, f"batkube serve ended at once: {log.read_text()}"
        assert time.monotonic() < end, f"batkube serve is not ready: {log.read_text()}"
        time.sleep(0.05)
