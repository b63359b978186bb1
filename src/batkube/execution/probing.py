"""What follows from probes: a container comes up, is ready or not, and is restarted when it is not alive.

A container is looked at again and again, as by a kubelet, but only as long as that can change anything.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

from batkube.cluster.event_recorder import EventNote
from batkube.execution.appointments import Appointments, LifeAction
from batkube.execution.pod_lives import ContainerLife, PodLife
from batkube.execution.probes import Probe, ProbeKind, Probes, Sight
from batkube.kernel.agenda import Rank
from batkube.kernel.fidelity import FidelityNote, FidelityNotes
from batkube.kernel.instants import Instant

_NOT_UNDERSTOOD = FidelityNote(
    "containers", "a probe executes a command that is not understood; it is taken to succeed"
)
_FILES_UNKNOWN = FidelityNote(
    "containers", "a probe asks for a file that a program may have made; it is taken to succeed"
)


class ContainerActions(NamedTuple):
    """What is done about what probes find out, by the one who runs containers."""

    #: Writes the pod's status.
    report: LifeAction
    #: Starts what may start by now.
    go_on: LifeAction
    #: Records an event of a container.
    tell: Callable[[PodLife, ContainerLife, EventNote, Instant], None]
    #: Ends a container, of which a kind of probe has failed.
    end: Callable[[PodLife, ContainerLife, ProbeKind, Instant], None]


class Probing:
    """Looks at containers, for the one who runs them."""

    def __init__(self, appointments: Appointments, actions: ContainerActions, notes: FidelityNotes) -> None:
        self._appointments = appointments
        self._actions = actions
        self._notes = notes

    def begin(self, life: PodLife, one: ContainerLife, probes: Probes, now: Instant) -> None:
        """Look at a container that has just been started; its status is still to be reported."""
        if ProbeKind.STARTUP in probes:
            self._watch(life, one, probes, ProbeKind.STARTUP, now)
        else:
            self._come_up(life, one, probes, now)

    def _come_up(self, life: PodLife, one: ContainerLife, probes: Probes, now: Instant) -> None:
        """Find that a container is up, and look from now on whether it is ready, and stays alive."""
        one.come_up()
        one.is_ready = ProbeKind.READINESS not in probes
        for kind in (ProbeKind.READINESS, ProbeKind.LIVENESS):
            if kind in probes and (kind is ProbeKind.READINESS or probes[kind].may_fail):
                self._watch(life, one, probes, kind, now)

    def _watch(self, life: PodLife, one: ContainerLife, probes: Probes, kind: ProbeKind, now: Instant) -> None:
        assert one.started is not None
        at = probes[kind].first_look(life.accepted, one.started, now)
        if at == now:
            self._find(life, one, probes, kind, now)
        else:
            self._book(life, one, probes, kind, at)

    def _book(self, life: PodLife, one: ContainerLife, probes: Probes, kind: ProbeKind, at: Instant) -> None:
        look = functools.partial(self._look, one=one, probes=probes, kind=kind)
        self._appointments.book(life, f"{kind.value} {one.name}", at, Rank.START, look)

    def _look(self, life: PodLife, now: Instant, *, one: ContainerLife, probes: Probes, kind: ProbeKind) -> None:
        was_ready = one.is_ready
        if self._find(life, one, probes, kind, now) is False and kind is not ProbeKind.READINESS:
            self._actions.end(life, one, kind, now)
        elif kind is ProbeKind.STARTUP and one.is_up:
            self._actions.go_on(life, now)
        elif one.is_ready != was_ready:
            self._actions.report(life, now)

    def _find(self, life: PodLife, one: ContainerLife, probes: Probes, kind: ProbeKind, now: Instant) -> bool | None:
        """Look by one probe, and take note of what it finds; return what is to be believed, None for nothing new."""
        probe = probes[kind]
        belief = probe.take_note(self._sight(life, one, probe, now))
        if not probe.is_well:
            unhealthy = EventNote("Warning", "Unhealthy", f"{kind.title.capitalize()} probe failed: ")
            self._actions.tell(life, one, unhealthy, now)
        if kind is ProbeKind.READINESS and belief is not None:
            one.is_ready = belief
        if kind is ProbeKind.STARTUP and belief:
            self._come_up(life, one, probes, now)
        elif belief is not False or kind is ProbeKind.READINESS:
            wait = probe.wait(now, is_believed=belief is not None)
            if wait is not None:
                self._book(life, one, probes, kind, Instant(now + wait))
        return belief

    def _sight(self, life: PodLife, one: ContainerLife, probe: Probe, now: Instant) -> Sight | None:
        """Return what a probe sees; None, with a note, if nobody knows.

        Nobody knows of files if a container that may write them does nobody knows what.
        """
        sight = probe.look(now)
        if sight is None:
            self._note(_NOT_UNDERSTOOD, life, one, probe)
            return None
        writers = life.disks if sight.by_volumes else [one.name] if sight.by_own_files else ()
        if not all(life.disks[name].is_followed for name in writers):
            self._note(_FILES_UNKNOWN, life, one, probe)
            return None
        return sight

    def _note(self, note: FidelityNote, life: PodLife, one: ContainerLife, probe: Probe) -> None:
        self._notes.add(note, example=f"pod {life.key}, container {one.name}: {probe.question}")
