"""Waiting for somebody outside in the middle of an action, without holding up everybody else.

A write may need the answer of a webhook. Who acts by looking at what there is, and can look again, is broken off
(`Suspended`) and told when the answer has come; then the same write finds it. Everybody else waits, and all with them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from batkube.kernel.instants import Instant

Resume = Callable[[Instant], None]
"""Begins an action anew."""


class Suspended(Exception):
    """An action is broken off: it needs an answer from outside. What it has written so far stays."""

    def __init__(self, until: Callable[[Resume], None]) -> None:
        """`until` has somebody called when the answer is there."""
        super().__init__("waits for an answer from outside")
        self.when_answered = until


class SuspensionControl:
    """Whether whoever acts now may be broken off."""

    def __init__(self) -> None:
        self.is_allowed = False

    @contextlib.contextmanager
    def allow(self, are_allowed: bool) -> Iterator[None]:
        """Let an action be broken off, or not."""
        before, self.is_allowed = self.is_allowed, are_allowed
        try:
            yield
        finally:
            self.is_allowed = before
