"""Where jobs and external events come from: one actor for each file.

Imitated: Batsim 4.2.1, src/job_submitter.cpp and src/event_submitter.cpp. What a file has for one date is told at once;
a goodbye follows the last.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import TypeVar

from batkube.batsim.protocol.messages import Notify
from batkube.batsim.server.batsim_server import BatsimServer, ServerHandler
from batkube.batsim.simgrid.actors import ActorCode, ActorKernel, Simcall, Sleep
from batkube.batsim.simgrid.mailboxes import Mailbox
from batkube.batsim.state.jobs import LiveJob
from batkube.kernel.instants import Duration, Instant

JOBS, EVENTS = "jobs", "events"
#: What is told when the last source of a kind has no more.
END_NOTIFICATIONS = {JOBS: "no_more_static_job_to_submit", EVENTS: "no_more_external_event_to_occur"}

HandlerRoutine = Generator[Simcall, object, ServerHandler]
"""What is done before something is told, and returns what that is."""

_Item = TypeVar("_Item")


def announce() -> ActorCode:
    """A source introduces itself, which takes as long as any message."""
    yield from ()


def submit_jobs(
    scene: ActorKernel,
    mailbox: Mailbox,
    server: BatsimServer,
    jobs: Sequence[LiveJob],
    on_first: Callable[[], ActorCode] = announce,
) -> ActorCode:
    """Submit the jobs of a file; `on_first` is what is done when the first is due."""

    def news(due: Sequence[LiveJob]) -> HandlerRoutine:
        if due[0] is jobs[0]:
            yield from on_first()
        return functools.partial(server.on_jobs_submitted, due)

    return _submit(scene, mailbox, server, JOBS, jobs, lambda live: live.job.submit, news)


def submit_events(scene: ActorKernel, mailbox: Mailbox, server: BatsimServer, events: Sequence[Notify]) -> ActorCode:
    """Tell the events of a file."""

    def news(due: Sequence[Notify]) -> HandlerRoutine:
        yield from ()
        return functools.partial(server.on_external_events, due)

    return _submit(scene, mailbox, server, EVENTS, events, lambda event: event.at, news)


def _submit(
    scene: ActorKernel,
    mailbox: Mailbox,
    server: BatsimServer,
    kind: str,
    items: Iterable[_Item],
    date: Callable[[_Item], Instant],
    news: Callable[[Sequence[_Item]], HandlerRoutine],
) -> ActorCode:
    yield from mailbox.put(announce)
    reached, moment = scene.now, scene.moment
    batch: list[_Item] = []
    for at, due in itertools.groupby(items, key=date):
        if at > reached:
            if batch:
                yield from mailbox.put((yield from news(batch)))
                batch = []
            # The sleep is as long as the dates are apart, whenever the last message was through: Batsim does not
            # look at the clock again before it sleeps, only after.
            yield Sleep(Duration(at - reached), moments=-moment)
            reached, moment = scene.now, scene.moment
        batch += due
    if batch:
        yield from mailbox.put((yield from news(batch)))
    yield from mailbox.put(functools.partial(server.on_source_finished, kind, END_NOTIFICATIONS[kind]))
