"""What will happen to a cluster and when: the entries of an events file, brought together with its nodes.

Every entry is checked against the nodes there will be at its time before anything runs. What is drawn has a stream for
each entry and node, so that another node, or another entry at the end, changes nothing for the others.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, cast

from batkube.cluster.mapping import kube_name
from batkube.kernel.distributions import Distribution
from batkube.kernel.instants import LATEST_NS, Duration, Instant, format_seconds, seconds
from batkube.kernel.intervals import members
from batkube.kernel.streams import Streams
from batkube.platforms.model import Machine, Platform
from batkube.platforms.reader import read_platform
from batkube.workloads.events.entries import (
    INVERSE_ACTIONS,
    NODE_ACTIONS,
    OBJECT_ACTIONS,
    ActionDetail,
    AddedMachines,
    EventAction,
    EventEntry,
    EventNodes,
    Manifest,
    Scaling,
)

#: What is drawn to be shorter takes so long: two things that undo each other must not keep the clock from moving.
_MIN_DURATION: Duration = seconds(1)
#: How many happenings are looked at before a run to see that they are possible; some entries never end.
_MAX_VALIDATED = 100_000


class TimelineEvent(NamedTuple):
    """One thing that happens."""

    at: Instant
    action: EventAction
    nodes: tuple[str, ...]
    detail: ActionDetail
    entry: EventEntry


class ClusterTimeline:
    """The happenings of a run, and the machines that they add to its platform."""

    def __init__(self, entries: Sequence[EventEntry], platform: Platform) -> None:
        """Raises InputError when an entry asks for what cannot be."""
        self._platform = platform
        #: Each entry with its nodes; of machines that are added, with a group for each time.
        self._entries: list[tuple[EventEntry, list[tuple[str, ...]]]] = []
        #: The platform's machines, then those added.
        self.machines: list[Machine] = list(platform.machines)
        #: By name, the platform's machines and those added so far.
        self._machines_by_node = {kube_name(machine.name): machine for machine in platform.machines}
        for entry in entries:
            if isinstance(entry.detail, AddedMachines):
                self._entries.append((entry, self._add_machines(entry, entry.detail)))
        for entry in entries:
            if not isinstance(entry.detail, AddedMachines):
                self._entries.append((entry, [() if entry.nodes is None else self._select_nodes(entry, entry.nodes)]))
        numbers = {id(entry): number for number, entry in enumerate(entries)}
        self._entries.sort(key=lambda pair: numbers[id(pair[0])])
        self._validate()

    @property
    def platform(self) -> Platform:
        """The platform with all machines there will ever be."""
        return replace(self._platform, machines=tuple(self.machines))

    @property
    def applied_objects(self) -> list[tuple[EventEntry, Manifest]]:
        """The manifests that are applied, each with its entry."""
        applied = [entry for entry, _ in self._entries if entry.action is EventAction.APPLY]
        return [(entry, manifest) for entry in applied for manifest in cast("tuple[Manifest, ...]", entry.detail)]

    @property
    def changed_kinds(self) -> list[tuple[EventEntry, str]]:
        """The kinds of objects that are deleted or scaled, each with its entry."""
        named: list[tuple[EventEntry, str]] = []
        for entry, _ in self._entries:
            if isinstance(entry.detail, Scaling):
                named.append((entry, entry.detail.kind))
            elif entry.action is EventAction.DELETE:
                named += [(entry, str(one["kind"])) for one in cast("tuple[Manifest, ...]", entry.detail)]
        return named

    @property
    def affects_nodes(self) -> bool:
        """Whether anything is done to nodes, or nodes are added."""
        return any(entry.action not in OBJECT_ACTIONS for entry, _ in self._entries)

    def __bool__(self) -> bool:
        return bool(self._entries)

    @property
    def added_nodes(self) -> frozenset[str]:
        """The nodes that are not there from the beginning."""
        first = len(self._platform.machines)
        return frozenset(kube_name(machine.name) for machine in self.machines[first:])

    def pending_entries(self, now: Instant) -> list[EventEntry]:
        """Return the entries of which nothing has happened by `now`; chance may put off what is drawn for ever."""
        return [entry for entry, _ in self._entries if entry.schedule.interval is None and entry.schedule.at > now]

    def events(self, streams: Streams) -> Iterator[TimelineEvent]:
        """Yield what happens in the order of time, and at one instant in that of the file; perhaps for ever."""
        return self._merge_events(streams, range(len(self._entries)))

    def _merge_events(self, streams: Streams, numbers: Iterable[int]) -> Iterator[TimelineEvent]:
        """Yield what happens by the entries of these numbers."""
        executions: list[Iterator[TimelineEvent]] = []
        for number in numbers:
            (entry, groups), name = self._entries[number], f"events/{number}"
            if entry.schedule.interval is None:
                executions.append(_sort_groups(_fixed_events(entry, groups, streams, name)))
            else:
                executions += [_sort_groups(_random_events(entry, node, streams, name)) for node in groups[0]]
        return heapq.merge(*executions, key=lambda happening: happening.at)

    def _validate(self) -> None:
        """Refuse what can never be, whatever chance does: to nodes on which it has no influence."""
        certain = [number for number, (entry, _) in enumerate(self._entries) if not _is_random(entry)]
        others = [groups for entry, groups in self._entries if _is_random(entry)]
        uncertain = {node for groups in others for nodes in groups for node in nodes}
        _validate_events(self._merge_events(Streams(0), certain), self._platform, uncertain)

    # Which nodes

    def _add_machines(self, entry: EventEntry, addition: AddedMachines) -> list[tuple[str, ...]]:
        """Make the machines of every time they are added; return their nodes' names."""
        offered = read_platform(addition.platform)
        groups, number = [], itertools.count()
        for _ in _occurrences(entry):
            machines = [
                replace(one, id=len(self.machines) + rank, name=f"{addition.name_prefix}-{next(number)}")
                for rank, one in enumerate(offered.machines)
            ]
            names = tuple(kube_name(machine.name) for machine in machines)
            if taken := [name for name in names if name in self._machines_by_node]:
                problem = f"adds a node {taken[0]!r}, which there is already"
                (entry.place / "names").reject(problem, "give `names`, what the new ones' names begin with")
            self.machines += machines
            self._machines_by_node |= dict(zip(names, machines, strict=True))
            groups.append(names)
        return groups

    def _select_nodes(self, entry: EventEntry, choice: EventNodes) -> tuple[str, ...]:
        place = entry.place / entry.action
        if choice.ids:
            if choice.ids.bit_length() > len(self.machines):
                problem = f"names machine {choice.ids.bit_length() - 1}, and there are {len(self.machines)} machines"
                place.reject(problem, f"machine ids go from 0 to {len(self.machines) - 1}")
            return tuple(kube_name(self.machines[number].name) for number in members(choice.ids))
        if choice.labels is not None:
            labels = choice.labels.items()
            named = tuple(name for name, machine in self._machines_by_node.items() if labels <= machine.labels.items())
            return named or place.reject("chooses no node of the platform by these labels", "see the nodes' labels")
        if choice.is_all:
            return tuple(kube_name(machine.name) for machine in self._platform.machines)
        for name in choice.names:
            if name not in self._machines_by_node:
                place.reject(
                    f"names the node {name!r}, which is not there", f"there are {_abbreviate(self._machines_by_node)}"
                )
        return choice.names


# When


def _occurrences(entry: EventEntry) -> Iterator[Instant]:
    when, at = entry.schedule, entry.schedule.at
    for _ in itertools.repeat(None) if when.count is None else range(when.count):
        if at > LATEST_NS or (when.until is not None and at > when.until):
            return
        yield at
        if when.every is None:
            return
        at = Instant(at + when.every)


def _fixed_events(
    entry: EventEntry, groups: Sequence[tuple[str, ...]], streams: Streams, name: str
) -> Iterator[list[TimelineEvent]]:
    """Yield what happens each time that an entry of fixed instants comes up."""
    for at, nodes in zip(_occurrences(entry), groups if len(groups) > 1 else itertools.cycle(groups), strict=False):
        yield _events_of(entry, nodes, at, _draw_duration(entry.duration, streams, name))


def _random_events(entry: EventEntry, node: str, streams: Streams, name: str) -> Iterator[list[TimelineEvent]]:
    """Yield what happens to one node each time that it does; once only where nothing undoes it."""
    at, until, own = entry.schedule.at, entry.schedule.until or LATEST_NS, f"{name}/{node}"
    while True:
        at = Instant(at + (_draw_duration(entry.schedule.interval, streams, own) or 0))
        if at > until:
            return
        lasts = _draw_duration(entry.duration, streams, own)
        yield _events_of(entry, (node,), at, lasts)
        if lasts is None:
            return
        at = Instant(at + entry.notice + lasts)


def _is_random(entry: EventEntry) -> bool:
    """Return whether it is drawn when an entry comes up, or when what it does is undone."""
    return entry.schedule.interval is not None or (entry.duration is not None and entry.duration.name != "constant")


def _draw_duration(drawn: Distribution | None, streams: Streams, name: str) -> Duration | None:
    if drawn is None:
        return None
    return max(_MIN_DURATION, seconds(min(drawn.draw(streams.named(name)), LATEST_NS / seconds(1) / 4)))


def _events_of(entry: EventEntry, nodes: tuple[str, ...], at: Instant, lasts: Duration | None) -> list[TimelineEvent]:
    """Return what an entry's coming up means: a node is reclaimed by draining it, and then taking it away."""
    if entry.action is EventAction.RECLAIM:
        steps = [
            TimelineEvent(at, EventAction.DRAIN, nodes, None, entry),
            TimelineEvent(Instant(at + entry.notice), EventAction.REMOVE, nodes, None, entry),
        ]
    else:
        steps = [TimelineEvent(at, entry.action, nodes, entry.detail, entry)]
    if lasts is not None:
        steps.append(
            TimelineEvent(Instant(steps[-1].at + lasts), INVERSE_ACTIONS[entry.action], nodes, entry.detail, entry)
        )
    return [step for step in steps if step.at <= LATEST_NS]


def _sort_groups(groups: Iterable[list[TimelineEvent]]) -> Iterator[TimelineEvent]:
    """Yield the steps of groups in the order of time; groups come in the order of their first step."""
    heap: list[tuple[Instant, int, TimelineEvent]] = []
    numbers = itertools.count()
    for group in groups:
        while heap and heap[0][0] < group[0].at:
            yield heapq.heappop(heap)[2]
        for step in group:
            heapq.heappush(heap, (step.at, next(numbers), step))
    while heap:
        yield heapq.heappop(heap)[2]


# Whether it can be


def _validate_events(happenings: Iterable[TimelineEvent], platform: Platform, uncertain: Collection[str]) -> None:
    """Refuse what is done to nodes that are not there at the time, and what undoes nothing.

    Nothing is held against an entry where chance has a part in what becomes of the node: that cannot be foretold.
    """
    there = {kube_name(machine.name) for machine in platform.machines}
    gone: dict[str, Instant] = {}
    marked: dict[EventAction, set[str]] = {EventAction.FAIL: set(), EventAction.CORDON: set()}
    for happening in itertools.islice(happenings, _MAX_VALIDATED):
        deed, place = happening.action, happening.entry.place / happening.entry.action
        for node in happening.nodes:
            if node in uncertain:
                continue
            if deed is EventAction.ADD:
                there.add(node)
            elif node not in there and deed in NODE_ACTIONS:
                when = f"was removed at {format_seconds(gone[node])} s" if node in gone else "is added later"
                place.reject(f"is done to {node!r} at {format_seconds(happening.at)} s, which {when}")
            _update_state(happening, node, marked)
        if deed is EventAction.REMOVE:
            there.difference_update(happening.nodes)
            gone.update(dict.fromkeys(happening.nodes, happening.at))


def _update_state(happening: TimelineEvent, node: str, marked: dict[EventAction, set[str]]) -> None:
    """Keep in mind which nodes failed and are cordoned; refuse what was done already, or is undone without that."""
    place = happening.entry.place / happening.entry.action
    match happening.action:
        case EventAction.RETURN:
            if node not in marked[EventAction.FAIL]:
                place.reject(f"repairs {node!r}, which has not failed", "let it `fail` before")
            marked[EventAction.FAIL].discard(node)
        case EventAction.UNCORDON:
            if node not in marked[EventAction.CORDON]:
                place.reject(f"makes {node!r} available, which it is already", "let it be cordoned before")
            marked[EventAction.CORDON].discard(node)
        case EventAction.FAIL:
            if node in marked[EventAction.FAIL]:
                place.reject(f"lets {node!r} fail at {format_seconds(happening.at)} s, which has failed already")
            marked[EventAction.FAIL].add(node)
        case EventAction.CORDON | EventAction.DRAIN:
            marked[EventAction.CORDON].add(node)
        case EventAction.REMOVE:
            for nodes in marked.values():
                nodes.discard(node)


def _abbreviate(names: Iterable[str]) -> str:
    listed = list(names)
    return ", ".join(listed[:5]) + (", …" if len(listed) > 5 else "")
