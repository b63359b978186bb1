"""Records the reasons of a policy in reasons.jsonl."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from batkube.kernel.instants import Instant
from batkube.kernel.intervals import format_intervals, mask_of, members
from batkube.kernel.journal import Journal
from batkube.policies.interface import Evict, Start, Wait
from batkube.policies.reasons import Reason

#: The events of reasons.jsonl that a policy's decisions cause.
_EVENTS = {Start: "start", Evict: "evict", Wait: "wait"}


class ReasonRecorder:
    """Writes a line for each decision that has a reason, except a wait whose reason has not changed."""

    def __init__(self, reasons: Journal, names: Sequence[str | None], machine_ids: Mapping[str, int]) -> None:
        """`names` are the nodes by the policy's machine ids, `machine_ids` those of the outputs by node."""
        self._reasons = reasons
        self._names = names
        self._machine_ids = machine_ids
        #: By job key, the last recorded reason of each job that waits.
        self._waiting: dict[str, Reason | str] = {}

    def record(self, decision: Start | Evict | Wait, now: Instant) -> None:
        """Record the reason of a decision, if it has one."""
        key, reason = decision.job.key, decision.reason
        if isinstance(decision, Wait):
            if self._waiting.get(key) == reason:
                return
            self._waiting[key] = decision.reason
        elif isinstance(decision, Start):
            self._waiting.pop(key, None)
        if reason is not None:
            self._reasons.append(now, _EVENTS[type(decision)], job=key, **self._fields(reason))

    def _fields(self, reason: Reason | str) -> dict[str, object]:
        if isinstance(reason, str):
            return {"rule": "text", "text": reason}
        fields: dict[str, object] = msgspec.to_builtins(reason)
        if isinstance(machines := fields.get("machines"), int):
            nodes = (self._names[number] for number in members(machines))
            fields["machines"] = format_intervals(mask_of(self._machine_ids[name] for name in nodes if name))
        return fields
