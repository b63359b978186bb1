"""What follows from probes: a container comes up, is ready or not, and is restarted when it is not alive.

A container is looked at again and again, as by a kubelet, but only as long as that can change anything.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

from batkube.cluster.event_recorder import EventNote
from batkube.execution.containers.probes import Probe, ProbeKind, ProbeResult, Probes
from batkube.execution.pods.appointments import PodAction, PodAppointments
from batkube.execution.pods.state import ContainerState, PodState
from batkube.kernel.agenda import Rank
from batkube.kernel.fidelity import FidelityNote, FidelityNotes
from batkube.kernel.instants import Instant

_UNSUPPORTED_COMMAND = FidelityNote(
    "containers", "a probe executes a command that is not understood; it is taken to succeed"
)
_FILES_UNKNOWN = FidelityNote(
    "containers", "a probe asks for a file that a program may have made; it is taken to succeed"
)


class ContainerActions(NamedTuple):
    """What is done about what probes find out, by the one who runs containers."""

    #: Writes the pod's status.
    write_status: PodAction
    #: Starts what may start by now.
    start_ready_containers: PodAction
    #: Records an event of a container.
    record_event: Callable[[PodState, ContainerState, EventNote, Instant], None]
    #: Ends a container, of which a kind of probe has failed.
    kill_unhealthy: Callable[[PodState, ContainerState, ProbeKind, Instant], None]


class Prober:
    """Looks at containers, for the one who runs them."""

    def __init__(self, appointments: PodAppointments, actions: ContainerActions, notes: FidelityNotes) -> None:
        self._appointments = appointments
        self._actions = actions
        self._notes = notes

    def start(self, life: PodState, one: ContainerState, probes: Probes, now: Instant) -> None:
        """Look at a container that has just been started; its status is still to be reported."""
        if ProbeKind.STARTUP in probes:
            self._start_probe(life, one, probes, ProbeKind.STARTUP, now)
        else:
            self._mark_up(life, one, probes, now)

    def _mark_up(self, life: PodState, one: ContainerState, probes: Probes, now: Instant) -> None:
        """Find that a container is up, and look from now on whether it is ready, and stays alive."""
        one.mark_up()
        one.is_ready = ProbeKind.READINESS not in probes
        for kind in (ProbeKind.READINESS, ProbeKind.LIVENESS):
            if kind in probes and (kind is ProbeKind.READINESS or probes[kind].can_fail):
                self._start_probe(life, one, probes, kind, now)

    def _start_probe(self, life: PodState, one: ContainerState, probes: Probes, kind: ProbeKind, now: Instant) -> None:
        assert one.started is not None
        at = probes[kind].first_check_at(life.admitted, one.started, now)
        if at == now:
            self._check(life, one, probes, kind, now)
        else:
            self._book_check(life, one, probes, kind, at)

    def _book_check(self, life: PodState, one: ContainerState, probes: Probes, kind: ProbeKind, at: Instant) -> None:
        look = functools.partial(self._run_probe, one=one, probes=probes, kind=kind)
        self._appointments.book(life, f"{kind.value} {one.name}", at, Rank.START, look)

    def _run_probe(self, life: PodState, now: Instant, *, one: ContainerState, probes: Probes, kind: ProbeKind) -> None:
        was_ready = one.is_ready
        if self._check(life, one, probes, kind, now) is False and kind is not ProbeKind.READINESS:
            self._actions.kill_unhealthy(life, one, kind, now)
        elif kind is ProbeKind.STARTUP and one.is_up:
            self._actions.start_ready_containers(life, now)
        elif one.is_ready != was_ready:
            self._actions.write_status(life, now)

    def _check(self, life: PodState, one: ContainerState, probes: Probes, kind: ProbeKind, now: Instant) -> bool | None:
        """Look by one probe, and take note of what it finds; return what is to be believed, None for nothing new."""
        probe = probes[kind]
        belief = probe.record_result(self._result_of(life, one, probe, now))
        if not probe.is_success:
            unhealthy = EventNote("Warning", "Unhealthy", f"{kind.title.capitalize()} probe failed: ")
            self._actions.record_event(life, one, unhealthy, now)
        if kind is ProbeKind.READINESS and belief is not None:
            one.is_ready = belief
        if kind is ProbeKind.STARTUP and belief:
            self._mark_up(life, one, probes, now)
        elif belief is not False or kind is ProbeKind.READINESS:
            wait = probe.next_check_in(now, is_believed=belief is not None)
            if wait is not None:
                self._book_check(life, one, probes, kind, Instant(now + wait))
        return belief

    def _result_of(self, life: PodState, one: ContainerState, probe: Probe, now: Instant) -> ProbeResult | None:
        """Return what a probe sees; None, with a note, if nobody knows.

        Nobody knows of files if a container that may write them does nobody knows what.
        """
        sight = probe.check(now)
        if sight is None:
            self._note(_UNSUPPORTED_COMMAND, life, one, probe)
            return None
        writers = (
            life.files_by_container if sight.depends_on_volumes else [one.name] if sight.depends_on_own_files else ()
        )
        if not all(life.files_by_container[name].is_fully_known for name in writers):
            self._note(_FILES_UNKNOWN, life, one, probe)
            return None
        return sight

    def _note(self, note: FidelityNote, life: PodState, one: ContainerState, probe: Probe) -> None:
        self._notes.add(note, example=f"pod {life.key}, container {one.name}: {probe.command}")
