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
from batkube.execution.containers.plans import run_command
from batkube.execution.scripts.environment import ContainerFiles, Environment, expand_references
from batkube.execution.scripts.lexer import UnsupportedScript
from batkube.kernel.instants import Duration, Instant, seconds
from batkube.workloads.container_rules.rules import FOREVER, PROBES, HealthWindow

_ALWAYS_HEALTHY = HealthWindow(Duration(0), FOREVER)


class ProbeKind(enum.Enum):
    """What a probe finds out; the field of the container that describes it."""

    STARTUP, READINESS, LIVENESS = PROBES

    @property
    def title(self) -> str:
        """What it is called in events."""
        return self.value.removesuffix("Probe")


class ProbeResult(NamedTuple):
    """What a probe sees when it looks, and what that depends on."""

    is_success: bool
    depends_on_own_files: bool = False
    depends_on_volumes: bool = False


class Probe:
    """A probe of one run of a container, and what it has found out so far."""

    #: What it asks; "" where that does not matter.
    command = ""
    #: Whether it may ever see that something is not well.
    can_fail = True

    def __init__(self, kind: ProbeKind, fields: KubeObject) -> None:
        self.kind = kind
        self._delay = seconds(fields.get("initialDelaySeconds", 0))
        self._period = seconds(fields.get("periodSeconds", 10))
        #: How often in a row it must fail, or succeed, to be believed.
        self._thresholds: tuple[int, int] = fields.get("failureThreshold", 3), fields.get("successThreshold", 1)
        self.is_success = True
        self._consecutive = 0
        self._last_result: ProbeResult | None = None

    def first_check_at(self, accepted: Instant, started: Instant, now: Instant) -> Instant:
        """Return when it first looks at a container that may be looked at from now on, its initial delay aside.

        A kubelet looks for readiness as soon as that matters, and every period later. For all else it looks every
        period since it took up the pod, when there was no container yet: first a moment before the container's age is
        a period, and so a delay of one period is missed by that moment.
        """
        allowed = max(now, Instant(started + self._delay))
        if self.kind is ProbeKind.READINESS:
            return Instant(now + -((now - allowed) // self._period) * self._period)
        return Instant(accepted + ((allowed - accepted) // self._period + 1) * self._period)

    def check(self, now: Instant) -> ProbeResult | None:
        """Return what is to be seen; None if nobody knows."""
        raise NotImplementedError

    def record_result(self, sight: ProbeResult | None) -> bool | None:
        """Take note of what was seen; where nobody knows, that it is well. Return what is to be believed.

        That is nothing (None) as long as too few have said the same in a row.
        """
        is_well = sight is None or sight.is_success
        self._consecutive = self._consecutive + 1 if is_well == self.is_success else 1
        self.is_success, self._last_result = is_well, sight
        return is_well if self._consecutive >= self._thresholds[is_well] else None

    def next_check_in(self, now: Instant, *, is_believed: bool) -> Duration | None:
        """Return how long until the next look that can change anything; None if no look ever can.

        `is_believed` tells whether the same was seen often enough.
        """
        if not (self.is_success and is_believed):
            return self._period
        rest = self._success_lasts(now)
        return None if rest is None else Duration(max(1, -(-rest // self._period)) * self._period)

    def _success_lasts(self, now: Instant) -> Duration | None:
        """Return how long what is well now is known to stay so; None for ever."""
        raise NotImplementedError


class ExecProbe(Probe):
    """One that executes a command in the container."""

    def __init__(self, kind: ProbeKind, container: KubeObject, start: Environment, disk: ContainerFiles) -> None:
        fields = container[kind.value]
        super().__init__(kind, fields)
        # Only values that stand in the container itself (ExpandContainerCommandOnlyStatic).
        values = {one["name"]: one.get("value", "") for one in container.get("env") or ()}
        self._words = [expand_references(word, values) for word in fields["exec"]["command"]]
        self.command = " ".join(self._words)
        self._timeout = seconds(fields.get("timeoutSeconds", 1))
        self._start = start
        self._files = disk

    def check(self, now: Instant) -> ProbeResult | None:
        """Return how the command goes."""
        disk = self._files.private_view(now)
        try:
            outcome = run_command(self._words, self._start, disk)
        except UnsupportedScript:
            return None
        if outcome.unknown_program:
            return None
        is_in_time = outcome.length is not None and outcome.length <= self._timeout
        return ProbeResult(is_in_time and outcome.exit_code == 0, disk.has_read_own_files, disk.has_read_volumes)

    def _success_lasts(self, now: Instant) -> Duration | None:
        # Files come and go; all else, and what nobody knows, stays as it is.
        goes_by_files = self._last_result is not None and (
            self._last_result.depends_on_own_files or self._last_result.depends_on_volumes
        )
        return Duration(0) if goes_by_files else None


class RuleProbe(Probe):
    """One that finds what a rule says of the container's health."""

    def __init__(self, kind: ProbeKind, fields: KubeObject, health: HealthWindow, started: Instant) -> None:
        super().__init__(kind, fields)
        self._health = health
        self._started = started
        self.can_fail = health != _ALWAYS_HEALTHY

    def check(self, now: Instant) -> ProbeResult:
        """Return what the rule says of a run of this age."""
        return ProbeResult(self._health.is_healthy(Duration(now - self._started)))

    def _success_lasts(self, now: Instant) -> Duration | None:
        return None if self._health.until == FOREVER else Duration(self._started + self._health.until - now)


Probes = dict[ProbeKind, Probe]
"""Those of one run of a container."""


def probes_of(
    container: KubeObject, health: HealthWindow | None, start: Environment, disk: ContainerFiles, started: Instant
) -> Probes:
    """Return the probes of a run of a container, of whose health a rule may speak."""
    probes: Probes = {}
    for kind in ProbeKind:
        fields = container.get(kind.value)
        if fields and health is None and (fields.get("exec") or {}).get("command"):
            probes[kind] = ExecProbe(kind, container, start, disk)
        elif fields:
            probes[kind] = RuleProbe(kind, fields, health or _ALWAYS_HEALTHY, started)
    return probes
