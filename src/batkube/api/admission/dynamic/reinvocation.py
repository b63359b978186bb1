"""Two rounds of changes: those who changed an object early may act again when somebody changed it after them.

Kubernetes: apiserver/pkg/admission/reinvocation.go, and the reinvocation contexts of the plugins that change objects
as their configuration says (plugin/webhook/mutating and plugin/policy/mutating, reinvocationcontext.go).
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import msgspec


class ReinvocationContext:
    """Whose turn it is in the rounds of one attempt, of those that one plugin asks."""

    def __init__(self) -> None:
        #: Those of the first round who wish to act again if the object changes, and has not changed since.
        self._reinvocable: set[Hashable] = set()
        self._to_reinvoke: set[Hashable] = set()
        #: The object as the plugin left it.
        self._object_after_round: bytes = b""
        #: 0, and 1 in the second round.
        self.round = 0
        #: Whether there is to be a second round.
        self.object_changed = False

    def begin_round(self, value: dict[str, Any]) -> None:
        """Look at the object at the beginning of a round: others may have changed it since the last one."""
        if self.round and msgspec.json.encode(value) != self._object_after_round:
            self._schedule_reinvocations()

    def should_run(self, identity: Hashable) -> bool:
        """Return whether somebody is to act in this round."""
        return not self.round or identity in self._to_reinvoke

    def record_run(self, identity: Hashable, *, changed: bool, again: bool) -> None:
        """Note that somebody has acted; `again` if it wishes to when the object changes."""
        if changed:
            self.record_change()
        if again:
            self._reinvocable.add(identity)

    def record_change(self) -> None:
        """Note that the object is another one now."""
        self.object_changed = True
        self._schedule_reinvocations()

    def end_round(self, value: dict[str, Any]) -> None:
        """Remember the object as it is at the end of a round."""
        self._object_after_round = msgspec.json.encode(value)

    def _schedule_reinvocations(self) -> None:
        self._to_reinvoke |= self._reinvocable
        self._reinvocable = set()
