"""Two rounds of changes: those who changed an object early may act again when somebody changed it after them.

Kubernetes: apiserver/pkg/admission/reinvocation.go, and the reinvocation contexts of the plugins that change objects
as their configuration says (plugin/webhook/mutating and plugin/policy/mutating, reinvocationcontext.go).
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import msgspec


class ChangeRounds:
    """Whose turn it is in the rounds of one attempt, of those that one plugin asks."""

    def __init__(self) -> None:
        #: Those of the first round who wish to act again if the object changes, and has not changed since.
        self._waiting: set[Hashable] = set()
        self._again: set[Hashable] = set()
        #: The object as the plugin left it.
        self._left: bytes = b""
        #: 0, and 1 in the second round.
        self.round = 0
        #: Whether there is to be a second round.
        self.has_changed = False

    def begin(self, value: dict[str, Any]) -> None:
        """Look at the object at the beginning of a round: others may have changed it since the last one."""
        if self.round and msgspec.json.encode(value) != self._left:
            self._recall()

    def is_due(self, identity: Hashable) -> bool:
        """Return whether somebody is to act in this round."""
        return not self.round or identity in self._again

    def acted(self, identity: Hashable, *, changed: bool, again: bool) -> None:
        """Note that somebody has acted; `again` if it wishes to when the object changes."""
        if changed:
            self.changed()
        if again:
            self._waiting.add(identity)

    def changed(self) -> None:
        """Note that the object is another one now."""
        self.has_changed = True
        self._recall()

    def end(self, value: dict[str, Any]) -> None:
        """Remember the object as it is at the end of a round."""
        self._left = msgspec.json.encode(value)

    def _recall(self) -> None:
        self._again |= self._waiting
        self._waiting = set()
