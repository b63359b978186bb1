"""Tasks that come and go in time.

Time is integer nanoseconds outside. Inside, work is a float from 0 to 1 and rates are per second; when a task will be
done is rounded to the nearest nanosecond, and at that instant it is done (its `lag` is what was rounded off). A change
(a task comes, goes or has paid its latency, a resource gets another capacity) is felt by those tasks that share a
resource with it, directly or by others: the rates of these are computed anew at the end of the instant, once, so that
the order of what happens in one instant does not matter. Nothing else is touched, idle resources in particular.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from batkube.fluid.sharing import compute_rates
from batkube.fluid.tasks import FluidResource, Task
from batkube.kernel.instants import Instant

_SECOND = 1e9


class Flow:
    """The tasks that go on, and when the next of them is through."""

    def __init__(self) -> None:
        #: When something is due for whom; the counter keeps tasks out of comparisons.
        self._calendar: list[tuple[Instant, int, Task, int]] = []
        self._last_entry = 0
        #: What has changed since rates were computed last, in order.
        self._changed: dict[FluidResource, None] = {}

    # What changes

    def begin(self, task: Task, now: Instant) -> None:
        """Let a new task begin: with its latency, if it has any."""
        task.since = now
        if task.latency > 0:
            self._schedule(task, Instant(now + task.latency))
        else:
            self._start_flowing(task, now)

    def cancel(self, task: Task, now: Instant) -> None:
        """Take away a task that is not through."""
        self._update_remaining(task, now)
        self._remove(task)

    def set_capacity(self, resource: FluidResource, capacity: float, now: Instant) -> None:
        """Give a resource another capacity; whoever uses it goes on with it."""
        resource.capacity = capacity
        self._changed[resource] = None

    def mark_changed(self, resource: FluidResource) -> None:
        """Have the rates around a resource computed anew: a task's bound has changed."""
        self._changed[resource] = None

    # What follows

    def update_rates(self, now: Instant) -> list[Task]:
        """Compute the rates that changes of this instant call for; return the tasks whose rate is another now."""
        changed: list[Task] = []
        while self._changed:
            seed = next(iter(self._changed))
            tasks = self._connected_tasks(seed)
            for task, rate in zip(tasks, compute_rates(tasks) if tasks else (), strict=True):
                if rate == task.rate:
                    continue
                self._update_remaining(task, now)
                task.rate = rate
                changed.append(task)
                self._schedule_end(task)
        return changed

    def due(self) -> Instant | None:
        """Return when something happens next, if rates are settled; None when nothing will."""
        while self._calendar:
            instant, _, task, turn = self._calendar[0]
            if task.generation == turn:
                return instant
            heapq.heappop(self._calendar)
        return None

    def advance(self, now: Instant, on_through: Callable[[Task, Instant], None] | None = None) -> list[Task]:
        """Let happen what is due until `now`; return the tasks that are through.

        `on_through` is told of each while it still holds what it took. What follows for others is computed by `settle`.
        """
        through: list[Task] = []
        while (instant := self.due()) is not None and instant <= now:
            task = heapq.heappop(self._calendar)[2]
            if not task.is_flowing:
                self._start_flowing(task, instant)
                continue
            if on_through is not None:
                on_through(task, instant)
            if task.rate > 0:
                task.lag += task.remaining / task.rate * _SECOND - (instant - task.since)
            task.remaining, task.since = 0.0, instant
            self._remove(task)
            through.append(task)
        return through

    # Inside

    def _start_flowing(self, task: Task, now: Instant) -> None:
        task.is_flowing, task.since = True, now
        if not task.uses:
            # Nothing to do anywhere: done at once, as an empty task of SimGrid's is.
            self._schedule(task, now)
            return
        for resource, _ in task.uses:
            resource.tasks[task] = None
            self._changed[resource] = None

    def _remove(self, task: Task) -> None:
        for resource, _ in task.uses:
            if resource.tasks.pop(task, self) is None:
                self._changed[resource] = None
        task.is_flowing, task.rate, task.due = False, 0.0, None
        task.generation += 1

    def _update_remaining(self, task: Task, now: Instant) -> None:
        """Note what is left of a task, before it goes on at another rate."""
        if now > task.since:
            task.remaining = max(0.0, task.remaining - task.rate * (now - task.since - task.lag) / _SECOND)
            task.since, task.lag = now, 0.0

    def _schedule_end(self, task: Task) -> None:
        if task.rate > 0:
            self._schedule(task, Instant(task.since + round(task.lag + task.remaining / task.rate * _SECOND)))
        else:
            task.due = None
            task.generation += 1

    def _schedule(self, task: Task, instant: Instant) -> None:
        task.generation += 1
        task.due = instant
        self._last_entry += 1
        heapq.heappush(self._calendar, (instant, self._last_entry, task, task.generation))

    def _connected_tasks(self, seed: FluidResource) -> list[Task]:
        """Return all tasks that share resources with those of `seed`, directly or by others."""
        tasks: dict[Task, None] = {}
        waiting: list[FluidResource] = [seed]
        seen = {seed}
        self._changed.pop(seed, None)
        while waiting:
            for task in waiting.pop().tasks:
                if task in tasks:
                    continue
                tasks[task] = None
                for resource, _ in task.uses:
                    if resource not in seen:
                        seen.add(resource)
                        self._changed.pop(resource, None)
                        waiting.append(resource)
        return list(tasks)
