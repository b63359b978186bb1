"""Runs the real Batsim with the same arguments as ours, and with a scheduler in this process."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import pytest

from batkube.batsim.protocol.zmq_sockets import Replier

#: The name of its log, in the folder of its output files.
LOG = "batsim.log"
#: The real time without a message after which Batsim counts as hung, in seconds.
_TIMEOUT_S = 300.0


class Scheduler(Protocol):
    """A scheduler in this process."""

    def request(self, text: str) -> bytes:
        """Return the reply to a message."""


class _Ended(Exception):
    """Batsim has exited."""


def real_batsim() -> str:
    """Return the path of the real Batsim; skip the test if it is not installed."""
    path = shutil.which("batsim")
    if path is None:
        pytest.skip("needs a batsim on the PATH: docs/how-to/coming-from-batsim.md describes how to build it")
    return path


def run_real_batsim(arguments: Sequence[str], folder: Path, scheduler: Scheduler | None) -> int:
    """Run Batsim with its output files `out_*` in `folder`; return its exit code."""
    if scheduler is None:
        with (folder / LOG).open("w") as log:
            command = [real_batsim(), *arguments, "-e", str(folder / "out")]
            return subprocess.run(command, stdout=log, stderr=log, check=False, timeout=_TIMEOUT_S).returncode
    replier = Replier("tcp://127.0.0.1:*")
    command = [real_batsim(), *arguments, "-e", str(folder / "out"), "-s", replier.endpoint]
    with (folder / LOG).open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:

        def check(waited_s: float) -> None:
            if process.poll() is not None:
                raise _Ended
            if waited_s > _TIMEOUT_S:
                process.kill()
                raise AssertionError(f"no message from Batsim for {_TIMEOUT_S:g} s: {' '.join(command)}")

        try:
            while True:
                replier.reply(scheduler.request(replier.receive(check).decode()).decode())
        except _Ended:
            return process.wait()
        finally:
            process.kill()
            replier.close()
