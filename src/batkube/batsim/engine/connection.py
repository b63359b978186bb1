"""The connection to a Batsim that is the engine of a run, and its process if we start it.

--engine batsim                        starts the `batsim` on the PATH, with the run's platform and workloads
--engine batsim:tcp://127.0.0.1:28000  waits for a Batsim that the user starts with this endpoint (`-s`)
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from batkube.batsim.protocol.peer_process import PeerProcess
from batkube.batsim.protocol.zmq_sockets import Replier
from batkube.kernel.errors import InputError, RunFailed
from batkube.kernel.instants import Duration, human_duration
from batkube.platforms.reader import read_network
from batkube.platforms.simgrid.machines import MASTER_NAMES
from batkube.workloads.formats.batsim.writer import batsim_text
from batkube.workloads.model import Workload

PROGRAM = "batsim"
_ANY_PORT = "tcp://127.0.0.1:*"


class EngineConnection:
    """Receives the messages of a Batsim, and replies."""

    def __init__(self, endpoint: str, timeout: Duration) -> None:
        """Fail if Batsim sends no message within `timeout` of real time."""
        self._replier = Replier(endpoint or _ANY_PORT)
        self._timeout = timeout
        self._process: PeerProcess | None = None
        #: Whether Batsim waits for a reply.
        self._awaits_reply = False

    def start(self, platform: str, workloads: Sequence[Workload], folder: Path, *, shares_machines: bool) -> None:
        """Start a Batsim that connects to this endpoint, with its files in `folder`."""
        folder.mkdir(parents=True, exist_ok=True)
        # Without -q, Batsim logs every message, and each timer of a scheduler is two messages.
        command = [PROGRAM, "-q", "-p", platform, "-s", self._replier.endpoint, "-e", str(folder / "out")]
        command += _master_arguments(Path(platform))
        for workload in workloads:
            command += ["-w", str(_workload_file(workload, folder))]
        if shares_machines:
            command.append("--enable-compute-sharing")
        self._process = PeerProcess(command, folder / "log.txt")

    def receive(self) -> bytes:
        """Return the next message of Batsim. Raise RunFailed if Batsim ends, disconnects or exceeds the timeout."""
        message = self._replier.receive(self._check_peer)
        self._awaits_reply = True
        return message

    def _check_peer(self, waited_s: float) -> None:
        exit_message = None if self._process is None else self._process.exit_message()
        if exit_message is not None:
            raise RunFailed(exit_message)
        if self._replier.has_disconnected:
            raise RunFailed(f"the Batsim at {self._replier.endpoint} disconnected before the simulation was over")
        if waited_s * 1e9 > self._timeout:
            raise RunFailed(
                f"no message from Batsim at {self._replier.endpoint} for {human_duration(self._timeout)} (real time)\n"
                "  remedy: start Batsim with `-s` and this endpoint, or wait longer with --watchdog"
            )

    def reply(self, text: str) -> None:
        """Reply to the last message."""
        self._awaits_reply = False
        self._replier.reply(text)

    def log_tail(self) -> str:
        """Return the last lines of the log to append to a message; empty if we did not start Batsim."""
        return "" if self._process is None else self._process.log_tail()

    def close(self) -> None:
        """Close the connection, and terminate Batsim if it does not exit."""
        self._replier.close()
        if self._process is not None:
            self._process.close(is_notified=not self._awaits_reply)


def require_batsim(platform: str) -> None:
    """Check that a Batsim can be started, before anything is written. Raise InputError."""
    if shutil.which(PROGRAM) is None:
        raise InputError(
            "--engine batsim",
            problem=f"there is no `{PROGRAM}` on the PATH",
            remedy="build it (docs/how-to/coming-from-batsim.md), or start a Batsim elsewhere and write its endpoint: "
            "--engine batsim:tcp://127.0.0.1:28000",
        )
    if not platform.endswith(".xml"):
        raise InputError(
            "--engine batsim",
            problem=f"Batsim cannot read the platform {platform!r}",
            remedy="use a SimGrid platform file (.xml)",
        )


def _master_arguments(platform: Path) -> list[str]:
    """Return the option for the master host, if it is not Batsim's default."""
    hosts = read_network(platform).hosts
    if any(host.role == "master" for host in hosts.values()):
        return []
    name = next((name for name in MASTER_NAMES if name in hosts), MASTER_NAMES[0])
    return [] if name == MASTER_NAMES[0] else ["-m", name]


def _workload_file(workload: Workload, folder: Path) -> Path:
    """Return a file with the workload in Batsim's format: its own, or one that is written to `folder`."""
    path = Path(workload.source)
    if path.suffix == ".json" and path.is_file():
        return path
    path = folder / f"{workload.name}.json"
    path.write_text("".join(batsim_text(workload)), encoding="utf-8")
    return path
