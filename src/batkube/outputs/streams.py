"""The outputs that are written while the run goes on: pods.csv and machine_states.csv."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import TextIO

from batkube.cluster.outcomes import PodRecord
from batkube.kernel.instants import START, Instant, format_seconds

POD_COLUMNS = (
    "pod",
    "job_id",
    "workload_name",
    "node",
    "machine",
    "created",
    "scheduled",
    "started",
    "finished",
    "phase",
    "attempts",
    "last_reason",
)
MACHINE_STATE_COLUMNS = ("time", "nb_sleeping", "nb_switching_on", "nb_switching_off", "nb_idle", "nb_computing")


class PodsWriter:
    """pods.csv: a row per pod, in the order in which pods ended."""

    def __init__(self, file: TextIO, node_names: Sequence[str]) -> None:
        self._writer = csv.writer(file, lineterminator="\n")
        self._writer.writerow(POD_COLUMNS)
        self._node_names = node_names

    def write(self, records: list[PodRecord]) -> None:
        """Write the pods of one gang. They share most of their times, so each time is formatted once."""
        texts: dict[Instant | None, str] = {None: ""}
        for record in records:
            for instant in (record.created, record.scheduled, record.started, record.finished):
                if instant not in texts and instant is not None:
                    texts[instant] = format_seconds(instant)
        self._writer.writerows(
            (
                record.name,
                record.job.name,
                record.job.workload,
                "" if record.machine is None else self._node_names[record.machine],
                "" if record.machine is None else record.machine,
                texts[record.created],
                texts[record.scheduled],
                texts[record.started],
                texts[record.finished],
                record.phase,
                0 if record.machine is None else 1,
                record.reason,
            )
            for record in records
        )


class MachineStatesWriter:
    """machine_states.csv: a row per instant at which the number of busy machines changed.

    Also sums up how long machines were busy.
    """

    def __init__(self, file: TextIO, machine_count: int) -> None:
        self._writer = csv.writer(file, lineterminator="\n")
        self._writer.writerow(MACHINE_STATE_COLUMNS)
        self._machine_count = machine_count
        self._since = START
        self._busy = 0
        self._written_busy: int | None = None
        #: Machine-nanoseconds with work, up to the last change.
        self.busy_machine_ns = 0

    def change(self, busy: int, now: Instant) -> None:
        """Note that from `now` on `busy` machines have work; several changes at one instant make one row."""
        if now > self._since:
            self.flush()
            self.busy_machine_ns += self._busy * (now - self._since)
            self._since = now
        self._busy = busy

    def flush(self) -> None:
        """Write the state of the last instant, if it differs from the row before."""
        if self._busy != self._written_busy:
            self._writer.writerow((format_seconds(self._since), 0, 0, 0, self._machine_count - self._busy, self._busy))
            self._written_busy = self._busy
