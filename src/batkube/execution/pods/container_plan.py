"""One run of a container: how it is meant to go, and what its end is called.

A container whose memory, by a rule, goes beyond its limit is killed then (exit code 137, OOMKilled); the limit may
change while it runs, so that is not part of its plan (`ContainerPlan.within`).
"""

from __future__ import annotations

import enum
from typing import NamedTuple

from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Duration
from batkube.kernel.quantities import MEMORY, parse_amount
from batkube.workloads.container_rules.usage_curves import UsageCurve

#: 128 and the number of the signal, as shells count.
EXIT_KILLED, EXIT_TERMINATED = 137, 143
#: What a container runtime says of a process whose end it did not see, because the machine went down (containerd).
EXIT_LOST = 255
OUT_OF_MEMORY = "OOMKilled"


class ContainerRole(enum.Enum):
    """What a container is in its pod; the field of the pod's spec that it stands in."""

    INIT = "initContainers"
    MAIN = "containers"
    #: Added to a running pod, to look at it.
    EPHEMERAL = "ephemeralContainers"


class ContainerPlan(NamedTuple):
    """How one run of a container goes; `length` is None when it never ends by itself."""

    length: Duration | None
    exit_code: int = 0
    #: Why it ended, as its status says; "" for what the exit code says.
    reason: str = ""
    #: Why this is only a guess, or "".
    guess_reason: str = ""
    #: How much memory it uses, where a rule says that.
    memory: UsageCurve | None = None
    #: Whether nothing says how long it runs, so that its length is a default.
    has_default_length: bool = False

    def limited_by(self, limits: KubeObject, since: Duration) -> ContainerPlan:
        """Return the plan of a container that is killed when its memory exceeds a limit that it has from an age on."""
        limit = limits.get(MEMORY)
        age = (
            None
            if limit is None or self.memory is None
            else self.memory.first_age_above(parse_amount(MEMORY, limit), since)
        )
        if age is None or (self.length is not None and self.length <= age):
            return self
        return self._replace(length=age, exit_code=EXIT_KILLED, reason=OUT_OF_MEMORY)
