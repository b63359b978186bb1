"""`batkube serve` in a separate process."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import yaml

_START_TIMEOUT_S = 180.0
_PROGRAM = (sys.executable, "-m", "batkube")


class Served(NamedTuple):
    """A running server of a simulated cluster."""

    kubeconfig: Path
    url: str
    token: str
    authority: str
    #: The process id of the server.
    pid: int

    @property
    def port(self) -> int:
        """The port of the server."""
        return int(self.url.rpartition(":")[2])


def command(out: Path, *options: str, program: Sequence[str] = _PROGRAM) -> list[str]:
    """Return the command line of a server with the output folder `out`."""
    return [*program, "serve", "--out", str(out), *options]


@contextlib.contextmanager
def served(out: Path, *options: str, program: Sequence[str] = _PROGRAM) -> Iterator[Served]:
    """Start a server with these options, wait until it is ready, and stop it at the end of the block."""
    log = out.with_suffix(".log")
    with log.open("wb") as file:
        process = subprocess.Popen(command(out, *options, program=program), stdout=file, stderr=subprocess.STDOUT)
        try:
            _wait_until_ready(out / "kubeconfig", process, log)
            config = yaml.safe_load((out / "kubeconfig").read_text())
            cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
            authority = cluster["certificate-authority-data"]
            yield Served(out / "kubeconfig", cluster["server"], user["token"], authority, process.pid)
        finally:
            process.terminate()
            process.wait(30)


def _wait_until_ready(kubeconfig: Path, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _START_TIMEOUT_S
    while not (kubeconfig.exists() and kubeconfig.stat().st_size):
        assert process.poll() is None, f"batkube serve exited: {log.read_text()}"
        assert time.monotonic() < deadline, f"batkube serve is not ready: {log.read_text()}"
        time.sleep(0.05)
