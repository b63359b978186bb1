"""The work of courses that flows: it begins with the last pod, and ends by itself, at its walltime or with its pods."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Protocol

from batkube.cluster.courses import Course
from batkube.cluster.outcomes import FinalState
from batkube.execution.energy_book import EnergyBook
from batkube.execution.profile_runner import ProfileRunner
from batkube.execution.profile_scripts import Correspondent
from batkube.execution.profiles import is_delay
from batkube.kernel.agenda import Agenda, Rank
from batkube.kernel.instants import Instant
from batkube.workloads.model import Job

OnEnd = Callable[[Course, FinalState, Instant], None]


class Workplace(Protocol):
    """Where the work of courses is done whose end is not known when it begins."""

    def takes(self, job: Job) -> bool:
        """Return whether a job's work is looked after here."""

    def begin(self, course: Course, hosts: Sequence[str], on_end: OnEnd, now: Instant) -> None:
        """Let the job work with its rank i on `hosts[i]`; `on_end` is told how it ended."""

    def give_up(self, course: Course, now: Instant) -> None:
        """Stop the work of a course, if it goes on."""


class CourseWork:
    """Looks after the work of courses on a platform."""

    def __init__(self, agenda: Agenda, runner: ProfileRunner, book: EnergyBook | None = None) -> None:
        """`book` is where energy is written down; then also jobs that only wait count."""
        self._agenda = agenda
        self._runner = runner
        self._book = book
        #: The hosts of jobs whose energy is being counted.
        self._hosts: dict[Course, Sequence[str]] = {}
        #: Courses whose work goes on, each with the appointment of its walltime, if it has one.
        self._limits: dict[Course, int | None] = {}

    def correspond(self, correspondent: Correspondent) -> None:
        """Have messages brought between jobs and their scheduler."""
        self._runner.correspond(correspondent)

    def takes(self, job: Job) -> bool:
        """Return whether a job's work is looked after here; how long others take is known when they begin."""
        return self._book is not None or not is_delay(job.profile)

    def begin(self, course: Course, hosts: Sequence[str], on_end: OnEnd, now: Instant) -> None:
        """Let the job compute and communicate with its rank i on `hosts[i]`; `on_end` is told how it ended."""
        if self._book is not None:
            self._hosts[course] = hosts
            self._book.begin_job(course.job.key, hosts, now)
        walltime = course.job.walltime
        reached = functools.partial(self._reach_walltime, course, on_end)
        # Batsim lets a job succeed only when it needs strictly less than its walltime, so this comes first.
        limit = None if walltime is None else self._agenda.book(Instant(now + walltime), Rank.FINISH, reached)
        self._limits[course] = limit

        def end(code: int, at: Instant) -> None:
            self._conclude(course, at)
            on_end(course, FinalState.FAILED if code else FinalState.SUCCESS, at)

        self._runner.begin(course, course.job.profile, hosts, end, now, course.job)

    def give_up(self, course: Course, now: Instant) -> None:
        """Stop the work of a course, if it goes on."""
        if course in self._limits:
            self._runner.cancel(course, now)
            self._conclude(course, now)

    def _conclude(self, course: Course, now: Instant) -> None:
        limit = self._limits.pop(course)
        if limit is not None:
            self._agenda.cancel(limit)
        if self._book is not None:
            self._book.end_job(course.job.key, self._hosts.pop(course), now)

    def _reach_walltime(self, course: Course, on_end: OnEnd, now: Instant) -> None:
        self._runner.cancel(course, now)
        self._limits[course] = None
        self._conclude(course, now)
        on_end(course, FinalState.WALLTIME, now)
