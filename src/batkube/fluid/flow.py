"""Tasks that begin and end over time.

Instants are integer nanoseconds. Work is a float from 0 to 1, and rates are per second. The end of a task is rounded to
the nearest nanosecond, at which the task is complete; `Task.lag` is the rounding error.

A change (a task begins, its latency is over, it ends, or a resource gets another capacity) affects the tasks that share
resources, directly or through other tasks. Their rates are recomputed once, at the end of the instant, so the order
of changes within an instant does not matter. No other task or resource is visited.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from batkube.fluid.sharing import compute_rates
from batkube.fluid.tasks import FluidResource, Task
from batkube.kernel.instants import Instant

_SECOND = 1e9


class Flow:
    """The running tasks, and when the next of them ends."""

    def __init__(self) -> None:
        #: A heap: date, number of the entry (so that tasks are never compared), task, and its generation at the time.
        self._calendar: list[tuple[Instant, int, Task, int]] = []
        self._last_entry = 0
        #: The resources with changes since the last computation of rates, in order.
        self._changed: dict[FluidResource, None] = {}

    # Changes

    def begin(self, task: Task, now: Instant) -> None:
        """Begin a new task, with its latency if it has any."""
        task.since = now
        if task.latency > 0:
            self._schedule(task, Instant(now + task.latency))
        else:
            self._start_flowing(task, now)

    def cancel(self, task: Task, now: Instant) -> None:
        """Cancel a task that has not ended."""
        self._update_remaining(task, now)
        self._remove(task)

    def set_capacity(self, resource: FluidResource, capacity: float) -> None:
        """Change the capacity of a resource, from the current instant on."""
        resource.capacity = capacity
        self._changed[resource] = None

    # Time

    def update_rates(self, now: Instant) -> None:
        """Compute the rates that the changes of this instant affect."""
        while self._changed:
            tasks = self._connected_tasks(next(iter(self._changed)))
            for task, rate in zip(tasks, compute_rates(tasks) if tasks else (), strict=True):
                if rate == task.rate:
                    continue
                self._update_remaining(task, now)
                task.rate = rate
                self._schedule_end(task)

    def due(self) -> Instant | None:
        """Return when the next task or latency ends, or None if none will. Rates must be up to date."""
        while self._calendar:
            instant, _, task, generation = self._calendar[0]
            if task.generation == generation:
                return instant
            heapq.heappop(self._calendar)
        return None

    def advance(self, now: Instant, on_end: Callable[[Task, Instant], None] | None = None) -> list[Task]:
        """End the tasks that are due by `now` and return them; start those whose latency is over.

        `on_end` is called before a task releases its resources. Call `update_rates` to recompute the rates of the
        others.
        """
        ended: list[Task] = []
        while (instant := self.due()) is not None and instant <= now:
            task = heapq.heappop(self._calendar)[2]
            if not task.is_flowing:
                self._start_flowing(task, instant)
                continue
            if on_end is not None:
                on_end(task, instant)
            if task.rate > 0:
                task.lag += task.remaining / task.rate * _SECOND - (instant - task.since)
            task.remaining, task.since = 0.0, instant
            self._remove(task)
            ended.append(task)
        return ended

    def _start_flowing(self, task: Task, now: Instant) -> None:
        task.is_flowing, task.since = True, now
        if not task.uses:
            # A task without work ends at once, as in SimGrid (L07Action: set_remains(0.0)).
            self._schedule(task, now)
            return
        for resource, _ in task.uses:
            resource.tasks[task] = None
            self._changed[resource] = None

    def _remove(self, task: Task) -> None:
        for resource, _ in task.uses:
            if resource.tasks.pop(task, self) is None:
                self._changed[resource] = None
        task.is_flowing, task.rate = False, 0.0
        task.generation += 1

    def _update_remaining(self, task: Task, now: Instant) -> None:
        """Update the remaining work of a task, before its rate changes."""
        if now > task.since:
            task.remaining = max(0.0, task.remaining - task.rate * (now - task.since - task.lag) / _SECOND)
            task.since, task.lag = now, 0.0

    def _schedule_end(self, task: Task) -> None:
        if task.rate > 0:
            self._schedule(task, Instant(task.since + round(task.lag + task.remaining / task.rate * _SECOND)))
        else:
            task.generation += 1

    def _schedule(self, task: Task, instant: Instant) -> None:
        task.generation += 1
        self._last_entry += 1
        heapq.heappush(self._calendar, (instant, self._last_entry, task, task.generation))

    def _connected_tasks(self, start: FluidResource) -> list[Task]:
        """Return all tasks that share resources with those of `start`, directly or through other tasks."""
        tasks: dict[Task, None] = {}
        pending: list[FluidResource] = [start]
        visited = {start}
        self._changed.pop(start, None)
        while pending:
            for task in pending.pop().tasks:
                if task in tasks:
                    continue
                tasks[task] = None
                for resource, _ in task.uses:
                    if resource not in visited:
                        visited.add(resource)
                        self._changed.pop(resource, None)
                        pending.append(resource)
        return list(tasks)
