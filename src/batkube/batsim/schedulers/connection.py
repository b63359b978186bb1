"""The connection to a scheduler of Batsim's protocol, and its process if we start it.

batsim:tcp://127.0.0.1:28000            a scheduler that listens there, now or later
batsim:'python sched.py -s {endpoint}'  a command that we start; the scheduler listens at {endpoint} or $BATSIM_ENDPOINT
"""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

from batkube.batsim.protocol.peer_process import PeerProcess
from batkube.batsim.protocol.zmq_sockets import Requester, free_endpoint
from batkube.kernel.errors import InputError

#: The placeholder for the endpoint in a command, and the environment variable that contains it.
PLACEHOLDER, ENDPOINT_VARIABLE = "{endpoint}", "BATSIM_ENDPOINT"
_TRANSPORTS = ("tcp://", "ipc://")


def is_endpoint(spec: str) -> bool:
    """Return whether a specification is an endpoint; otherwise it is a command."""
    return spec.startswith(_TRANSPORTS)


def scheduler_command(spec: str, endpoint: str) -> list[str]:
    """Return the arguments of a command, with the endpoint inserted. Raise InputError."""
    try:
        words = shlex.split(spec)
    except ValueError as error:
        raise InputError(f"batsim:{spec}", problem=f"is not a command: {error}", remedy="check its quotes") from None
    if not words:
        raise InputError(
            "--scheduler", problem="'batsim:' names no scheduler", remedy="write batsim:tcp://… or batsim:'COMMAND'"
        )
    return [word.replace(PLACEHOLDER, endpoint) for word in words]


class SchedulerClient:
    """A client of a scheduler: sends it messages, and receives its replies."""

    def __init__(self, spec: str, folder: Path, timeout_ns: int) -> None:
        """Start the scheduler with its log in `folder`, unless `spec` is an endpoint.

        A request fails if the scheduler does not reply within `timeout_ns` of real time.
        """
        endpoint = spec if is_endpoint(spec) else free_endpoint()
        self._process = None if endpoint == spec else _start(scheduler_command(spec, endpoint), endpoint, folder)
        exit_message = _no_exit_message if self._process is None else self._process.exit_message
        self._requester = Requester(endpoint, timeout_ns, exit_message)

    def request(self, text: str) -> bytes:
        """Send a message and return the reply. Raise RunFailed if there is none."""
        return self._requester.request(text)

    def log_tail(self) -> str:
        """Return the last lines of the log to append to a message; empty if we did not start the scheduler."""
        return "" if self._process is None else self._process.log_tail()

    def close(self) -> None:
        """Close the connection, and terminate the scheduler if it does not exit."""
        self._requester.close()
        if self._process is not None:
            self._process.close(is_notified=self._requester.has_reply)


def _no_exit_message() -> str | None:
    """Return None: the state of a scheduler that we did not start is unknown."""
    return None


def _start(command: list[str], endpoint: str, folder: Path) -> PeerProcess:
    if shutil.which(command[0]) is None:
        raise InputError(
            f"batsim:{' '.join(command)}",
            problem=f"cannot be started: the program {command[0]!r} does not exist",
            remedy="write a command that starts the scheduler, or the endpoint where it listens",
        )
    return PeerProcess(command, folder / "log.txt", f"{ENDPOINT_VARIABLE}={endpoint}")
