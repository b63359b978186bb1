"""Runs the profiles of jobs that compute and communicate on a fluid platform.

Each job is a process (`processes`) that is resumed when its wait is over. The rates of tasks are computed once per
instant, after all tasks that begin or end then; the next end is booked afterwards.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Protocol

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
"""Called with the exit code at the end of the work."""


class TaskListener(Protocol):
    """A listener that is notified of tasks, such as the energy meters."""

    def begin_task(self, task: Task, now: Instant) -> None:
        """Handle a task that is about to begin."""

    def end_task(self, task: Task, now: Instant) -> None:
        """Handle a task that has just ended and still holds its resources."""


class _RunningProcess:
    """A process that waits for a `task`, an `appointment` or the completion of children."""

    __slots__ = ("appointment", "children", "generator", "job", "lag", "on_end", "task")

    def __init__(self, process: ProfileProcess, on_end: OnEnd, job: Job | None = None) -> None:
        self.generator = process
        self.on_end = on_end
        self.job = job
        self.task: Task | None = None
        #: The rounding error of the end of its last task, in nanoseconds.
        self.lag = 0.0
        self.appointment: int | None = None
        #: The child processes that it has started.
        self.children: list[_RunningProcess] = []


class ProfileRunner:
    """Runs the work of all jobs."""

    def __init__(self, agenda: Agenda, flow: Flow, processes: ProfileProcesses) -> None:
        self._agenda = agenda
        self._flow = flow
        self._processes = processes
        self._running: dict[Hashable, _RunningProcess] = {}
        self._by_task: dict[Task, _RunningProcess] = {}
        self._by_queue: dict[CompletionQueue, _RunningProcess] = {}
        #: The instant and the appointment of the next event of the fluid model.
        self._booked: tuple[Instant, int] | None = None
        self._is_unsettled = False
        #: The energy meters, if energy is recorded.
        self.meters: TaskListener | None = None

    def connect(self, channel: MessageChannel) -> None:
        """Set the channel for messages between jobs and their scheduler."""
        self._processes.channel = channel

    def start(
        self,
        key: Hashable,
        profile: Profile,
        hosts: Sequence[str],
        on_end: OnEnd,
        now: Instant,
        job: Job | None = None,
    ) -> None:
        """Start work identified by `key`; `on_end` is called at its end. `job` is the job of the work, in a run."""

        def end(code: int, at: Instant) -> None:
            del self._running[key]
            on_end(code, at)

        process = self._running[key] = _RunningProcess(self._processes.process(profile, hosts, job), end, job)
        self._resume(process, now)

    def cancel(self, key: Hashable, now: Instant) -> None:
        """Stop work, unless it has ended."""
        process = self._running.pop(key, None)
        if process is not None:
            self._stop(process, now)

    def request_settle(self, now: Instant) -> None:
        """Handle a change of the platform: recompute the rates at the end of the instant."""
        if not self._is_unsettled:
            self._is_unsettled = True
            self._agenda.book(now, Rank.WAKE, self._settle)

    # Processes

    def _resume(self, process: _RunningProcess, now: Instant) -> None:
        """Resume a process until it waits for something in the future."""
        while True:
            try:
                wait = next(process.generator)
            except StopIteration as end:
                process.on_end(end.value, now)
                return
            if isinstance(wait, ChildProcess):
                child = _RunningProcess(wait.process, lambda code, at: self._deliver_completions(at))
                process.children.append(child)
                self._resume(child, now)
            elif isinstance(wait, CompletionQueue):
                self._by_queue[wait] = process
                return
            elif isinstance(wait, Task):
                self._begin_task(process, wait, now)
                return
            elif isinstance(wait, OutgoingMessage):
                if self._processes.channel is not None and process.job is not None:
                    self._processes.channel.send(process.job, wait.message, now)
            elif wait > 0:
                at = Instant(now + wait)
                process.appointment = self._agenda.book(
                    at, Rank.FINISH, functools.partial(self._resume_after_delay, process)
                )
                return

    def _resume_after_delay(self, process: _RunningProcess, now: Instant) -> None:
        process.appointment = None
        self._resume(process, now)

    def _deliver_completions(self, now: Instant) -> None:
        """Resume the processes that wait for a completed child."""
        for queue in [queue for queue in self._by_queue if queue.arrived]:
            self._resume(self._by_queue.pop(queue), now)

    def _begin_task(self, process: _RunningProcess, task: Task, now: Instant) -> None:
        process.task, task.lag = task, process.lag
        self._by_task[task] = process
        if self.meters is not None:
            self.meters.begin_task(task, now)
        self._flow.begin(task, now)
        self.request_settle(now)

    def _stop(self, process: _RunningProcess, now: Instant) -> None:
        if process.appointment is not None:
            self._agenda.cancel(process.appointment)
        if process.task is not None and self._by_task.pop(process.task, None) is not None:
            self._end_task(process.task, now)
            self._flow.cancel(process.task, now)
            self.request_settle(now)
        for queue in [queue for queue, reader in self._by_queue.items() if reader is process]:
            del self._by_queue[queue]
        for child in process.children:
            self._stop(child, now)

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
            for task in self._flow.advance(now, on_end=self._end_task):
                process = self._by_task.pop(task)
                process.task, process.lag = None, task.lag
                self._resume(process, now)
            due = self._flow.due()
        self.request_settle(now)
