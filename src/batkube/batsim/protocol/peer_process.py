"""The process of the peer, if we start it: a scheduler, or a Batsim."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from batkube.timing.processes.parent_death import kill_with_parent
from batkube.timing.processes.program_log import last_lines

#: How long a peer may take to exit after it was notified of the end.
_SHUTDOWN_TIMEOUT_S = 5.0


class PeerProcess:
    """A program of the user, with the user's environment; it is killed when Batkube ends."""

    def __init__(self, command: Sequence[str], log: Path, *variables: str) -> None:
        """Start the program with its output in `log`; `variables` (NAME=VALUE) are added to its environment."""
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
        """Return a message with the exit code and the last lines of the log; None while the process runs."""
        if self._process.poll() is None:
            return None
        code = self._process.returncode
        cause = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return f"{self._name} {cause} before the simulation was over{self.log_tail()}"

    def log_tail(self) -> str:
        """Return the last lines of the log, to append to a message."""
        lines = last_lines(self._log.read_text(encoding="utf-8", errors="replace"))
        end = "\n".join(f"    {line}" for line in lines) or "    (it logged nothing)"
        return f"; its last lines, of {self._log.parent.name}/{self._log.name}:\n{end}"

    def close(self, *, is_notified: bool) -> None:
        """Kill the process; if it was notified of the end, give it time to exit first."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_SHUTDOWN_TIMEOUT_S if is_notified else 0)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
