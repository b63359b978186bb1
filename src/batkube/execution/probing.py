"""What follows from probes: a container comes up, is ready or not, and is restarted when it is not alive.

Where every probe succeeds the instants are known from the beginning. A container with a probe that may fail is looked
at again and again, as by a kubelet.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import NamedTuple

from batkube.cluster.event_recorder import EventNote
from batkube.execution.pod_lives import ContainerLife, PodLife
from batkube.execution.probes import Probe, ProbeKind, Sight
from batkube.kernel.agenda import Rank
from batkube.kernel.fidelity import FidelityNote, FidelityNotes
from batkube.kernel.instants import Duration, Instant

LifeAction = Callable[[PodLife, Instant], None]
Probes = dict[ProbeKind, Probe]
"""Those of a container that may fail."""

_NOT_UNDERSTOOD = FidelityNote(
    "containers", "a probe executes a command that is not understood; it is taken to succeed"
)
#: What is booked for a container that runs, each with its name.
APPOINTMENTS = ("up", "ready", *(kind.value for kind in ProbeKind))


class ContainerActions(NamedTuple):
    """What is done about what probes find out, by the one who runs containers."""

    #: Has something happen to a pod later, under a name.
    book: Callable[[PodLife, str, Instant, Rank, LifeAction], None]
    #: Writes the pod's status.
    report: LifeAction
    #: Starts what may start by now.
    go_on: LifeAction
    #: Records an event of a container.
    tell: Callable[[PodLife, ContainerLife, EventNote, Instant], None]
    #: Ends a container, of which a kind of probe has failed.
    end: Callable[[PodLife, ContainerLife, str, Instant], None]


class Probing:
    """Looks at containers, for the one who runs them."""

    def __init__(self, actions: ContainerActions, notes: FidelityNotes) -> None:
        self._actions = actions
        self._notes = notes

    def begin(self, life: PodLife, one: ContainerLife, probes: Iterable[Probe], now: Instant) -> None:
        """Look at a container that has just been started, by probes of which more is known than that they succeed."""
        fallible = {probe.kind: probe for probe in probes if probe.may_fail(self._sight(life, one, probe, now))}
        if ProbeKind.STARTUP in fallible:
            one.is_up = one.is_ready = False
            self._book(life, one, fallible, ProbeKind.STARTUP, now)
        elif one.started_after:
            up = functools.partial(self._come_up, one=one, probes=fallible)
            self._actions.book(life, f"up {one.name}", Instant(now + one.started_after), Rank.START, up)
        else:
            self._watch(life, one, fallible, now)

    def _sight(self, life: PodLife, one: ContainerLife, probe: Probe, now: Instant) -> Sight | None:
        """Return what a probe sees; None, with a note, if nobody knows.

        Nobody knows of files that there are if a container of the pod does nobody knows what.
        """
        sight = probe.look(now)
        are_files_known = all(each.is_followed for each in life.containers() if each.started is not None)
        if sight is not None and sight.by_files and not are_files_known:
            sight = None
        if sight is None:
            self._notes.add(_NOT_UNDERSTOOD, example=f"pod {life.key}, container {one.name}: {probe.question}")
        return sight

    def _come_up(self, life: PodLife, now: Instant, *, one: ContainerLife, probes: Probes) -> None:
        one.is_up = True
        self._watch(life, one, probes, now)
        self._actions.go_on(life, now)

    def _watch(self, life: PodLife, one: ContainerLife, probes: Probes, now: Instant) -> None:
        """Look whether a container that is up is ready, and stays alive."""
        if ProbeKind.READINESS in probes:
            one.is_ready = False
            self._book(life, one, probes, ProbeKind.READINESS, now)
        elif rest := one.ready_after - one.started_after:
            ready = functools.partial(self._be_ready, one=one)
            self._actions.book(life, f"ready {one.name}", Instant(now + rest), Rank.START, ready)
        else:
            one.is_ready = True
        if ProbeKind.LIVENESS in probes:
            self._book(life, one, probes, ProbeKind.LIVENESS, now)

    def _be_ready(self, life: PodLife, now: Instant, *, one: ContainerLife) -> None:
        one.is_ready = True
        self._actions.report(life, now)

    def _book(self, life: PodLife, one: ContainerLife, probes: Probes, kind: ProbeKind, now: Instant) -> None:
        assert one.started is not None
        age = probes[kind].first_look(Duration(now - one.started))
        self._book_at(life, one, probes, kind, Instant(one.started + age))

    def _book_at(self, life: PodLife, one: ContainerLife, probes: Probes, kind: ProbeKind, at: Instant) -> None:
        look = functools.partial(self._look, one=one, probes=probes, kind=kind)
        self._actions.book(life, f"{kind.value} {one.name}", at, Rank.START, look)

    def _look(self, life: PodLife, now: Instant, *, one: ContainerLife, probes: Probes, kind: ProbeKind) -> None:
        probe = probes[kind]
        belief = probe.take_note(self._sight(life, one, probe, now))
        if not probe.is_well:
            unhealthy = EventNote("Warning", "Unhealthy", f"{kind.title.capitalize()} probe failed: ")
            self._actions.tell(life, one, unhealthy, now)
        if belief is False and kind is not ProbeKind.READINESS:
            self._actions.end(life, one, kind.title, now)
        elif belief and kind is ProbeKind.STARTUP:
            self._come_up(life, now, one=one, probes=probes)
        else:
            if kind is ProbeKind.READINESS and belief not in (None, one.is_ready):
                one.is_ready = bool(belief)
                self._actions.report(life, now)
            wait = probe.wait(now, is_believed=belief is not None)
            if wait is not None:
                self._book_at(life, one, probes, kind, Instant(now + wait))
