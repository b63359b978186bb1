"""Simulated startup, readiness and liveness probes.

If a rule defines the health of a container, all its probes return that. Otherwise an exec probe has the result of its
command, if that is supported (`plans.run_command`); if not, it succeeds and is noted. Network probes always succeed,
since nothing listens on simulated ports.
Kubernetes: pkg/kubelet/prober/worker.go and prober_manager.go.
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
    """The kind of a probe; the value is its field in the container's spec."""

    STARTUP, READINESS, LIVENESS = PROBES

    @property
    def title(self) -> str:
        """The name in events."""
        return self.value.removesuffix("Probe")


class ProbeResult(NamedTuple):
    """The result of one check, and the files on which it depends."""

    is_success: bool
    depends_on_own_files: bool = False
    depends_on_volumes: bool = False


class Probe:
    """A probe of one run of a container, with its results so far."""

    #: The command of an exec probe, or "".
    command = ""
    #: Whether any check can fail.
    can_fail = True

    def __init__(self, kind: ProbeKind, fields: KubeObject) -> None:
        self.kind = kind
        self._delay = seconds(fields.get("initialDelaySeconds", 0))
        self._period = seconds(fields.get("periodSeconds", 10))
        #: The number of consecutive failures, or successes, that confirm a result.
        self._thresholds: tuple[int, int] = fields.get("failureThreshold", 3), fields.get("successThreshold", 1)
        self.is_success = True
        self._consecutive = 0
        self._last_result: ProbeResult | None = None

    def first_check_at(self, accepted: Instant, started: Instant, now: Instant) -> Instant:
        """Return the instant of the first check of a container that can be probed from now on.

        A kubelet checks readiness as soon as it matters, and then every period. The periods of other probes begin with
        the admission of the pod, before the container was started. So a check comes slightly before the container's
        age is a multiple of the period, and an initial delay of one period just misses it.
        """
        allowed = max(now, Instant(started + self._delay))
        if self.kind is ProbeKind.READINESS:
            return Instant(now + -((now - allowed) // self._period) * self._period)
        return Instant(accepted + ((allowed - accepted) // self._period + 1) * self._period)

    def check(self, now: Instant) -> ProbeResult | None:
        """Return the result of a check now; None if it is unknown."""
        raise NotImplementedError

    def record_result(self, result: ProbeResult | None) -> bool | None:
        """Record a result, where unknown counts as success; return it once it reaches its threshold, else None."""
        is_success = result is None or result.is_success
        self._consecutive = self._consecutive + 1 if is_success == self.is_success else 1
        self.is_success, self._last_result = is_success, result
        return is_success if self._consecutive >= self._thresholds[is_success] else None

    def next_check_in(self, now: Instant, *, is_confirmed: bool) -> Duration | None:
        """Return how long until the next check that can change anything; None if none can.

        `is_confirmed` says whether the latest result has reached its threshold.
        """
        if not (self.is_success and is_confirmed):
            return self._period
        rest = self._success_lasts(now)
        return None if rest is None else Duration(max(1, -(-rest // self._period)) * self._period)

    def _success_lasts(self, now: Instant) -> Duration | None:
        """Return for how long checks are known to succeed; None forever."""
        raise NotImplementedError


class ExecProbe(Probe):
    """A probe that executes a command in the container."""

    def __init__(self, kind: ProbeKind, container: KubeObject, start: Environment, disk: ContainerFiles) -> None:
        fields = container[kind.value]
        super().__init__(kind, fields)
        # Kubernetes: pkg/kubelet/container/helpers.go, ExpandContainerCommandOnlyStatic.
        values = {variable["name"]: variable.get("value", "") for variable in container.get("env") or ()}
        self._words = [expand_references(word, values) for word in fields["exec"]["command"]]
        self.command = " ".join(self._words)
        self._timeout = seconds(fields.get("timeoutSeconds", 1))
        self._start = start
        self._files = disk

    def check(self, now: Instant) -> ProbeResult | None:
        """Return the result of the command."""
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
        # Only results that depend on files can change.
        depends_on_files = self._last_result is not None and (
            self._last_result.depends_on_own_files or self._last_result.depends_on_volumes
        )
        return Duration(0) if depends_on_files else None


class RuleProbe(Probe):
    """A probe that returns the container's health as a rule defines it."""

    def __init__(self, kind: ProbeKind, fields: KubeObject, health: HealthWindow, started: Instant) -> None:
        super().__init__(kind, fields)
        self._health = health
        self._started = started
        self.can_fail = health != _ALWAYS_HEALTHY

    def check(self, now: Instant) -> ProbeResult:
        """Return the health that the rule defines for a run of this age."""
        return ProbeResult(self._health.is_healthy(Duration(now - self._started)))

    def _success_lasts(self, now: Instant) -> Duration | None:
        return None if self._health.until == FOREVER else Duration(self._started + self._health.until - now)


Probes = dict[ProbeKind, Probe]
"""The probes of one run of a container."""


def probes_of(
    container: KubeObject, health: HealthWindow | None, start: Environment, disk: ContainerFiles, started: Instant
) -> Probes:
    """Return the probes of a run of a container; `health` is set if a rule defines it."""
    probes: Probes = {}
    for kind in ProbeKind:
        fields = container.get(kind.value)
        if fields and health is None and (fields.get("exec") or {}).get("command"):
            probes[kind] = ExecProbe(kind, container, start, disk)
        elif fields:
            probes[kind] = RuleProbe(kind, fields, health or _ALWAYS_HEALTHY, started)
    return probes
