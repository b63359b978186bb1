"""Profiles of jobs that compute and communicate, run on a fluid platform in the run's time.

Each job is a script (`profile_scripts`) that goes on when what it waits for has come. Rates are computed once for all
that began and ended at an instant, after everybody had a turn; then the next end is booked.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence

from batkube.execution.profiles.energy_meters import EnergyMeters
from batkube.execution.profiles.processes import (
    ChildProcess,
    CompletionQueue,
    MessageChannel,
    OutgoingMessage,
    ProfileProcess,
    ProfileProcesses,
)
from batkube.fluid.flow import Flow
from batkube.fluid.tasks import Task
from batkube.kernel.agenda import Agenda, Rank
from batkube.kernel.instants import Instant
from batkube.workloads.model import Job, Profile

OnEnd = Callable[[int, Instant], None]
"""Hears the exit code of work that is through."""


class _RunningProcess:
    """A script that waits; for `task`, for an `appointment` or for mail."""

    __slots__ = ("appointment", "children", "job", "lag", "on_end", "process", "task")

    def __init__(self, script: ProfileProcess, on_end: OnEnd, job: Job | None = None) -> None:
        self.process = script
        self.on_end = on_end
        self.job = job
        self.task: Task | None = None
        #: What was rounded off the end of its last task, in nanoseconds.
        self.lag = 0.0
        self.appointment: int | None = None
        #: The scripts that it began, and that may not be through.
        self.children: list[_RunningProcess] = []


class ProfileRunner:
    """Everything that is being worked on."""

    def __init__(self, agenda: Agenda, flow: Flow, scripts: ProfileProcesses) -> None:
        self._agenda = agenda
        self._flow = flow
        self._processes = scripts
        self._running: dict[Hashable, _RunningProcess] = {}
        self._by_task: dict[Task, _RunningProcess] = {}
        self._by_queue: dict[CompletionQueue, _RunningProcess] = {}
        #: When the flow's next event is booked, and as which appointment.
        self._booked: tuple[Instant, int] | None = None
        self._is_unsettled = False
        #: Told of tasks, where energy counts: before they begin, and while they still hold what they took.
        self.meters: EnergyMeters | None = None

    def connect(self, correspondent: MessageChannel) -> None:
        """Have messages brought between jobs and their scheduler."""
        self._processes.channel = correspondent

    def start(
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
            del self._running[key]
            on_end(code, at)

        actor = self._running[key] = _RunningProcess(self._processes.process(profile, hosts, job), end, job)
        self._resume(actor, now)

    def cancel(self, key: Hashable, now: Instant) -> None:
        """Give up work, if it is not through."""
        actor = self._running.pop(key, None)
        if actor is not None:
            self._stop(actor, now)

    def request_settle(self, now: Instant) -> None:
        """Take note that something of the platform has changed: rates are computed anew at the end of the instant."""
        if not self._is_unsettled:
            self._is_unsettled = True
            self._agenda.book(now, Rank.WAKE, self._settle)

    # Scripts

    def _resume(self, actor: _RunningProcess, now: Instant) -> None:
        """Let a script go on until it waits for something that is still to come."""
        while True:
            try:
                wait = next(actor.process)
            except StopIteration as end:
                actor.on_end(end.value, now)
                return
            if isinstance(wait, ChildProcess):
                other = _RunningProcess(wait.process, lambda code, at: self._deliver_completions(at))
                actor.children.append(other)
                self._resume(other, now)
            elif isinstance(wait, CompletionQueue):
                self._by_queue[wait] = actor
                return
            elif isinstance(wait, Task):
                self._begin_task(actor, wait, now)
                return
            elif isinstance(wait, OutgoingMessage):
                if self._processes.channel is not None and actor.job is not None:
                    self._processes.channel.send(actor.job, wait.message, now)
            elif wait > 0:
                at = Instant(now + wait)
                actor.appointment = self._agenda.book(
                    at, Rank.FINISH, functools.partial(self._resume_after_delay, actor)
                )
                return

    def _resume_after_delay(self, actor: _RunningProcess, now: Instant) -> None:
        actor.appointment = None
        self._resume(actor, now)

    def _deliver_completions(self, now: Instant) -> None:
        """Let those read on for whom something has come."""
        for mail in [mail for mail in self._by_queue if mail.arrived]:
            self._resume(self._by_queue.pop(mail), now)

    def _begin_task(self, actor: _RunningProcess, task: Task, now: Instant) -> None:
        actor.task, task.lag = task, actor.lag
        self._by_task[task] = actor
        if self.meters is not None:
            self.meters.begin_task(task, now)
        self._flow.begin(task, now)
        self.request_settle(now)

    def _stop(self, actor: _RunningProcess, now: Instant) -> None:
        if actor.appointment is not None:
            self._agenda.cancel(actor.appointment)
        if actor.task is not None and self._by_task.pop(actor.task, None) is not None:
            self._end_task(actor.task, now)
            self._flow.cancel(actor.task, now)
            self.request_settle(now)
        for mail in [mail for mail, reader in self._by_queue.items() if reader is actor]:
            del self._by_queue[mail]
        for other in actor.children:
            self._stop(other, now)

    def _end_task(self, task: Task, now: Instant) -> None:
        if self.meters is not None:
            self.meters.end_task(task, now)

    # Time

    def _settle(self, now: Instant) -> None:
        self._is_unsettled = False
        self._flow.update_rates(now)
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
                actor = self._by_task.pop(task)
                actor.task, actor.lag = None, task.lag
                self._resume(actor, now)
            due = self._flow.due()
        self.request_settle(now)
