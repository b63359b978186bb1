"""The loop: keep the next appointment, until all is done or there is none.

In-process policies act inside their appointment, so between two appointments everybody is idle and the clock may jump.
"""

from __future__ import annotations

from collections.abc import Callable, Sized

from batkube.kernel.agenda import Agenda
from batkube.kernel.clock import Clock
from batkube.kernel.instants import Instant

Progress = Callable[[Instant], None]

#: How many appointments pass between two reports of progress.
_STEPS_PER_REPORT = 500


def run_until(ended: Sized, total: int, agenda: Agenda, clock: Clock, progress: Progress) -> None:
    """Keep appointments in order until `total` have `ended` or none is left; tell `progress` how far time has come."""
    steps = 0
    while len(ended) < total and (appointment := agenda.next()) is not None:
        clock.advance(appointment.at)
        appointment.action(appointment.at)
        steps += 1
        if steps % _STEPS_PER_REPORT == 0:
            progress(appointment.at)
