"""The real Batsim, run beside ours: the same command line, the same scheduler in this process, both their files."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import pytest

from batkube.batsim.protocol.zmq_sockets import Replier

#: Its log, beside its other files.
LOG = "batsim.log"
#: Real seconds after which a Batsim that says nothing has hung, on however busy a machine.
_PATIENCE_S = 300.0


class Partner(Protocol):
    """A scheduler in this process."""

    def request(self, text: str) -> bytes:
        """Return the reply to a message."""


class _Ended(Exception):
    """Batsim ends, and says nothing any more."""


def real_batsim() -> str:
    """Return the path of the real Batsim; tests that need it are skipped where there is none."""
    path = shutil.which("batsim")
    if path is None:
        pytest.skip("needs a batsim on the PATH: docs/how-to/coming-from-batsim.md tells how to build it")
    return path


def run_real_batsim(words: Sequence[str], folder: Path, scheduler: Partner | None) -> int:
    """Run Batsim in `folder`, whose files begin with `out` there; return its exit code."""
    if scheduler is None:
        with (folder / LOG).open("w") as log:
            command = [real_batsim(), *words, "-e", str(folder / "out")]
            return subprocess.run(command, stdout=log, stderr=log, check=False, timeout=_PATIENCE_S).returncode
    replier = Replier("tcp://127.0.0.1:*")
    command = [real_batsim(), *words, "-e", str(folder / "out"), "-s", replier.endpoint]
    with (folder / LOG).open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:

        def check(waited_s: float) -> None:
            if process.poll() is not None:
                raise _Ended
            if waited_s > _PATIENCE_S:
                process.kill()
                raise AssertionError(f"Batsim has said nothing for {_PATIENCE_S:g} s: {' '.join(command)}")

        try:
            while True:
                replier.reply(scheduler.request(replier.receive(check).decode()).decode())
        except _Ended:
            return process.wait()
        finally:
            process.kill()
            replier.close()
