"""The wire to a scheduler of Batsim's protocol, and the scheduler's process where we start it.

batsim:tcp://127.0.0.1:28000            it listens there already, or will
batsim:'python sched.py -s {endpoint}'  we start it, and it listens where `{endpoint}`, or $BATSIM_ENDPOINT, says
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
from pathlib import Path

from batkube.batsim.socket import Requester, free_endpoint
from batkube.kernel.errors import InputError
from batkube.timing.orphans import ending_with_us
from batkube.timing.processes import last_lines

#: What stands for the endpoint in a command; and the variable that has it.
PLACEHOLDER, VARIABLE = "{endpoint}", "BATSIM_ENDPOINT"
_TRANSPORTS = ("tcp://", "ipc://")
#: How long a scheduler that was told of the end may take to end itself.
_FAREWELL_S = 5.0


def is_endpoint(spec: str) -> bool:
    """Return whether a text says where a scheduler listens, rather than how it is started."""
    return spec.startswith(_TRANSPORTS)


def command_of(spec: str, endpoint: str) -> list[str]:
    """Return the words of a command, with the endpoint in its place. Raises InputError."""
    try:
        words = shlex.split(spec)
    except ValueError as error:
        raise InputError(f"batsim:{spec}", problem=f"is no command: {error}") from None
    if not words:
        raise InputError(
            "scheduler", problem="batsim: names no scheduler", remedy="write batsim:tcp://… or batsim:'COMMAND'"
        )
    return [word.replace(PLACEHOLDER, endpoint) for word in words]


class Link:
    """A scheduler that can be asked."""

    def __init__(self, spec: str, folder: Path, patience_ns: int) -> None:
        """A scheduler that is started logs into `folder`; one that does not answer for `patience_ns` is given up."""
        self._process: subprocess.Popen[bytes] | None = None
        self._log = folder / "log.txt"
        self._name = spec
        endpoint = spec if is_endpoint(spec) else free_endpoint()
        if endpoint != spec:
            self._start(command_of(spec, endpoint), endpoint)
        self._requester = Requester(endpoint, patience_ns, self._last_words)

    def _start(self, command: list[str], endpoint: str) -> None:
        self._name = Path(command[0]).name
        self._log.parent.mkdir(parents=True, exist_ok=True)
        if shutil.which(command[0]) is None:
            raise InputError(
                f"batsim:{' '.join(command)}",
                problem="cannot be started: there is no such program",
                remedy="give a command that starts the scheduler, or the endpoint where it listens",
            )
        with self._log.open("wb") as file:
            self._process = subprocess.Popen(
                # It is the user's program, and lives in the user's surroundings, with one variable more.
                ["env", f"{VARIABLE}={endpoint}", *command],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=ending_with_us(),
            )

    def ask(self, text: str) -> bytes:
        """Send a message, and return the reply to it. Raises RunFailed when none comes."""
        return self._requester.ask(text)

    def _last_words(self) -> str | None:
        """Return what there is to say of a scheduler that has ended; None while it lives, or is not ours."""
        if self._process is None or self._process.poll() is None:
            return None
        code = self._process.returncode
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return f"{self._name} {how} before the simulation was over{self.tail()}"

    def tail(self) -> str:
        """Return the last lines of the scheduler's log, as the end of a message; nothing for one that is not ours."""
        if self._process is None:
            return ""
        lines = last_lines(self._log.read_text(encoding="utf-8", errors="replace"))
        end = "\n".join(f"    {line}" for line in lines) or "    (it logged nothing)"
        return f"; its last lines, of {self._log.parent.name}/{self._log.name}:\n{end}"

    def close(self) -> None:
        """Let go of the wire, and end the scheduler if it does not end itself."""
        self._requester.close()
        if self._process is None:
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_FAREWELL_S if self._requester.was_answered else 0)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
