"""The plan of one run of a container: how long it runs, and how it ends.

A container whose memory usage, defined by a rule, exceeds its limit is OOM-killed (exit code 137). The limit can be
resized during the run, so it is not part of the plan; `ContainerPlan.limited_by` applies it.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Duration
from batkube.kernel.quantities import MEMORY, parse_amount
from batkube.workloads.container_rules.usage_curves import UsageCurve

#: 128 plus the number of the signal.
EXIT_KILLED, EXIT_TERMINATED = 137, 143
#: containerd's exit code of a process whose end it did not observe, because the machine went down.
EXIT_LOST = 255
OUT_OF_MEMORY = "OOMKilled"


class ContainerRole(enum.Enum):
    """The role of a container in its pod; the value is the field of the pod's spec that contains it."""

    INIT = "initContainers"
    MAIN = "containers"
    #: Added to a running pod for debugging.
    EPHEMERAL = "ephemeralContainers"


class ContainerPlan(NamedTuple):
    """One run of a container; `length` is None if it never ends by itself."""

    length: Duration | None
    exit_code: int = 0
    #: The reason of its termination in the status; "" for the one that the exit code implies.
    reason: str = ""
    #: Why the plan is a guess, or "".
    guess_reason: str = ""
    #: Its memory usage, if a rule defines it.
    memory: UsageCurve | None = None
    #: Whether the length is a default, since neither spec nor rules determine it.
    has_default_length: bool = False

    def limited_by(self, limits: KubeObject, since: Duration) -> ContainerPlan:
        """Return the plan with an OOM kill if its memory exceeds the limit, which applies from the age `since` on."""
        limit = limits.get(MEMORY)
        age = (
            None
            if limit is None or self.memory is None
            else self.memory.first_age_above(parse_amount(MEMORY, limit), since)
        )
        if age is None or (self.length is not None and self.length <= age):
            return self
        return self._replace(length=age, exit_code=EXIT_KILLED, reason=OUT_OF_MEMORY)
