"""Runs the probes of containers and acts on their results: started, ready or not, restarted when not alive.

Probes are periodic, as a kubelet's, but only as long as a result can change anything.
Kubernetes: pkg/kubelet/prober/worker.go.
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
    "containers", "a probe executes a command that is not supported; it is assumed to succeed"
)
_FILES_UNKNOWN = FidelityNote(
    "containers", "a probe reads a file that an unknown program may have written; it is assumed to succeed"
)


class ContainerActions(NamedTuple):
    """The actions of the container runtime on probe results."""

    #: Writes the pod's status.
    write_status: PodAction
    #: Starts the containers that can start now.
    start_ready_containers: PodAction
    #: Records an event of a container.
    record_event: Callable[[PodState, ContainerState, EventNote, Instant], None]
    #: Kills a container after a probe of the given kind has failed.
    kill_unhealthy: Callable[[PodState, ContainerState, ProbeKind, Instant], None]


class Prober:
    """Runs the probes of all containers for the container runtime."""

    def __init__(self, appointments: PodAppointments, actions: ContainerActions, notes: FidelityNotes) -> None:
        self._appointments = appointments
        self._actions = actions
        self._notes = notes

    def start(self, pod_state: PodState, container: ContainerState, probes: Probes, now: Instant) -> None:
        """Begin to probe a container that has just been started; the caller reports its status."""
        if ProbeKind.STARTUP in probes:
            self._start_probe(pod_state, container, probes, ProbeKind.STARTUP, now)
        else:
            self._mark_up(pod_state, container, probes, now)

    def _mark_up(self, pod_state: PodState, container: ContainerState, probes: Probes, now: Instant) -> None:
        """Mark a container as up, and begin its readiness and liveness probes."""
        container.mark_up()
        container.is_ready = ProbeKind.READINESS not in probes
        for kind in (ProbeKind.READINESS, ProbeKind.LIVENESS):
            if kind in probes and (kind is ProbeKind.READINESS or probes[kind].can_fail):
                self._start_probe(pod_state, container, probes, kind, now)

    def _start_probe(
        self, pod_state: PodState, container: ContainerState, probes: Probes, kind: ProbeKind, now: Instant
    ) -> None:
        assert container.started is not None
        at = probes[kind].first_check_at(pod_state.admitted, container.started, now)
        if at == now:
            self._check(pod_state, container, probes, kind, now)
        else:
            self._book_check(pod_state, container, probes, kind, at)

    def _book_check(
        self, pod_state: PodState, container: ContainerState, probes: Probes, kind: ProbeKind, at: Instant
    ) -> None:
        action = functools.partial(self._run_probe, container=container, probes=probes, kind=kind)
        self._appointments.book(pod_state, f"{kind.value} {container.name}", at, Rank.START, action)

    def _run_probe(
        self, pod_state: PodState, now: Instant, *, container: ContainerState, probes: Probes, kind: ProbeKind
    ) -> None:
        was_ready = container.is_ready
        if self._check(pod_state, container, probes, kind, now) is False and kind is not ProbeKind.READINESS:
            self._actions.kill_unhealthy(pod_state, container, kind, now)
        elif kind is ProbeKind.STARTUP and container.is_up:
            self._actions.start_ready_containers(pod_state, now)
        elif container.is_ready != was_ready:
            self._actions.write_status(pod_state, now)

    def _check(
        self, pod_state: PodState, container: ContainerState, probes: Probes, kind: ProbeKind, now: Instant
    ) -> bool | None:
        """Run one probe and record its result; return the result once it reaches its threshold, else None."""
        probe = probes[kind]
        verdict = probe.record_result(self._result_of(pod_state, container, probe, now))
        if not probe.is_success:
            unhealthy = EventNote("Warning", "Unhealthy", f"{kind.title.capitalize()} probe failed: ")
            self._actions.record_event(pod_state, container, unhealthy, now)
        if kind is ProbeKind.READINESS and verdict is not None:
            container.is_ready = verdict
        if kind is ProbeKind.STARTUP and verdict:
            self._mark_up(pod_state, container, probes, now)
        elif verdict is not False or kind is ProbeKind.READINESS:
            wait = probe.next_check_in(now, is_confirmed=verdict is not None)
            if wait is not None:
                self._book_check(pod_state, container, probes, kind, Instant(now + wait))
        return verdict

    def _result_of(
        self, pod_state: PodState, container: ContainerState, probe: Probe, now: Instant
    ) -> ProbeResult | None:
        """Return the result of a probe; None, with a note, if it is unknown.

        It is unknown if it depends on files that a container with an unknown program may write.
        """
        result = probe.check(now)
        if result is None:
            self._note(_UNSUPPORTED_COMMAND, pod_state, container, probe)
            return None
        writers = (
            pod_state.containers() if result.depends_on_volumes else [container] if result.depends_on_own_files else ()
        )
        if any(writer.files is not None and not writer.files.is_fully_known for writer in writers):
            self._note(_FILES_UNKNOWN, pod_state, container, probe)
            return None
        return result

    def _note(self, note: FidelityNote, pod_state: PodState, container: ContainerState, probe: Probe) -> None:
        self._notes.add(note, example=f"pod {pod_state.key}, container {container.name}: {probe.command}")
