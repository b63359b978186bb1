"""The work of courses that flows: it begins with the last pod, and ends by itself, at its walltime or with its pods."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Protocol

from batkube.cluster.jobs.executions import JobExecution
from batkube.cluster.jobs.outcomes import FinalState
from batkube.execution.profiles.energy_log import EnergyLog
from batkube.execution.profiles.processes import MessageChannel
from batkube.execution.profiles.run_times import is_delay
from batkube.execution.profiles.runner import ProfileRunner
from batkube.kernel.agenda import Agenda, Rank
from batkube.kernel.instants import Instant
from batkube.workloads.model import Job

OnEnd = Callable[[JobExecution, FinalState, Instant], None]


class WorkRunner(Protocol):
    """Where the work of courses is done whose end is not known when it begins."""

    def handles(self, job: Job) -> bool:
        """Return whether a job's work is looked after here."""

    def start(self, execution: JobExecution, hosts: Sequence[str], on_end: OnEnd, now: Instant) -> None:
        """Let the job work with its rank i on `hosts[i]`; `on_end` is told how it ended."""

    def abort(self, execution: JobExecution, now: Instant) -> None:
        """Stop the work of a course, if it goes on."""


class FluidWorkRunner:
    """Looks after the work of courses on a platform."""

    def __init__(self, agenda: Agenda, runner: ProfileRunner, book: EnergyLog | None = None) -> None:
        """`book` is where energy is written down; then also jobs that only wait count."""
        self._agenda = agenda
        self._runner = runner
        self._energy_log = book
        #: The hosts of jobs whose energy is being counted.
        self._hosts: dict[JobExecution, Sequence[str]] = {}
        #: Courses whose work goes on, each with the appointment of its walltime, if it has one.
        self._walltime_appointments: dict[JobExecution, int | None] = {}

    def connect(self, correspondent: MessageChannel) -> None:
        """Have messages brought between jobs and their scheduler."""
        self._runner.connect(correspondent)

    def handles(self, job: Job) -> bool:
        """Return whether a job's work is looked after here; how long others take is known when they begin."""
        return self._energy_log is not None or not is_delay(job.profile)

    def start(self, execution: JobExecution, hosts: Sequence[str], on_end: OnEnd, now: Instant) -> None:
        """Let the job compute and communicate with its rank i on `hosts[i]`; `on_end` is told how it ended."""
        if self._energy_log is not None:
            self._hosts[execution] = hosts
            self._energy_log.record_job_start(execution.job.key, hosts, now)
        walltime = execution.job.walltime
        reached = functools.partial(self._reach_walltime, execution, on_end)
        # Batsim lets a job succeed only when it needs strictly less than its walltime, so this comes first.
        limit = None if walltime is None else self._agenda.book(Instant(now + walltime), Rank.FINISH, reached)
        self._walltime_appointments[execution] = limit

        def end(code: int, at: Instant) -> None:
            self._finish(execution, at)
            on_end(execution, FinalState.FAILED if code else FinalState.SUCCESS, at)

        self._runner.start(execution, execution.job.profile, hosts, end, now, execution.job)

    def abort(self, execution: JobExecution, now: Instant) -> None:
        """Stop the work of a course, if it goes on."""
        if execution in self._walltime_appointments:
            self._runner.cancel(execution, now)
            self._finish(execution, now)

    def _finish(self, execution: JobExecution, now: Instant) -> None:
        limit = self._walltime_appointments.pop(execution)
        if limit is not None:
            self._agenda.cancel(limit)
        if self._energy_log is not None:
            self._energy_log.record_job_end(execution.job.key, self._hosts.pop(execution), now)

    def _reach_walltime(self, execution: JobExecution, on_end: OnEnd, now: Instant) -> None:
        self._runner.cancel(execution, now)
        self._walltime_appointments[execution] = None
        self._finish(execution, now)
        on_end(execution, FinalState.WALLTIME, now)
