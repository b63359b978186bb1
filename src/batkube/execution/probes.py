"""Probes: how a kubelet finds out that a container has started, that it is ready, and that it is alive.

What a rule says of a container's health, its probes find, whatever they ask. Else a probe that executes a command goes
as the command does, where that is understood (`container_plans`); what is not understood succeeds, which is noted, and
so does whatever would ask over the network: nobody listens there.
Kubernetes: pkg/kubelet/prober, worker.go.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import NamedTuple

from batkube.cluster.store import KubeObject
from batkube.execution.container_plans import run_command
from batkube.execution.pod_lives import first_look
from batkube.execution.scripts.surroundings import Environment, Mounts
from batkube.execution.scripts.words import NotUnderstood
from batkube.kernel.instants import Duration, Instant, seconds
from batkube.workloads.rules import FOREVER, Health


class ProbeKind(enum.Enum):
    """What a probe finds out; the field of the container that describes it."""

    STARTUP = "startupProbe"
    READINESS = "readinessProbe"
    LIVENESS = "livenessProbe"

    @property
    def title(self) -> str:
        """What it is called in events."""
        return self.value.removesuffix("Probe")


class Sight(NamedTuple):
    """What a probe sees when it looks."""

    is_well: bool
    #: Whether that goes by files, which come and go.
    by_files: bool = False


class Probe:
    """A probe of one run of a container, and what it has found out so far."""

    #: What it asks; "" where that does not matter.
    question = ""

    def __init__(self, kind: ProbeKind, probe: KubeObject) -> None:
        self.kind = kind
        self._probe = probe
        self.period = seconds(probe.get("periodSeconds", 10))
        #: How often in a row it must fail, or succeed, to be believed.
        self._wanted: tuple[int, int] = probe.get("failureThreshold", 3), probe.get("successThreshold", 1)
        self.is_well = True
        self._alike = 0

    def first_look(self, since: Duration) -> Duration:
        """Return the age at which the container is first looked at, if it may be from the age `since` on."""
        return first_look(self._probe, since)

    def look(self, now: Instant) -> Sight | None:
        """Return what is to be seen; None if nobody knows."""
        raise NotImplementedError

    def wait(self, now: Instant, *, is_believed: bool) -> Duration | None:
        """Return how long after a look that tells something new comes, None if never again.

        `is_believed` tells whether the same was seen often enough.
        """
        return self.period

    def may_fail(self, sight: Sight | None) -> bool:
        """Return whether a probe that sees this has failed, or may do so at another time."""
        return sight is not None and (sight.by_files or not sight.is_well)

    def take_note(self, sight: Sight | None) -> bool | None:
        """Take note of what was seen, nothing is well; return what is to be believed.

        That is nothing (None) as long as too few have said the same in a row.
        """
        is_well = sight is None or sight.is_well
        self._alike = self._alike + 1 if is_well == self.is_well else 1
        self.is_well = is_well
        return is_well if self._alike >= self._wanted[is_well] else None


class CommandProbe(Probe):
    """One that executes a command in the container."""

    def __init__(self, kind: ProbeKind, probe: KubeObject, start: Environment, disk: Mounts) -> None:
        super().__init__(kind, probe)
        self._words: list[str] = list(probe["exec"]["command"])
        self.question = " ".join(self._words)
        self._timeout = seconds(probe.get("timeoutSeconds", 1))
        self._start = start
        self._disk = disk

    def look(self, now: Instant) -> Sight | None:
        """Return how the command goes."""
        try:
            outcome = run_command(self._words, self._start, self._disk.own(now))
        except NotUnderstood:
            return None
        if outcome.guess:
            return None
        is_in_time = outcome.length is not None and outcome.length <= self._timeout
        return Sight(is_in_time and outcome.exit_code == 0, outcome.asks_for_files)


class RuledProbe(Probe):
    """One that finds what a rule says."""

    def __init__(self, kind: ProbeKind, probe: KubeObject, health: Health, started: Instant) -> None:
        super().__init__(kind, probe)
        self._health = health
        self._started = started

    def look(self, now: Instant) -> Sight:
        """Return what the rule says of a run of this age."""
        return Sight(self._health.is_well(Duration(now - self._started)))

    def wait(self, now: Instant, *, is_believed: bool) -> Duration | None:
        """Return one period while it fails; of what is well, nothing is new before it ends."""
        if not (self.is_well and is_believed):
            return self.period
        if self._health.until == FOREVER:
            return None
        return Duration(-((now - self._started - self._health.until) // self.period) * self.period)

    def may_fail(self, sight: Sight | None) -> bool:
        """Return whether it may, as is said by the rule."""
        return True


def command_probes(container: KubeObject, start: Environment, disk: Mounts) -> Iterator[Probe]:
    """Yield the probes of a container that execute a command."""
    for kind in ProbeKind:
        probe = container.get(kind.value) or {}
        if (probe.get("exec") or {}).get("command"):
            yield CommandProbe(kind, probe, start, disk)


def ruled_probes(container: KubeObject, health: Health, started: Instant) -> Iterator[Probe]:
    """Yield the probes of a container of whose health a rule speaks."""
    for kind in ProbeKind:
        if probe := container.get(kind.value):
            yield RuledProbe(kind, probe, health, started)
