"""Probes: how a kubelet finds out that a container has started, that it is ready, and that it is alive.

What a rule says of a container's health, its probes find, whatever they ask. Else a probe that executes a command goes
as the command does, where that is understood (`container_plans`); what is not understood succeeds, which is noted, and
so does whatever would ask over the network: nobody listens there.
Kubernetes: pkg/kubelet/prober, worker.go and prober_manager.go.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

from batkube.cluster.store import KubeObject
from batkube.execution.container_plans import run_command
from batkube.execution.scripts.surroundings import Environment, Mounts, expanded
from batkube.execution.scripts.words import NotUnderstood
from batkube.kernel.instants import Duration, Instant, seconds
from batkube.workloads.rules import FOREVER, PROBES, Health

_ALWAYS_WELL = Health(Duration(0), FOREVER)


class ProbeKind(enum.Enum):
    """What a probe finds out; the field of the container that describes it."""

    STARTUP, READINESS, LIVENESS = PROBES

    @property
    def title(self) -> str:
        """What it is called in events."""
        return self.value.removesuffix("Probe")


class Sight(NamedTuple):
    """What a probe sees when it looks, and what that depends on."""

    is_well: bool
    by_own_files: bool = False
    by_volumes: bool = False


class Probe:
    """A probe of one run of a container, and what it has found out so far."""

    #: What it asks; "" where that does not matter.
    question = ""
    #: Whether it may ever see that something is not well.
    may_fail = True

    def __init__(self, kind: ProbeKind, fields: KubeObject) -> None:
        self.kind = kind
        self._delay = seconds(fields.get("initialDelaySeconds", 0))
        self._period = seconds(fields.get("periodSeconds", 10))
        #: How often in a row it must fail, or succeed, to be believed.
        self._wanted: tuple[int, int] = fields.get("failureThreshold", 3), fields.get("successThreshold", 1)
        self.is_well = True
        self._alike = 0
        self._sight: Sight | None = None

    def first_look(self, accepted: Instant, started: Instant, now: Instant) -> Instant:
        """Return when it first looks at a container that may be looked at from now on, its initial delay aside.

        A kubelet looks for readiness as soon as that matters, and every period later. For all else it looks every
        period since it took up the pod, when there was no container yet: first a moment before the container's age is
        a period, and so a delay of one period is missed by that moment.
        """
        allowed = max(now, Instant(started + self._delay))
        if self.kind is ProbeKind.READINESS:
            return Instant(now + -((now - allowed) // self._period) * self._period)
        return Instant(accepted + ((allowed - accepted) // self._period + 1) * self._period)

    def look(self, now: Instant) -> Sight | None:
        """Return what is to be seen; None if nobody knows."""
        raise NotImplementedError

    def take_note(self, sight: Sight | None) -> bool | None:
        """Take note of what was seen; where nobody knows, that it is well. Return what is to be believed.

        That is nothing (None) as long as too few have said the same in a row.
        """
        is_well = sight is None or sight.is_well
        self._alike = self._alike + 1 if is_well == self.is_well else 1
        self.is_well, self._sight = is_well, sight
        return is_well if self._alike >= self._wanted[is_well] else None

    def wait(self, now: Instant, *, is_believed: bool) -> Duration | None:
        """Return how long until the next look that can change anything; None if no look ever can.

        `is_believed` tells whether the same was seen often enough.
        """
        if not (self.is_well and is_believed):
            return self._period
        rest = self._well_for(now)
        return None if rest is None else Duration(max(1, -(-rest // self._period)) * self._period)

    def _well_for(self, now: Instant) -> Duration | None:
        """Return how long what is well now is known to stay so; None for ever."""
        raise NotImplementedError


class CommandProbe(Probe):
    """One that executes a command in the container."""

    def __init__(self, kind: ProbeKind, container: KubeObject, start: Environment, disk: Mounts) -> None:
        fields = container[kind.value]
        super().__init__(kind, fields)
        # Only values that stand in the container itself (ExpandContainerCommandOnlyStatic).
        values = {one["name"]: one.get("value", "") for one in container.get("env") or ()}
        self._words = [expanded(word, values) for word in fields["exec"]["command"]]
        self.question = " ".join(self._words)
        self._timeout = seconds(fields.get("timeoutSeconds", 1))
        self._start = start
        self._disk = disk

    def look(self, now: Instant) -> Sight | None:
        """Return how the command goes."""
        disk = self._disk.own(now)
        try:
            outcome = run_command(self._words, self._start, disk)
        except NotUnderstood:
            return None
        if outcome.guess:
            return None
        is_in_time = outcome.length is not None and outcome.length <= self._timeout
        return Sight(is_in_time and outcome.exit_code == 0, disk.was_asked_for_own, disk.was_asked_for_volumes)

    def _well_for(self, now: Instant) -> Duration | None:
        # Files come and go; all else, and what nobody knows, stays as it is.
        goes_by_files = self._sight is not None and (self._sight.by_own_files or self._sight.by_volumes)
        return Duration(0) if goes_by_files else None


class RuledProbe(Probe):
    """One that finds what a rule says of the container's health."""

    def __init__(self, kind: ProbeKind, fields: KubeObject, health: Health, started: Instant) -> None:
        super().__init__(kind, fields)
        self._health = health
        self._started = started
        self.may_fail = health != _ALWAYS_WELL

    def look(self, now: Instant) -> Sight:
        """Return what the rule says of a run of this age."""
        return Sight(self._health.is_well(Duration(now - self._started)))

    def _well_for(self, now: Instant) -> Duration | None:
        return None if self._health.until == FOREVER else Duration(self._started + self._health.until - now)


Probes = dict[ProbeKind, Probe]
"""Those of one run of a container."""


def probes_of(
    container: KubeObject, health: Health | None, start: Environment, disk: Mounts, started: Instant
) -> Probes:
    """Return the probes of a run of a container, of whose health a rule may speak."""
    probes: Probes = {}
    for kind in ProbeKind:
        fields = container.get(kind.value)
        if fields and health is None and (fields.get("exec") or {}).get("command"):
            probes[kind] = CommandProbe(kind, container, start, disk)
        elif fields:
            probes[kind] = RuledProbe(kind, fields, health or _ALWAYS_WELL, started)
    return probes
