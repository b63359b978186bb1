"""The wire to a scheduler of Batsim's protocol, and the scheduler's process where we start it.

batsim:tcp://127.0.0.1:28000            it listens there already, or will
batsim:'python sched.py -s {endpoint}'  we start it, and it listens where `{endpoint}`, or $BATSIM_ENDPOINT, says
"""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

from batkube.batsim.protocol.peer_process import PeerProcess
from batkube.batsim.protocol.zmq_sockets import Requester, free_endpoint
from batkube.kernel.errors import InputError

#: What stands for the endpoint in a command; and the variable that has it.
PLACEHOLDER, ENDPOINT_VARIABLE = "{endpoint}", "BATSIM_ENDPOINT"
_TRANSPORTS = ("tcp://", "ipc://")


def is_endpoint(spec: str) -> bool:
    """Return whether a text says where a scheduler listens, rather than how it is started."""
    return spec.startswith(_TRANSPORTS)


def scheduler_command(spec: str, endpoint: str) -> list[str]:
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


class SchedulerLink:
    """A scheduler that can be asked."""

    def __init__(self, spec: str, folder: Path, patience_ns: int) -> None:
        """A scheduler that is started logs into `folder`; one that does not answer for `patience_ns` is given up."""
        endpoint = spec if is_endpoint(spec) else free_endpoint()
        self._process = None if endpoint == spec else _start(scheduler_command(spec, endpoint), endpoint, folder)
        last_words = _no_exit_message if self._process is None else self._process.exit_message
        self._requester = Requester(endpoint, patience_ns, last_words)

    def request(self, text: str) -> bytes:
        """Send a message, and return the reply to it. Raises RunFailed when none comes."""
        return self._requester.request(text)

    def log_tail(self) -> str:
        """Return the last lines of the scheduler's log, as the end of a message; nothing for one that is not ours."""
        return "" if self._process is None else self._process.log_tail()

    def close(self) -> None:
        """Let go of the wire, and end the scheduler if it does not end itself."""
        self._requester.close()
        if self._process is not None:
            self._process.close(knows_of_end=self._requester.has_reply)


def _no_exit_message() -> str | None:
    """Say nothing of a scheduler that is not ours: whether it lives nobody can tell."""
    return None


def _start(command: list[str], endpoint: str, folder: Path) -> PeerProcess:
    if shutil.which(command[0]) is None:
        raise InputError(
            f"batsim:{' '.join(command)}",
            problem="cannot be started: there is no such program",
            remedy="give a command that starts the scheduler, or the endpoint where it listens",
        )
    return PeerProcess(command, folder / "log.txt", f"{ENDPOINT_VARIABLE}={endpoint}")
