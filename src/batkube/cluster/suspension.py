"""Suspends an action that needs a webhook's answer, without blocking the other components.

A reconcile loop can be interrupted in the middle of a write and run again: the write raises `Suspended`, and the loop
is resumed when the answer has come. The repeated write then finds the answer. An action that cannot be repeated blocks
until the answer comes, and the simulation with it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from batkube.kernel.instants import Instant

Resume = Callable[[Instant], None]
"""Runs a suspended action again, from its beginning."""


class Suspended(Exception):
    """The current action is interrupted: it needs a webhook's answer. Its earlier writes are not undone."""

    def __init__(self, when_answered: Callable[[Resume], None]) -> None:
        """`when_answered` registers a callback for the arrival of the answer."""
        super().__init__("waits for the answer of a webhook")
        self.when_answered = when_answered


class SuspensionControl:
    """Whether the current action may be suspended."""

    def __init__(self) -> None:
        self.is_allowed = False

    @contextlib.contextmanager
    def allow(self, is_allowed: bool) -> Iterator[None]:
        """Allow or forbid suspension within the context."""
        before, self.is_allowed = self.is_allowed, is_allowed
        try:
            yield
        finally:
            self.is_allowed = before
