"""Waiting for somebody outside in the middle of an action, without holding up everybody else.

A write may need the answer of a webhook. Who acts by looking at what there is, and can look again, is broken off
(`Waits`) and told when the answer has come; then the same write finds it. Everybody else waits, and all with them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from batkube.kernel.instants import Instant

Begin = Callable[[Instant], None]
"""Begins an action anew."""


class Waits(Exception):
    """An action is broken off: it needs an answer from outside. What it has written so far stays."""

    def __init__(self, until: Callable[[Begin], None]) -> None:
        """`until` has somebody called when the answer is there."""
        super().__init__("waits for an answer from outside")
        self.until = until


class Breaks:
    """Whether whoever acts now may be broken off."""

    def __init__(self) -> None:
        self.are_allowed = False

    @contextlib.contextmanager
    def allowed(self, are_allowed: bool) -> Iterator[None]:
        """Let an action be broken off, or not."""
        before, self.are_allowed = self.are_allowed, are_allowed
        try:
            yield
        finally:
            self.are_allowed = before
