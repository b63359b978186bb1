"""Profiles of jobs that compute and communicate, run on a fluid platform in the run's time.

Each job is a script (`profile_scripts`) that goes on when what it waits for has come. Rates are computed once for all
that began and ended at an instant, after everybody had a turn; then the next end is booked.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence

from batkube.execution.meters import Meters
from batkube.execution.profile_scripts import Correspondent, Mail, Process, Script, Scripts, Speech
from batkube.fluid.flow import Flow
from batkube.fluid.tasks import Task
from batkube.kernel.agenda import Agenda, Rank
from batkube.kernel.instants import Instant
from batkube.workloads.model import Job, Profile

OnEnd = Callable[[int, Instant], None]
"""Hears the exit code of work that is through."""


class _Actor:
    """A script that waits; for `task`, for an `appointment` or for mail."""

    __slots__ = ("appointment", "job", "lag", "on_end", "others", "script", "task")

    def __init__(self, script: Script, on_end: OnEnd, job: Job | None = None) -> None:
        self.script = script
        self.on_end = on_end
        self.job = job
        self.task: Task | None = None
        #: What was rounded off the end of its last task, in nanoseconds.
        self.lag = 0.0
        self.appointment: int | None = None
        #: The scripts that it began, and that may not be through.
        self.others: list[_Actor] = []


class ProfileRunner:
    """Everything that is being worked on."""

    def __init__(self, agenda: Agenda, flow: Flow, scripts: Scripts) -> None:
        self._agenda = agenda
        self._flow = flow
        self._scripts = scripts
        self._work: dict[Hashable, _Actor] = {}
        self._actors: dict[Task, _Actor] = {}
        self._readers: dict[Mail, _Actor] = {}
        #: When the flow's next event is booked, and as which appointment.
        self._booked: tuple[Instant, int] | None = None
        self._is_unsettled = False
        #: Told of tasks, where energy counts: before they begin, and while they still hold what they took.
        self.meters: Meters | None = None

    def correspond(self, correspondent: Correspondent) -> None:
        """Have messages brought between jobs and their scheduler."""
        self._scripts.correspondent = correspondent

    def begin(
        self,
        key: Hashable,
        profile: Profile,
        hosts: Sequence[str],
        on_end: OnEnd,
        now: Instant,
        job: Job | None = None,
    ) -> None:
        """Let work begin, known by `key`; `on_end` is told once it is through. `job` is whose it is, in a run."""

        def end(code: int, at: Instant) -> None:
            del self._work[key]
            on_end(code, at)

        actor = self._work[key] = _Actor(self._scripts.script(profile, hosts, job), end, job)
        self._go_on(actor, now)

    def cancel(self, key: Hashable, now: Instant) -> None:
        """Give up work, if it is not through."""
        actor = self._work.pop(key, None)
        if actor is not None:
            self._stop(actor, now)

    def change(self, now: Instant) -> None:
        """Take note that something of the platform has changed: rates are computed anew at the end of the instant."""
        if not self._is_unsettled:
            self._is_unsettled = True
            self._agenda.book(now, Rank.WAKE, self._settle)

    # Scripts

    def _go_on(self, actor: _Actor, now: Instant) -> None:
        """Let a script go on until it waits for something that is still to come."""
        while True:
            try:
                wait = next(actor.script)
            except StopIteration as end:
                actor.on_end(end.value, now)
                return
            if isinstance(wait, Process):
                other = _Actor(wait.script, lambda code, at: self._deliver(at))
                actor.others.append(other)
                self._go_on(other, now)
            elif isinstance(wait, Mail):
                self._readers[wait] = actor
                return
            elif isinstance(wait, Task):
                self._begin_task(actor, wait, now)
                return
            elif isinstance(wait, Speech):
                if self._scripts.correspondent is not None and actor.job is not None:
                    self._scripts.correspondent.speak(actor.job, wait.message, now)
            elif wait > 0:
                at = Instant(now + wait)
                actor.appointment = self._agenda.book(at, Rank.FINISH, functools.partial(self._wake, actor))
                return

    def _wake(self, actor: _Actor, now: Instant) -> None:
        actor.appointment = None
        self._go_on(actor, now)

    def _deliver(self, now: Instant) -> None:
        """Let those read on for whom something has come."""
        for mail in [mail for mail in self._readers if mail.arrived]:
            self._go_on(self._readers.pop(mail), now)

    def _begin_task(self, actor: _Actor, task: Task, now: Instant) -> None:
        actor.task, task.lag = task, actor.lag
        self._actors[task] = actor
        if self.meters is not None:
            self.meters.begin_task(task, now)
        self._flow.begin(task, now)
        self.change(now)

    def _stop(self, actor: _Actor, now: Instant) -> None:
        if actor.appointment is not None:
            self._agenda.cancel(actor.appointment)
        if actor.task is not None and self._actors.pop(actor.task, None) is not None:
            self._end_task(actor.task, now)
            self._flow.cancel(actor.task, now)
            self.change(now)
        for mail in [mail for mail, reader in self._readers.items() if reader is actor]:
            del self._readers[mail]
        for other in actor.others:
            self._stop(other, now)

    def _end_task(self, task: Task, now: Instant) -> None:
        if self.meters is not None:
            self.meters.end_task(task, now)

    # Time

    def _settle(self, now: Instant) -> None:
        self._is_unsettled = False
        self._flow.settle(now)
        due = self._flow.due()
        if self._booked is not None:
            if self._booked[0] == due:
                return
            self._agenda.cancel(self._booked[1])
            self._booked = None
        if due is not None:
            self._booked = due, self._agenda.book(due, Rank.FINISH, self._advance)

    def _advance(self, now: Instant) -> None:
        self._booked = None
        due = self._flow.due()
        while due is not None and due <= now:
            for task in self._flow.advance(now, on_through=self._end_task):
                actor = self._actors.pop(task)
                actor.task, actor.lag = None, task.lag
                self._go_on(actor, now)
            due = self._flow.due()
        self.change(now)
