"""Where jobs and external events come from: one actor for each file.

Imitated: Batsim 4.2.1, src/job_submitter.cpp and src/event_submitter.cpp. What a file has for one date is told at once;
a goodbye follows the last.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import TypeVar

from batkube.batsim.actors import ActorWish, Scene, Script, Sleep
from batkube.batsim.jobs import LiveJob
from batkube.batsim.mailboxes import Mailbox
from batkube.batsim.messages import Notify
from batkube.batsim.server import BatsimServer, News
from batkube.kernel.instants import Duration, Instant

JOBS, EVENTS = "jobs", "events"
#: What is told when the last source of a kind has no more.
NOTICES = {JOBS: "no_more_static_job_to_submit", EVENTS: "no_more_external_event_to_occur"}

Telling = Generator[ActorWish, object, News]
"""What is done before something is told, and returns what that is."""

_Item = TypeVar("_Item")


def hello() -> Script:
    """A source introduces itself, which takes as long as any message."""
    yield from ()


def source_of_jobs(
    scene: Scene,
    mailbox: Mailbox,
    server: BatsimServer,
    jobs: Sequence[LiveJob],
    on_first: Callable[[], Script] = hello,
) -> Script:
    """Submit the jobs of a file; `on_first` is what is done when the first is due."""

    def news(due: Sequence[LiveJob]) -> Telling:
        if due[0] is jobs[0]:
            yield from on_first()
        return functools.partial(server.submitted, due)

    return _source(scene, mailbox, server, JOBS, jobs, lambda live: live.job.submit, news)


def source_of_events(scene: Scene, mailbox: Mailbox, server: BatsimServer, events: Sequence[Notify]) -> Script:
    """Tell the events of a file."""

    def news(due: Sequence[Notify]) -> Telling:
        yield from ()
        return functools.partial(server.happened, due)

    return _source(scene, mailbox, server, EVENTS, events, lambda event: event.at, news)


def _source(
    scene: Scene,
    mailbox: Mailbox,
    server: BatsimServer,
    kind: str,
    items: Iterable[_Item],
    date: Callable[[_Item], Instant],
    news: Callable[[Sequence[_Item]], Telling],
) -> Script:
    yield from mailbox.put(hello)
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
    yield from mailbox.put(functools.partial(server.goodbye, kind, NOTICES[kind]))
