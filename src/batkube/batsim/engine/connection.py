"""The wire to a Batsim that is the engine of a run, and its process where we start it.

--engine batsim                        we start the `batsim` of the PATH on the run's platform and workloads
--engine batsim:tcp://127.0.0.1:28000  somebody starts one that looks for its scheduler there
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
    """A Batsim that speaks, and is answered."""

    def __init__(self, endpoint: str, patience: Duration) -> None:
        """One that says nothing for `patience`, in real time, is given up."""
        self._replier = Replier(endpoint or _ANY_PORT)
        self._timeout = patience
        self._process: PeerProcess | None = None
        #: Whether Batsim waits for a reply.
        self._awaits_reply = False

    def start(self, platform: str, workloads: Sequence[Workload], folder: Path, *, shares_machines: bool) -> None:
        """Start a Batsim that comes here; its files go into `folder`."""
        folder.mkdir(parents=True, exist_ok=True)
        # Otherwise its log has every message in it, and each timer of a scheduler is two.
        command = [PROGRAM, "-q", "-p", platform, "-s", self._replier.endpoint, "-e", str(folder / "out")]
        command += _master_arguments(Path(platform))
        for workload in workloads:
            command += ["-w", str(_workload_file(workload, folder))]
        if shares_machines:
            command.append("--enable-compute-sharing")
        self._process = PeerProcess(command, folder / "log.txt")

    def receive(self) -> bytes:
        """Return what Batsim says next. Raises RunFailed when it ends before, or says nothing for too long."""
        message = self._replier.receive(self._check)
        self._awaits_reply = True
        return message

    def _check(self, waited_s: float) -> None:
        last_words = None if self._process is None else self._process.exit_message()
        if last_words is not None:
            raise RunFailed(last_words)
        if self._replier.has_disconnected:
            raise RunFailed(f"the Batsim that came to {self._replier.endpoint} has gone before its simulation was over")
        if waited_s * 1e9 > self._timeout:
            raise RunFailed(
                f"no message from Batsim at {self._replier.endpoint} for {human_duration(self._timeout)} (real time)\n"
                "  remedy: start Batsim with `-s` and this endpoint, or wait longer with --watchdog"
            )

    def reply(self, text: str) -> None:
        """Answer what was received last."""
        self._awaits_reply = False
        self._replier.reply(text)

    def log_tail(self) -> str:
        """Return the last lines of Batsim's log, as the end of a message; nothing for one that is not ours."""
        return "" if self._process is None else self._process.log_tail()

    def close(self) -> None:
        """Let go of the wire, and end Batsim if it does not end itself."""
        self._replier.close()
        if self._process is not None:
            self._process.close(knows_of_end=not self._awaits_reply)


def require_batsim(platform: str) -> None:
    """Refuse what no Batsim can be started for, before anything is written."""
    remedy = "see docs/how-to/coming-from-batsim.md for how to build it, or name where one looks for its scheduler: "
    remedy += "--engine batsim:tcp://127.0.0.1:28000"
    if shutil.which(PROGRAM) is None:
        raise InputError("engine", problem=f"there is no `{PROGRAM}` on the PATH", remedy=remedy)
    if not platform.endswith(".xml"):
        raise InputError(
            "engine", problem=f"Batsim does not understand the platform {platform!r}", remedy="use a SimGrid .xml file"
        )


def _master_arguments(platform: Path) -> list[str]:
    """Return how Batsim is told which host is the master, where that is another than it takes by itself."""
    hosts = read_network(platform).hosts
    if any(host.role == "master" for host in hosts.values()):
        return []
    name = next((name for name in MASTER_NAMES if name in hosts), MASTER_NAMES[0])
    return [] if name == MASTER_NAMES[0] else ["-m", name]


def _workload_file(workload: Workload, folder: Path) -> Path:
    """Return a file of Batsim's format that has the workload: its own, or one that is written."""
    path = Path(workload.source)
    if path.suffix == ".json" and path.is_file():
        return path
    written = folder / f"{workload.name}.json"
    written.write_text("".join(batsim_text(workload)), encoding="utf-8")
    return written
