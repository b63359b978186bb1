"""Submitters: an actor per workload file or events file, which submits jobs or external events at their dates.

All items of one date are submitted in one message. A last message says that the submitter has ended.

Imitated: Batsim 4.2.1, static_job_submitter_process in src/job_submitter.cpp and static_event_submitter_process in
src/event_submitter.cpp.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import TypeVar

from batkube.batsim.protocol.messages import Notify
from batkube.batsim.server.batsim_server import EVENTS, JOBS, BatsimServer, ServerHandler
from batkube.batsim.simgrid.actors import ActorCode, ActorKernel, Simcall, Sleep
from batkube.batsim.simgrid.mailboxes import Mailbox
from batkube.batsim.state.jobs import LiveJob
from batkube.kernel.instants import Duration, Instant

HandlerRoutine = Generator[Simcall, object, ServerHandler]
"""A part of an actor's code that returns a message for the server."""

_Item = TypeVar("_Item")


def submit_jobs(
    kernel: ActorKernel,
    mailbox: Mailbox,
    server: BatsimServer,
    jobs: Sequence[LiveJob],
    on_first: Callable[[], ActorCode],
) -> ActorCode:
    """Submit the jobs of a workload file, in order; run `on_first` when the first is due."""

    def submission(batch: Sequence[LiveJob]) -> HandlerRoutine:
        if batch[0] is jobs[0]:
            yield from on_first()
        return functools.partial(server.on_jobs_submitted, batch)

    return _submit(kernel, mailbox, server, JOBS, jobs, lambda live: live.job.submit, submission)


def submit_events(kernel: ActorKernel, mailbox: Mailbox, server: BatsimServer, events: Sequence[Notify]) -> ActorCode:
    """Submit the events of an events file, in order."""

    def submission(batch: Sequence[Notify]) -> HandlerRoutine:
        yield from ()
        return functools.partial(server.on_external_events, batch)

    return _submit(kernel, mailbox, server, EVENTS, events, lambda event: event.at, submission)


def _submit(
    kernel: ActorKernel,
    mailbox: Mailbox,
    server: BatsimServer,
    kind: str,
    items: Iterable[_Item],
    date_of: Callable[[_Item], Instant],
    submission: Callable[[Sequence[_Item]], HandlerRoutine],
) -> ActorCode:
    yield from mailbox.put(server.on_submitter_hello)
    last_date, microstep = kernel.now, kernel.microstep
    batch: list[_Item] = []
    for date, due in itertools.groupby(items, key=date_of):
        if date > last_date:
            if batch:
                yield from mailbox.put((yield from submission(batch)))
                batch = []
            # As in Batsim, the sleep begins when the last batch has been received, and its length is the difference of
            # the two dates: the clock is read after the sleep, not before.
            yield Sleep(Duration(date - last_date), microsteps=-microstep)
            last_date, microstep = kernel.now, kernel.microstep
        batch += due
    if batch:
        yield from mailbox.put((yield from submission(batch)))
    yield from mailbox.put(functools.partial(server.on_submitter_bye, kind))
