"""Batsim's output files, with its names and columns; they are written during the simulation.

`PREFIX_jobs.csv` has a row per job, in the order of their ends, `PREFIX_machine_states.csv` a row per change, and
`PREFIX_schedule.csv` one row. If the simulation is aborted, they are complete up to that date.

Imitated: Batsim 4.2.1, src/export.cpp (docs/output-jobs.rst, docs/output-schedule.rst, docs/output-energy.rst).
"""

from __future__ import annotations

import math
from collections import Counter
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import TextIO

from batkube.batsim.state.jobs import JobState, LiveJob
from batkube.batsim.state.machines import Machines, MachineState
from batkube.execution.energy.log import EnergyLog
from batkube.kernel.instants import Duration, Instant, as_float_s, format_seconds
from batkube.kernel.intervals import format_intervals
from batkube.outputs.writers.energy_csv import write_consumed_energy, write_pstate_changes
from batkube.outputs.writers.jobs_csv import BATSIM_COLUMNS

_STATES = (
    MachineState.SLEEPING,
    MachineState.SWITCHING_ON,
    MachineState.SWITCHING_OFF,
    MachineState.IDLE,
    MachineState.COMPUTING,
)
#: The initial value of Batsim's energy readings, which is used where no job was submitted or none has ended
#: (energy_first_job_submission and energy_last_job_completion in src/context.hpp).
_NOT_READ = -1.0
#: The version of Batsim that is imitated.
BATSIM_VERSION = "4.2.1"


class OutputFiles(AbstractContextManager["OutputFiles"]):
    """Writes the files of one simulation."""

    def __init__(self, prefix: str, machines: Machines, *, has_states: bool = True) -> None:
        """File names begin with `prefix`; without `has_states`, no machine states are written."""
        self._prefix = prefix
        self._machines = machines
        self._files: list[TextIO] = []
        self._jobs = self._open("jobs", ",".join(BATSIM_COLUMNS))
        self._states = None
        if has_states:
            self._states = self._open("machine_states", ",".join(["time", *(f"nb_{state}" for state in _STATES)]))
            machines.on_change = self._write_states
        self._totals = Totals()
        #: The real time of the scheduler's decisions, and of the whole simulation, in seconds.
        self.scheduling_time = self.simulation_time = 0.0
        #: The energy log, with energy accounting.
        self.energy_log: EnergyLog | None = None
        #: The energy of all machines when the first job was submitted.
        self._first_joules: float | None = None

    def _open(self, name: str, header: str) -> TextIO:
        """Open the file `PREFIX_name.csv`, and write its header."""
        file = Path(f"{self._prefix}_{name}.csv").open("w", encoding="utf-8", newline="")  # noqa: SIM115 - closed below
        self._files.append(file)
        file.write(f"{header}\n")
        return file

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._write_schedule()
        if self.energy_log is not None:
            write_consumed_energy(Path(f"{self._prefix}_consumed_energy.csv"), self.energy_log.readings)
            write_pstate_changes(Path(f"{self._prefix}_pstate_changes.csv"), self.energy_log.pstate_changes)
        for file in self._files:
            file.close()

    def record_first_submission(self, now: Instant) -> None:
        """Record the energy at the first submission: that of the schedule is counted from there."""
        if self.energy_log is not None:
            self._first_joules = self.energy_log.meters.total_joules(now)

    @property
    def awaits_first_submission(self) -> bool:
        """Whether the energy at the first submission has not been recorded yet."""
        return self.energy_log is not None and self._first_joules is None

    def record(self, live: LiveJob) -> None:
        """Write the row of a job that has ended or was rejected."""
        self._totals.add(live)
        self._jobs.write(",".join(_cells(live)) + "\n")

    def _write_states(self, now: Instant) -> None:
        counts = self._machines.counts
        if self._states is not None:
            numbers = ",".join(str(counts[state]) for state in _STATES)
            self._states.write(f"{as_float_s(now):g},{numbers}\n")

    def _joules(self) -> float:
        """Return the energy of all machines from the first submission to the last end of a job."""
        last = None if self.energy_log is None else self.energy_log.last_job_joules
        first = self._first_joules
        return (_NOT_READ if last is None else last) - (_NOT_READ if first is None else first)

    def _write_schedule(self) -> None:
        totals, times, energy_log = self._totals, self._machines.times, self.energy_log
        row = {
            "batsim_version": BATSIM_VERSION,
            "consumed_joules": f"{self._joules():.6f}",
            **totals.cells(),
            "nb_computing_machines": str(len(self._machines.all)),
            "nb_grouped_switches": str(0 if energy_log is None else energy_log.requests),
            "nb_machine_switches": str(0 if energy_log is None else energy_log.switches),
            "scheduling_time": f"{self.scheduling_time:.6f}",
            "simulation_time": f"{self.simulation_time:.6f}",
            **{f"time_{state}": format_seconds(times[state]) for state in MachineState},
        }
        names = sorted(row)
        path = Path(f"{self._prefix}_schedule.csv")
        path.write_text(f"{','.join(names)}\n{','.join(row[name] for name in names)}\n", encoding="utf-8")


def _cells(live: LiveJob) -> list[str]:
    """Return the cells of a job's row; a rejected job has no times."""
    job, is_rejected = live.job, live.state is JobState.REJECTED
    turnaround = live.ended - job.submit
    times = [
        format_seconds(live.started),
        format_seconds(live.length),
        format_seconds(live.ended),
        format_seconds(live.started - job.submit),
        format_seconds(turnaround),
        "" if is_rejected else f"{turnaround / live.length:.6f}",
    ]
    joules = "-1.000000" if live.joules is None else f"{live.joules:.6f}"
    return [
        job.name,
        job.workload,
        job.profile.name,
        format_seconds(job.submit),
        str(job.size),
        "-1.000000" if job.walltime is None else format_seconds(job.walltime),
        str(int(live.state is JobState.SUCCESS)),
        live.state,
        *([""] * len(times) if is_rejected else times),
        format_intervals(live.machines),
        "" if is_rejected else joules,
        f'"{live.metadata}"',
    ]


class Totals:
    """The totals over all jobs. Means are over all jobs, including rejected ones."""

    def __init__(self) -> None:
        self._count: Counter[str] = Counter()
        self._sums: Counter[str] = Counter()
        self._longest: Counter[str] = Counter()
        self._slowdowns: list[float] = []
        self._makespan = Duration(0)

    def add(self, live: LiveJob) -> None:
        """Add a job that has ended or was rejected."""
        self._count["all"] += 1
        if live.state is JobState.REJECTED:
            self._count["rejected"] += 1
            return
        self._count["finished"] += 1
        self._count["success" if live.state is JobState.SUCCESS else "killed"] += 1
        self._makespan = Duration(max(self._makespan, live.ended))
        for name, length in (("wait", live.started - live.job.submit), ("turnaround", live.ended - live.job.submit)):
            self._sums[name] += length
            self._longest[name] = max(self._longest[name], length)
        self._slowdowns.append((live.ended - live.job.submit) / live.length)

    def cells(self) -> dict[str, str]:
        """Return the cells of schedule.csv that are about jobs, by column."""
        count = self._count["all"]
        return {
            "makespan": format_seconds(self._makespan),
            "max_slowdown": f"{max(self._slowdowns, default=0.0):.6f}",
            "max_turnaround_time": format_seconds(self._longest["turnaround"]),
            "max_waiting_time": format_seconds(self._longest["wait"]),
            "mean_slowdown": _mean(math.fsum(self._slowdowns), count),
            "mean_turnaround_time": _mean(as_float_s(self._sums["turnaround"]), count),
            "mean_waiting_time": _mean(as_float_s(self._sums["wait"]), count),
            "nb_jobs": str(count),
            "nb_jobs_finished": str(self._count["finished"]),
            "nb_jobs_killed": str(self._count["killed"]),
            "nb_jobs_rejected": str(self._count["rejected"]),
            "nb_jobs_success": str(self._count["success"]),
            "success_rate": _mean(self._count["success"], count),
        }


def _mean(total: float, count: int) -> str:
    """Return a mean; without jobs, the text that C prints for 0/0."""
    return f"{total / count:.6f}" if count else "-nan"
