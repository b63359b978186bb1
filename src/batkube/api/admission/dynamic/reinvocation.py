"""Reinvocation: mutating webhooks and policies run again if a later one has changed the object.

Kubernetes: apiserver/pkg/admission/reinvocation.go, and reinvocationcontext.go in
apiserver/pkg/admission/plugin/webhook/mutating and apiserver/pkg/admission/plugin/policy/mutating.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import msgspec


class ReinvocationContext:
    """Tracks which webhooks (or policies) of one request have to run in the current round."""

    def __init__(self) -> None:
        #: Those that have run, have `reinvocationPolicy: IfNeeded`, and after which the object has not changed yet.
        self._reinvocable: set[Hashable] = set()
        self._to_reinvoke: set[Hashable] = set()
        #: The object, encoded, at the end of the last round.
        self._object_after_round: bytes = b""
        #: 0 or 1.
        self.round = 0
        #: Whether a second round is needed.
        self.object_changed = False

    def begin_round(self, value: dict[str, Any]) -> None:
        """Start a round; schedule reinvocations if another plugin has changed the object since the last round."""
        if self.round and msgspec.json.encode(value) != self._object_after_round:
            self._schedule_reinvocations()

    def should_run(self, identity: Hashable) -> bool:
        """Return whether a webhook or policy has to run in this round."""
        return not self.round or identity in self._to_reinvoke

    def record_run(self, identity: Hashable, *, changed: bool, again: bool) -> None:
        """Record that a webhook or policy has run; `again` if it is to be reinvoked when the object changes."""
        if changed:
            self.record_change()
        if again:
            self._reinvocable.add(identity)

    def record_change(self) -> None:
        """Record that the object has changed."""
        self.object_changed = True
        self._schedule_reinvocations()

    def end_round(self, value: dict[str, Any]) -> None:
        """End a round and remember the object."""
        self._object_after_round = msgspec.json.encode(value)

    def _schedule_reinvocations(self) -> None:
        self._to_reinvoke |= self._reinvocable
        self._reinvocable = set()
