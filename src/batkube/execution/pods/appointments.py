"""What is to happen to pods later, each thing under a name, so that it can be dropped when a pod takes another turn."""

from __future__ import annotations

from collections.abc import Callable

from batkube.execution.pods.state import PodState
from batkube.kernel.agenda import Agenda, Rank
from batkube.kernel.instants import Instant

PodAction = Callable[[PodState, Instant], None]


class PodAppointments:
    """The agenda, as those see it who look after pods."""

    def __init__(self, agenda: Agenda) -> None:
        self._agenda = agenda

    def book(self, pod_state: PodState, name: str, at: Instant, rank: Rank, action: PodAction) -> None:
        """Arrange for something to happen to a pod, unless it ends before; what has that name already is dropped."""

        def act(now: Instant) -> None:
            del pod_state.appointments[name]
            action(pod_state, now)

        self.cancel(pod_state, name)
        pod_state.appointments[name] = self._agenda.book(at, rank, act)

    def cancel(self, pod_state: PodState, *names: str) -> None:
        """Drop what was booked for a pod under these names."""
        for name in names:
            number = pod_state.appointments.pop(name, None)
            if number is not None:
                self._agenda.cancel(number)

    def cancel_all(self, pod_state: PodState) -> None:
        """Drop whatever was booked for a pod."""
        self.cancel(pod_state, *list(pod_state.appointments))
