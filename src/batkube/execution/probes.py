"""Probes: how a kubelet finds out that a container has started, that it is ready, and that it is alive.

A probe that executes a command goes as the command does, where that is understood (`container_plans`); what is not
understood succeeds, which is noted, and so does whatever would ask over the network: nobody listens there.
Kubernetes: pkg/kubelet/prober, worker.go.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator

from batkube.cluster.store import KubeObject
from batkube.execution.container_plans import run_command
from batkube.execution.pod_lives import first_look
from batkube.execution.scripts.running import ScriptOutcome
from batkube.execution.scripts.surroundings import Environment, Mounts
from batkube.execution.scripts.words import NotUnderstood
from batkube.kernel.instants import Duration, Instant, seconds


class ProbeKind(enum.Enum):
    """What a probe finds out; the field of the container that describes it."""

    STARTUP = "startupProbe"
    READINESS = "readinessProbe"
    LIVENESS = "livenessProbe"

    @property
    def title(self) -> str:
        """What it is called in events."""
        return self.value.removesuffix("Probe")


class CommandProbe:
    """A probe that executes a command in one run of a container, and what it has found out so far."""

    def __init__(self, kind: ProbeKind, probe: KubeObject, start: Environment, disk: Mounts) -> None:
        self.kind = kind
        self._probe = probe
        self.period = seconds(probe.get("periodSeconds", 10))
        self.words: list[str] = list(probe["exec"].get("command") or ())
        self._timeout = seconds(probe.get("timeoutSeconds", 1))
        #: How often in a row it must fail, or succeed, to be believed.
        self._wanted: tuple[int, int] = probe.get("failureThreshold", 3), probe.get("successThreshold", 1)
        self._start = start
        self._disk = disk
        self.is_well = True
        self._alike = 0

    def first_look(self, since: Duration) -> Duration:
        """Return the age at which it is first executed, if it may be from the age `since` on."""
        return first_look(self._probe, since)

    def look(self, outcome: ScriptOutcome | None) -> bool | None:
        """Take note of how the command went, None if nobody knows; return what is to be believed.

        That is nothing (None) as long as too few have said the same in a row.
        """
        is_well = outcome is None or self._is_success(outcome)
        self._alike = self._alike + 1 if is_well == self.is_well else 1
        self.is_well = is_well
        return is_well if self._alike >= self._wanted[is_well] else None

    def may_fail(self, outcome: ScriptOutcome | None) -> bool:
        """Return whether a command that went so has failed, or may do so at another time."""
        return outcome is not None and (outcome.asks_for_files or not self._is_success(outcome))

    def outcome(self, now: Instant) -> ScriptOutcome | None:
        """Return how the command goes; None if nobody knows."""
        try:
            outcome = run_command(self.words, self._start, self._disk.own(now))
        except NotUnderstood:
            return None
        return None if outcome.guess else outcome

    def _is_success(self, outcome: ScriptOutcome) -> bool:
        return outcome.length is not None and outcome.length <= self._timeout and outcome.exit_code == 0


def command_probes(container: KubeObject, start: Environment, disk: Mounts) -> Iterator[CommandProbe]:
    """Yield the probes of a container that execute a command."""
    for kind in ProbeKind:
        probe = container.get(kind.value) or {}
        if (probe.get("exec") or {}).get("command"):
            yield CommandProbe(kind, probe, start, disk)
