"""Runs the work of jobs whose end depends on other jobs, in a fluid model of computation and communication."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Protocol

from batkube.cluster.jobs.executions import JobExecution
from batkube.cluster.jobs.outcomes import FinalState
from batkube.execution.energy.log import EnergyLog
from batkube.execution.profiles.processes import MessageChannel
from batkube.execution.profiles.run_times import is_delay
from batkube.execution.profiles.runner import ProfileRunner
from batkube.kernel.agenda import Agenda, Rank
from batkube.kernel.instants import Instant
from batkube.workloads.model import Job

OnEnd = Callable[[JobExecution, FinalState, Instant], None]


class WorkRunner(Protocol):
    """Runs work whose end is not known when it begins."""

    def handles(self, job: Job) -> bool:
        """Return whether this runner runs the work of a job."""

    def start(self, execution: JobExecution, hosts: Sequence[str], on_end: OnEnd, now: Instant) -> None:
        """Start the work, with rank i on `hosts[i]`; `on_end` is called with its final state."""

    def abort(self, execution: JobExecution, now: Instant) -> None:
        """Stop the work of an execution, if it runs."""


class FluidWorkRunner:
    """Runs the work of job executions on a fluid platform."""

    def __init__(self, agenda: Agenda, runner: ProfileRunner, energy_log: EnergyLog | None = None) -> None:
        """With `energy_log`, the energy of jobs is recorded, including that of pure delays."""
        self._agenda = agenda
        self._runner = runner
        self._energy_log = energy_log
        #: The hosts of running jobs, if energy is recorded.
        self._hosts: dict[JobExecution, Sequence[str]] = {}
        #: Running executions, each with the appointment of its walltime, if it has one.
        self._walltime_appointments: dict[JobExecution, int | None] = {}

    def connect(self, channel: MessageChannel) -> None:
        """Set the channel for messages between jobs and their scheduler."""
        self._runner.connect(channel)

    def handles(self, job: Job) -> bool:
        """Return whether this runner runs the work of a job; the length of a pure delay is known at its start."""
        return self._energy_log is not None or not is_delay(job.profile)

    def start(self, execution: JobExecution, hosts: Sequence[str], on_end: OnEnd, now: Instant) -> None:
        """Start computation and communication, with rank i on `hosts[i]`; `on_end` is called with the final state."""
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
        """Stop the work of an execution, if it runs."""
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
