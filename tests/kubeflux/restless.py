"""KubeFlux as a run's program, which is interrupted: connections are cut under it, and it is started anew from nothing.

    python restless.py KUBECONFIG SCHEDULER_NAME SYNC AUDIT_FILE SEED

What is interrupted is the product's own: the scheduler, its mirror, its watches. A cut watch is noticed as any broken
connection is, and listed again after a second; at the looks of an auditor every half minute it has caught up.
"""

from __future__ import annotations

import contextlib
import random
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

#: The Batkube that the test is a test of: programs of a run are not told where it was imported from.
sys.path[0] = str(Path(__file__).resolve().parents[2] / "src")

from batkube.emulation.client.connection import ClusterConnection
from batkube.emulation.client.polling import pause
from batkube.joining.audit_files import AuditFiles
from batkube.joining.schedulers import standalone_kubeflux
from batkube.joining.standalone import StandaloneScheduler
from batkube.kernel.instants import NANOSECONDS_PER_SECOND
from batkube.kernel.stopwatch import wall_clock_instant
from batkube.kubeflux.cache_sync import SyncMode
from batkube.kubeflux.scheduler import KubeFluxSettings

#: Between interruptions; what they fall on is kept away from the looks of the auditor, at whole half minutes.
PERIOD_S = 30


class CutAccess(ClusterConnection):
    """An access whose connections can be cut."""

    def __init__(self, kubeconfig: Path) -> None:
        super().__init__(kubeconfig)
        self.watches: list[socket.socket] = []

    def _send(self, *words: object) -> object:  # type: ignore[override]
        response = super()._send(*words)  # type: ignore[arg-type]
        connection = getattr(response, "connection", None)
        if connection is not None and connection.sock is not None:
            self.watches.append(connection.sock)
        return response

    def cut(self) -> int:
        """Cut all connections that are open for watches; return how many there were."""
        count = 0
        for connection in self.watches:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
                count += 1
        self.watches.clear()
        return count


def interruptions(seed: int) -> Iterator[tuple[float, str]]:
    """Yield what happens to the scheduler, and at which second of the run."""
    rng = random.Random(seed)
    # Each of the two at least once, in any order.
    first = rng.sample(["cut", "restart"], 2)
    for period in range(1, 10_000):
        what = first.pop() if first else rng.choice(["cut", "cut", "restart", "nothing"])
        yield period * PERIOD_S + rng.uniform(1, PERIOD_S - 5), what


def main() -> None:
    kubeconfig, name, sync, audit, seed = sys.argv[1:]
    settings = KubeFluxSettings(name, SyncMode(sync))
    with AuditFiles(Path(audit)) as files, Path(audit).with_suffix(".interruptions").open("w", encoding="utf-8") as log:
        current: list[tuple[CutAccess, StandaloneScheduler]] = []

        def start() -> StandaloneScheduler:
            access = CutAccess(Path(kubeconfig))
            current[:] = [(access, standalone_kubeflux(access, settings, files))]
            return current[0][1]

        def interrupt() -> None:
            for at_s, what in interruptions(int(seed)):
                pause(at_s - wall_clock_instant() / NANOSECONDS_PER_SECOND)
                access, scheduler = current[0]
                if what == "restart":
                    scheduler.stop()
                count = 0 if what == "nothing" else access.cut()
                print(what, count, file=log, flush=True)

        scheduler = start()
        threading.Thread(target=interrupt, name="interruptions", daemon=True).start()
        while True:
            scheduler.run()
            scheduler = start()


if __name__ == "__main__":
    main()
