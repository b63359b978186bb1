"""Switches machines off and on.

A scheduler requests it by an annotation of the node, and cordons a node that is to be switched off. Switching off and
on passes through a transition power state each, which lasts as long as one flop at its speed and draws its power
(Batsim: pstate.cpp). When a machine is on again, its node is uncordoned.
"""

from __future__ import annotations

import enum
import functools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from batkube.cluster.client import BulkClient
from batkube.cluster.mapping import NODE, POWER_ANNOTATION, POWER_OFF, POWER_ON, node_names_of
from batkube.cluster.object_meta import annotations_of
from batkube.cluster.store import ADDED, DELETED, Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.execution.energy.log import SWITCHING_OFF, SWITCHING_ON, EnergyLog
from batkube.execution.profiles.runner import ProfileRunner
from batkube.kernel.agenda import Rank
from batkube.kernel.instants import Instant, seconds
from batkube.kernel.intervals import format_intervals
from batkube.platforms.model import Machine


class SleepState(enum.Enum):
    """The state of a machine that is not on."""

    SLEEPING = enum.auto()
    SWITCHING_ON = enum.auto()
    SWITCHING_OFF = enum.auto()


class SleepCounts(NamedTuple):
    """The number of machines in each of these states, in the order of machine_states.csv."""

    sleeping: int
    switching_on: int
    switching_off: int


class PowerSwitches:
    """Switches machines as the annotations of their nodes request."""

    def __init__(
        self,
        world: World,
        client: BulkClient,
        machines: Sequence[Machine],
        runner: ProfileRunner,
        energy_log: EnergyLog,
    ) -> None:
        self._store = world.store
        self._client = client
        self._agenda = world.agenda
        self._journal = world.journal
        self._runner = runner
        self._energy_log = energy_log
        self._hosts = dict(zip(node_names_of(machines), machines, strict=True))
        #: The last requested state of each node, if any.
        self._requested_states: dict[str, str] = {}
        #: The power state of each machine before it was switched off.
        self._work_pstates: dict[str, int] = {}
        #: The nodes whose machines are not on.
        self.sleeping_nodes: dict[str, SleepState] = {}
        #: Called after every change of the sleeping nodes.
        self.on_change: Callable[[SleepCounts, Instant], None] = lambda counts, now: None
        world.store.subscribe(NODE, self._on_nodes_changed)

    def _on_nodes_changed(self, batch: Batch, now: Instant) -> None:
        if batch.type in (ADDED, DELETED):
            return
        requests: dict[str, list[str]] = {}
        for change in batch.changes():
            name = change.object["metadata"]["name"]
            state = annotations_of(change.object).get(POWER_ANNOTATION, POWER_ON)
            if name in self._hosts and state != self._requested_states.get(name, POWER_ON):
                self._requested_states[name] = state
                requests.setdefault(state, []).append(name)
        for state, names in requests.items():
            switch = self._switch_off if state == POWER_OFF else self._switch_on
            self._agenda.book(now, Rank.TIMELINE, functools.partial(switch, names))

    def _switch_off(self, names: Sequence[str], now: Instant) -> None:
        self._record_request("switch_off", names, SWITCHING_OFF, now)
        self._set_state(names, SleepState.SWITCHING_OFF, now)
        for group in self._group_by_transition(names).values():
            power = self._energy_log.meters.power(self._hosts[group[0]].name)
            sleep, transition = next(iter(power.sleep_states.items()))
            for name in group:
                self._work_pstates[name] = self._energy_log.meters.platform.pstate(self._hosts[name].name)
            self._start_transition(group, transition.off, sleep, now)

    def _switch_on(self, names: Sequence[str], now: Instant) -> None:
        self._record_request("switch_on", names, SWITCHING_ON, now)
        self._set_state(names, SleepState.SWITCHING_ON, now)
        for group in self._group_by_transition(names).values():
            power = self._energy_log.meters.power(self._hosts[group[0]].name)
            transition = next(iter(power.sleep_states.values()))
            self._start_transition(group, transition.on, self._work_pstates[group[0]], now)

    def _record_request(self, word: str, names: Sequence[str], transition: int, now: Instant) -> None:
        mask = self._mask(names)
        self._journal.append(now, word, machines=format_intervals(mask))
        self._energy_log.record_switch_request(mask, transition, now)

    def _group_by_transition(self, names: Sequence[str]) -> Mapping[tuple[object, ...], list[str]]:
        """Group machines that switch through the same power states in the same time."""
        groups: dict[tuple[object, ...], list[str]] = {}
        for name in names:
            host = self._energy_log.meters.platform.host(self._hosts[name].name)
            sleeps = tuple(self._energy_log.meters.power(host.name).sleep_states.items())
            groups.setdefault((sleeps, host.speeds_flops, self._work_pstates.get(name)), []).append(name)
        return groups

    def _start_transition(self, names: Sequence[str], transition: int, goal: int, now: Instant) -> None:
        """Put machines into the power state `transition` for the time of one flop, and into `goal` afterwards."""
        speed = self._energy_log.meters.platform.host(self._hosts[names[0]].name).speeds_flops[transition]
        self._set_pstates(names, transition, now, is_loaded=True)
        finish = functools.partial(self._finish_transition, names, goal)
        self._agenda.book(Instant(now + seconds(1.0 / speed)), Rank.TIMELINE, finish)

    def _finish_transition(self, names: Sequence[str], pstate: int, now: Instant) -> None:
        self._set_pstates(names, pstate, now, is_loaded=False)
        self._energy_log.record_switch_end(self._mask(names), pstate, now)
        awake = [name for name in names if self._requested_states[name] == POWER_ON]
        is_awake = pstate == self._work_pstates.get(names[0])
        self._set_state(names, None if is_awake else SleepState.SLEEPING, now)
        if is_awake:
            nodes = [self._uncordoned(node) for node in self._store.objects(NODE, [Key(name) for name in awake])]
            self._client.update_all(NODE, nodes, now)

    def _set_state(self, names: Sequence[str], state: SleepState | None, now: Instant) -> None:
        """Set the state of machines; None for machines that are on."""
        for name in names:
            self.sleeping_nodes.pop(name, None)
            if state is not None:
                self.sleeping_nodes[name] = state
        counts = Counter(self.sleeping_nodes.values())
        self.on_change(SleepCounts(*(counts[state] for state in SleepState)), now)

    def _set_pstates(self, names: Sequence[str], pstate: int, now: Instant, *, is_loaded: bool) -> None:
        for name in names:
            self._energy_log.meters.set_pstate(self._hosts[name].name, pstate, now, is_loaded=is_loaded)
        self._runner.request_settle(now)

    def _uncordoned(self, node: KubeObject) -> KubeObject:
        return {**node, "spec": {key: value for key, value in node["spec"].items() if key != "unschedulable"}}

    def _mask(self, names: Sequence[str]) -> int:
        return sum(1 << self._hosts[name].id for name in names)
