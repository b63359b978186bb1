"""The process at the other end of the wire, where we start it: a scheduler, or a Batsim."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from batkube.timing.processes.parent_death import kill_with_parent
from batkube.timing.processes.program_log import last_lines

#: How long a partner that was told of the end may take to end itself.
_SHUTDOWN_TIMEOUT_S = 5.0


class PeerProcess:
    """A program of the user's, in the user's surroundings; it ends with us at the latest."""

    def __init__(self, command: Sequence[str], log: Path, *variables: str) -> None:
        """What it prints goes to `log`; `variables` (NAME=VALUE) are added to its environment."""
        self._name = Path(command[0]).name
        self._log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as file:
            self._process = subprocess.Popen(
                ["env", *variables, *command],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=kill_with_parent(),
            )

    def exit_message(self) -> str | None:
        """Return what there is to say of one that has ended; None while it lives."""
        if self._process.poll() is None:
            return None
        code = self._process.returncode
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return f"{self._name} {how} before the simulation was over{self.log_tail()}"

    def log_tail(self) -> str:
        """Return the last lines of its log, as the end of a message."""
        lines = last_lines(self._log.read_text(encoding="utf-8", errors="replace"))
        end = "\n".join(f"    {line}" for line in lines) or "    (it logged nothing)"
        return f"; its last lines, of {self._log.parent.name}/{self._log.name}:\n{end}"

    def close(self, *, knows_of_end: bool) -> None:
        """End it, unless it ends itself within a while because it knows that all is over."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_SHUTDOWN_TIMEOUT_S if knows_of_end else 0)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
