"""Replays recorded runs of the real Batsim 4.2.1: each job starts at its recorded time on its recorded hosts."""

from __future__ import annotations

import csv
import functools
import itertools
import shlex
from collections.abc import Mapping
from pathlib import Path

from batkube.execution.profiles.fluid_platform import FluidPlatform
from batkube.execution.profiles.processes import ProfileProcesses
from batkube.execution.profiles.runner import ProfileRunner
from batkube.execution.profiles.task_shapes import storage_lookup
from batkube.fluid.flow import Flow
from batkube.kernel.agenda import Agenda, Rank
from batkube.kernel.instants import Instant, seconds
from batkube.kernel.intervals import members, parse_intervals
from batkube.platforms.reader import read_platform
from batkube.platforms.simgrid.network import parse_network
from batkube.workloads.formats.batsim.documents import read_batsim
from batkube.workloads.formats.batsim.usage_traces import UsageTrace, read_usage_trace
from batkube.workloads.model import RawProfile


class RecordedRun:
    """One recorded run: its inputs, and its rows of jobs.csv."""

    def __init__(self, runs: Path, name: str) -> None:
        self.folder = runs / "runs" / name
        words = shlex.split((self.folder / "cmdline.txt").read_text().partition("batsim ")[2])
        options = dict(itertools.pairwise(words))
        self.platform = (runs / "inputs" / options["-p"]).resolve()
        self.workload = (runs / "inputs" / options["-w"]).resolve()
        self.jobs = self.rows("out_jobs.csv")

    def rows(self, name: str) -> list[dict[str, str]]:
        """Return the rows of one of its output files."""
        return list(csv.DictReader((self.folder / name).read_text().splitlines()))

    def trace(self, profile: RawProfile) -> UsageTrace:
        """Return the usage trace that a profile names."""
        return read_usage_trace(self.workload.parent / str(profile.fields["trace"]))


class Replay:
    """The jobs of a recorded run on our platform, each at its recorded time and hosts."""

    def __init__(self, run: RecordedRun, storages: Mapping[str, str] | None = None) -> None:
        self.run = run
        self.agenda = Agenda()
        self.platform = FluidPlatform(parse_network(run.platform, run.platform.read_bytes()), Flow())
        self.storages = sorted(self.platform.network.storages)
        self.machines = [machine.name for machine in read_platform(str(run.platform)).machines]
        scripts = ProfileProcesses(self.platform, storage_lookup(self.storages, storages), run.trace)
        self.work = ProfileRunner(self.agenda, self.platform.flow, scripts)
        #: The end of each job, in seconds, and its exit code.
        self.ends: dict[str, tuple[float, int]] = {}
        self.now = Instant(0)

    def hosts(self, row: Mapping[str, str]) -> list[str]:
        """Return the hosts of a recorded job."""
        names = [*self.machines, *self.storages]
        return [names[number] for number in members(parse_intervals(row["allocated_resources"]))]

    def play(self) -> None:
        """Execute the whole run."""
        profiles = {job.name: job.profile for job in read_batsim(self.run.workload, "w0").jobs}
        for row in self.run.jobs:
            name, start = row["job_id"], Instant(seconds(row["starting_time"]))

            def begin(now: Instant, name: str = name, row: Mapping[str, str] = row) -> None:
                self.begin(name, row, now)
                self.work.start(name, profiles[name], self.hosts(row), lambda code, at: self.end(name, code, at), now)

            self.agenda.book(start, Rank.START, begin)
            if (walltime := seconds(row["requested_time"])) > 0:
                self.agenda.book(Instant(start + walltime), Rank.FINISH, functools.partial(self.stop, name))
        while (appointment := self.agenda.pop_next()) is not None:
            self.now = appointment.at
            appointment.action(appointment.at)

    def stop(self, name: str, now: Instant) -> None:
        """End a job at its walltime, unless it has ended."""
        if name not in self.ends:
            self.work.cancel(name, now)
            self.end(name, 0, now)

    def begin(self, name: str, row: Mapping[str, str], now: Instant) -> None:
        """Handle the start of a job."""

    def end(self, name: str, code: int, now: Instant) -> None:
        """Handle the end of a job."""
        self.ends[name] = now / 1e9, code
