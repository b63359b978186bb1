"""Named appointments of pods, which can be replaced and cancelled by name."""

from __future__ import annotations

from collections.abc import Callable

from batkube.execution.pods.state import PodState
from batkube.kernel.agenda import Agenda, Rank
from batkube.kernel.instants import Instant

PodAction = Callable[[PodState, Instant], None]


class PodAppointments:
    """Books appointments of pods on the agenda."""

    def __init__(self, agenda: Agenda) -> None:
        self._agenda = agenda

    def book(self, pod_state: PodState, name: str, at: Instant, rank: Rank, action: PodAction) -> None:
        """Book an action on a pod, replacing an appointment of the same name."""

        def act(now: Instant) -> None:
            del pod_state.appointments[name]
            action(pod_state, now)

        self.cancel(pod_state, name)
        pod_state.appointments[name] = self._agenda.book(at, rank, act)

    def cancel(self, pod_state: PodState, *names: str) -> None:
        """Cancel the pod's appointments with these names."""
        for name in names:
            number = pod_state.appointments.pop(name, None)
            if number is not None:
                self._agenda.cancel(number)

    def cancel_all(self, pod_state: PodState) -> None:
        """Cancel all appointments of a pod."""
        self.cancel(pod_state, *list(pod_state.appointments))
