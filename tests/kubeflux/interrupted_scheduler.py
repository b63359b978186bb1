"""KubeFlux as a program of a run, with interruptions: its connections are cut, and it is restarted without state.

    python interrupted_scheduler.py KUBECONFIG SCHEDULER_NAME SYNC AUDIT_FILE SEED

The interruptions test the product's scheduler, mirror and watches. A cut watch is resumed at once. An expired one is
replaced by a new list after 0.8 s, unless the previous one expired less than two minutes ago. The auditor checks every
half minute, when the scheduler has caught up.
"""

from __future__ import annotations

import contextlib
import random
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

#: The sources under test. Programs of a run do not inherit the import path of the test.
sys.path[0] = str(Path(__file__).resolve().parents[2] / "src")

from batkube.emulation.client.connection import ApiStatusError, ClusterConnection
from batkube.emulation.client.polling import pause
from batkube.joining.audit_files import AuditFiles
from batkube.joining.schedulers import standalone_kubeflux
from batkube.joining.standalone import StandaloneScheduler
from batkube.kernel.instants import NANOSECONDS_PER_SECOND
from batkube.kernel.stopwatch import wall_clock_instant
from batkube.kubeflux.cache_sync import SyncMode
from batkube.kubeflux.scheduler import KubeFluxSettings

#: The interval of interruptions. They are not close to the checks of the auditor, at multiples of it.
PERIOD_S = 30


class InterruptibleConnection(ClusterConnection):
    """A connection to a cluster whose watches can be cut, and whose resource versions can expire."""

    def __init__(self, kubeconfig: Path) -> None:
        super().__init__(kubeconfig)
        self.watches: list[socket.socket] = []
        #: The number of watches to reject as expired.
        self.expired = 0

    def watch(self, path: str, **query: str | int) -> Iterator[bytes]:
        if self.expired:
            self.expired -= 1
            raise ApiStatusError(410, "Expired", "too old resource version")
        return super().watch(path, **query)

    def _send(self, method: str, path: str, query: Mapping[str, str | int], *others: Any) -> Any:  # noqa: ANN401 - of urllib3
        response = super()._send(method, path, query, *others)
        if "watch" in query and response.connection is not None and response.connection.sock is not None:
            self.watches.append(response.connection.sock)
        return response

    def cut(self) -> int:
        """Close the sockets of all watches; return their number."""
        count = 0
        for watch in self.watches:
            with contextlib.suppress(OSError):
                watch.shutdown(socket.SHUT_RDWR)
                count += 1
        self.watches.clear()
        return count


def interruptions(seed: int) -> Iterator[tuple[float, str]]:
    """Yield the times, in seconds of the run, and the kinds of interruptions."""
    rng = random.Random(seed)
    # Every kind occurs at least once, in any order.
    first = rng.sample(["cut", "expire", "restart"], 3)
    for period in range(1, 10_000):
        kind = (
            first.pop() if first else "expire" if period % 5 == 0 else rng.choice(["cut", "cut", "restart", "nothing"])
        )
        yield period * PERIOD_S + rng.uniform(1, PERIOD_S - 5), kind


def main() -> None:
    kubeconfig, name, sync, audit, seed = sys.argv[1:]
    settings = KubeFluxSettings(name, SyncMode(sync))
    with AuditFiles(Path(audit)) as files, Path(audit).with_suffix(".interruptions").open("w", encoding="utf-8") as log:
        current: list[tuple[InterruptibleConnection, StandaloneScheduler]] = []

        def start() -> StandaloneScheduler:
            connection = InterruptibleConnection(Path(kubeconfig))
            current[:] = [(connection, standalone_kubeflux(connection, settings, files))]
            return current[0][1]

        def interrupt() -> None:
            for at_s, kind in interruptions(int(seed)):
                pause(at_s - wall_clock_instant() / NANOSECONDS_PER_SECOND)
                connection, scheduler = current[0]
                if kind == "restart":
                    scheduler.stop()
                if kind == "expire":
                    connection.expired = len(connection.watches)
                count = 0 if kind == "nothing" else connection.cut()
                print(kind, count, file=log, flush=True)

        scheduler = start()
        threading.Thread(target=interrupt, name="interruptions", daemon=True).start()
        while True:
            scheduler.run()
            scheduler = start()


if __name__ == "__main__":
    main()
