"""The work of courses that flows: it begins with the last pod, and ends by itself, at its walltime or with its pods."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from batkube.cluster.courses import Course
from batkube.cluster.outcomes import FinalState
from batkube.execution.plant_work import PlantWork
from batkube.kernel.agenda import Agenda, Rank
from batkube.kernel.instants import Instant

OnEnd = Callable[[Course, FinalState, Instant], None]


class CourseWork:
    """Looks after the work of courses on a plant."""

    def __init__(self, agenda: Agenda, work: PlantWork) -> None:
        self._agenda = agenda
        self._work = work
        #: Courses whose work goes on, each with the appointment of its walltime, if it has one.
        self._limits: dict[Course, int | None] = {}

    def begin(self, course: Course, hosts: Sequence[str], on_end: OnEnd, now: Instant) -> None:
        """Let the job compute and communicate with its rank i on `hosts[i]`; `on_end` is told how it ended."""
        walltime = course.job.walltime
        reached = functools.partial(self._reach_walltime, course, on_end)
        # Batsim lets a job succeed only when it needs strictly less than its walltime, so this comes first.
        limit = None if walltime is None else self._agenda.book(Instant(now + walltime), Rank.FINISH, reached)
        self._limits[course] = limit

        def end(code: int, at: Instant) -> None:
            self._forget_limit(course)
            on_end(course, FinalState.FAILED if code else FinalState.SUCCESS, at)

        self._work.begin(course, course.job.profile, hosts, end, now)

    def give_up(self, course: Course, now: Instant) -> None:
        """Stop the work of a course, if it goes on."""
        if course in self._limits:
            self._forget_limit(course)
            self._work.cancel(course, now)

    def _forget_limit(self, course: Course) -> None:
        limit = self._limits.pop(course)
        if limit is not None:
            self._agenda.cancel(limit)

    def _reach_walltime(self, course: Course, on_end: OnEnd, now: Instant) -> None:
        del self._limits[course]
        self._work.cancel(course, now)
        on_end(course, FinalState.WALLTIME, now)
