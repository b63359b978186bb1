"""Machines that are switched off and on again.

Whoever schedules asks for it with an annotation of the node, and a node that is asked to switch off takes no more pods.
A machine goes to sleep by way of a power state, and comes back by way of another: each takes as long as one flop at its
speed, and draws its power (Batsim: pstate.cpp). Once a machine is awake its node takes pods again.
"""

from __future__ import annotations

import enum
import functools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from batkube.cluster.mapping import NODE, POWER_ANNOTATION, POWER_OFF, POWER_ON, node_names
from batkube.cluster.references import annotations_of
from batkube.cluster.store import ADDED, DELETED, Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.execution.energy_book import SWITCHING_OFF, SWITCHING_ON, EnergyBook
from batkube.execution.profile_runner import ProfileRunner
from batkube.kernel.agenda import Rank
from batkube.kernel.instants import Instant, seconds
from batkube.kernel.intervals import format_intervals
from batkube.platforms.model import Machine


class SleepState(enum.Enum):
    """Where a machine is that does not take pods because it was switched off."""

    SLEEPING = enum.auto()
    SWITCHING_ON = enum.auto()
    SWITCHING_OFF = enum.auto()


class SleepCounts(NamedTuple):
    """How many machines are in each of these states, in the order of machine_states.csv."""

    sleeping: int
    switching_on: int
    switching_off: int


class PowerSwitches:
    """Switches the machines of nodes whose annotations say so."""

    def __init__(self, world: World, machines: Sequence[Machine], runner: ProfileRunner, book: EnergyBook) -> None:
        self._store = world.store
        self._agenda = world.agenda
        self._journal = world.journal
        self._runner = runner
        self._book = book
        self._hosts = dict(zip(node_names(machines), machines, strict=True))
        #: The last wish for each node, where anybody had one.
        self._wishes: dict[str, str] = {}
        #: The power state each machine worked in before it was switched off.
        self._work_pstates: dict[str, int] = {}
        #: The nodes whose machines are not awake.
        self.sleepers: dict[str, SleepState] = {}
        #: Told of every change of these.
        self.on_change: Callable[[SleepCounts, Instant], None] = lambda counts, now: None
        world.store.listen(NODE, self._hear, author=self)

    def _hear(self, batch: Batch, now: Instant) -> None:
        if batch.type in (ADDED, DELETED):
            return
        wishes: dict[str, list[str]] = {}
        for change in batch.changes():
            name = change.object["metadata"]["name"]
            wish = annotations_of(change.object).get(POWER_ANNOTATION, POWER_ON)
            if name in self._hosts and wish != self._wishes.get(name, POWER_ON):
                self._wishes[name] = wish
                wishes.setdefault(wish, []).append(name)
        for wish, names in wishes.items():
            act = self._switch_off if wish == POWER_OFF else self._switch_on
            self._agenda.book(now, Rank.HAPPEN, functools.partial(act, names))

    def _switch_off(self, names: Sequence[str], now: Instant) -> None:
        self._begin("switch_off", names, SWITCHING_OFF, now)
        self._become(names, SleepState.SWITCHING_OFF, now)
        for group in self._by_sleep(names).values():
            power = self._book.meters.power(self._hosts[group[0]].name)
            sleep, way = next(iter(power.sleeps.items()))
            for name in group:
                self._work_pstates[name] = self._book.meters.platform.pstate(self._hosts[name].name)
            self._travel(group, way.off, sleep, now)

    def _switch_on(self, names: Sequence[str], now: Instant) -> None:
        self._begin("switch_on", names, SWITCHING_ON, now)
        self._become(names, SleepState.SWITCHING_ON, now)
        for group in self._by_sleep(names).values():
            power = self._book.meters.power(self._hosts[group[0]].name)
            way = next(iter(power.sleeps.values()))
            self._travel(group, way.on, self._work_pstates[group[0]], now)

    def _begin(self, word: str, names: Sequence[str], transition: int, now: Instant) -> None:
        mask = self._mask(names)
        self._journal.append(now, word, machines=format_intervals(mask))
        self._book.request_switch(mask, transition, now)

    def _by_sleep(self, names: Sequence[str]) -> Mapping[tuple[object, ...], list[str]]:
        """Return machines that switch in the same time, by way of the same power states, together."""
        groups: dict[tuple[object, ...], list[str]] = {}
        for name in names:
            host = self._book.meters.platform.host(self._hosts[name].name)
            sleeps = tuple(self._book.meters.power(host.name).sleeps.items())
            groups.setdefault((sleeps, host.speeds_flops, self._work_pstates.get(name)), []).append(name)
        return groups

    def _travel(self, names: Sequence[str], way: int, goal: int, now: Instant) -> None:
        """Let machines spend the time of one flop in the power state `way`, and be in `goal` then."""
        speed = self._book.meters.platform.host(self._hosts[names[0]].name).speeds_flops[way]
        self._set_pstates(names, way, now, is_loaded=True)
        arrive = functools.partial(self._arrive, names, goal)
        self._agenda.book(Instant(now + seconds(1.0 / speed)), Rank.HAPPEN, arrive)

    def _arrive(self, names: Sequence[str], pstate: int, now: Instant) -> None:
        self._set_pstates(names, pstate, now, is_loaded=False)
        self._book.complete_switch(self._mask(names), pstate, now)
        awake = [name for name in names if self._wishes[name] == POWER_ON]
        is_awake = pstate == self._work_pstates.get(names[0])
        self._become(names, None if is_awake else SleepState.SLEEPING, now)
        if is_awake:
            nodes = [self._opened(node) for node in self._store.objects(NODE, [Key(name) for name in awake])]
            self._store.replace(NODE, [Key(name) for name in awake], nodes, now, author=self)

    def _become(self, names: Sequence[str], state: SleepState | None, now: Instant) -> None:
        """Take note of where machines are; None once they are awake."""
        for name in names:
            self.sleepers.pop(name, None)
            if state is not None:
                self.sleepers[name] = state
        counts = Counter(self.sleepers.values())
        self.on_change(SleepCounts(*(counts[state] for state in SleepState)), now)

    def _set_pstates(self, names: Sequence[str], pstate: int, now: Instant, *, is_loaded: bool) -> None:
        for name in names:
            self._book.meters.set_pstate(self._hosts[name].name, pstate, now, is_loaded=is_loaded)
        self._runner.change(now)

    def _opened(self, node: KubeObject) -> KubeObject:
        return {**node, "spec": {key: value for key, value in node["spec"].items() if key != "unschedulable"}}

    def _mask(self, names: Sequence[str]) -> int:
        return sum(1 << self._hosts[name].id for name in names)
