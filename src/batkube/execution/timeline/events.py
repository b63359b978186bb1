"""The timeline of a cluster: the events of an events file, resolved to nodes and instants.

Before the run, every entry is validated against the nodes that exist at its time. Random times have a separate stream
per entry and node, so an additional node, or an additional entry at the end, does not change the others.
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
from batkube.workloads.timeline.entries import (
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

#: The minimum of drawn durations, so that two events that undo each other cannot stop the clock.
_MIN_DURATION: Duration = seconds(1)
#: The number of events that are validated before a run; some entries never end.
_MAX_VALIDATED = 100_000


class TimelineEvent(NamedTuple):
    """One event of a timeline."""

    at: Instant
    action: EventAction
    nodes: tuple[str, ...]
    detail: ActionDetail
    entry: EventEntry


class ClusterTimeline:
    """The events of a run, and the machines that they add to its platform."""

    def __init__(self, entries: Sequence[EventEntry], platform: Platform) -> None:
        """Raise InputError for an entry that can never be valid."""
        self._platform = platform
        #: Each entry with its nodes; an entry that adds machines has one group of nodes per occurrence.
        self._entries: list[tuple[EventEntry, list[tuple[str, ...]]]] = []
        #: The platform's machines, then those added.
        self.machines: list[Machine] = list(platform.machines)
        #: The platform's machines and those added so far, by node name.
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
        """The platform with all machines of the run, including those added later."""
        return replace(self._platform, machines=tuple(self.machines))

    @property
    def applied_objects(self) -> list[tuple[EventEntry, Manifest]]:
        """The manifests that entries apply, each with its entry."""
        applied = [entry for entry, _ in self._entries if entry.action is EventAction.APPLY]
        return [(entry, manifest) for entry in applied for manifest in cast("tuple[Manifest, ...]", entry.detail)]

    @property
    def changed_kinds(self) -> list[tuple[EventEntry, str]]:
        """The kinds of objects that entries delete or scale, each with its entry."""
        kinds: list[tuple[EventEntry, str]] = []
        for entry, _ in self._entries:
            if isinstance(entry.detail, Scaling):
                kinds.append((entry, entry.detail.kind))
            elif entry.action is EventAction.DELETE:
                kinds += [(entry, str(manifest["kind"])) for manifest in cast("tuple[Manifest, ...]", entry.detail)]
        return kinds

    @property
    def affects_nodes(self) -> bool:
        """Whether any entry acts on nodes or adds nodes."""
        return any(entry.action not in OBJECT_ACTIONS for entry, _ in self._entries)

    def __bool__(self) -> bool:
        return bool(self._entries)

    @property
    def added_nodes(self) -> frozenset[str]:
        """The nodes that entries add during the run."""
        first = len(self._platform.machines)
        return frozenset(kube_name(machine.name) for machine in self.machines[first:])

    def pending_entries(self, now: Instant) -> list[EventEntry]:
        """Return the entries with fixed times that begin after `now`; those with random times may never occur."""
        return [entry for entry, _ in self._entries if entry.schedule.interval is None and entry.schedule.at > now]

    def events(self, streams: Streams) -> Iterator[TimelineEvent]:
        """Yield all events in order of time, and at one instant in order of the file; there may be no end."""
        return self._merge_events(streams, range(len(self._entries)))

    def _merge_events(self, streams: Streams, numbers: Iterable[int]) -> Iterator[TimelineEvent]:
        """Yield the events of the entries with these numbers, in order."""
        sequences: list[Iterator[TimelineEvent]] = []
        for number in numbers:
            (entry, groups), name = self._entries[number], f"events/{number}"
            if entry.schedule.interval is None:
                sequences.append(_sort_groups(_fixed_events(entry, groups, streams, name)))
            else:
                sequences += [_sort_groups(_random_events(entry, node, streams, name)) for node in groups[0]]
        return heapq.merge(*sequences, key=lambda event: event.at)

    def _validate(self) -> None:
        """Reject events that no random draw can make valid: those on nodes without random events."""
        fixed = [number for number, (entry, _) in enumerate(self._entries) if not _is_random(entry)]
        random_groups = [groups for entry, groups in self._entries if _is_random(entry)]
        random_nodes = {node for groups in random_groups for nodes in groups for node in nodes}
        _validate_events(self._merge_events(Streams(0), fixed), self._platform, random_nodes)

    # Nodes

    def _add_machines(self, entry: EventEntry, addition: AddedMachines) -> list[tuple[str, ...]]:
        """Create the machines of every occurrence; return the names of their nodes."""
        template = read_platform(addition.platform)
        groups, number = [], itertools.count()
        for _ in _occurrences(entry):
            machines = [
                replace(machine, id=len(self.machines) + rank, name=f"{addition.name_prefix}-{next(number)}")
                for rank, machine in enumerate(template.machines)
            ]
            names = tuple(kube_name(machine.name) for machine in machines)
            if taken := [name for name in names if name in self._machines_by_node]:
                problem = f"adds node {taken[0]!r}, which exists already"
                (entry.place / "names").reject(problem, "set `names`, the prefix of the new nodes' names")
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
            return named or place.reject("selects no node: no node has these labels", "see the nodes' labels")
        if choice.is_all:
            return tuple(kube_name(machine.name) for machine in self._platform.machines)
        for name in choice.names:
            if name not in self._machines_by_node:
                place.reject(
                    f"names node {name!r}, which does not exist", f"the nodes are {_abbreviate(self._machines_by_node)}"
                )
        return choice.names


# Times


def _occurrences(entry: EventEntry) -> Iterator[Instant]:
    schedule, at = entry.schedule, entry.schedule.at
    for _ in itertools.repeat(None) if schedule.count is None else range(schedule.count):
        if at > LATEST_NS or (schedule.until is not None and at > schedule.until):
            return
        yield at
        if schedule.every is None:
            return
        at = Instant(at + schedule.every)


def _fixed_events(
    entry: EventEntry, groups: Sequence[tuple[str, ...]], streams: Streams, name: str
) -> Iterator[list[TimelineEvent]]:
    """Yield the events of each occurrence of an entry with fixed times."""
    for at, nodes in zip(_occurrences(entry), groups if len(groups) > 1 else itertools.cycle(groups), strict=False):
        yield _events_of(entry, nodes, at, _draw_duration(entry.duration, streams, name))


def _random_events(entry: EventEntry, node: str, streams: Streams, name: str) -> Iterator[list[TimelineEvent]]:
    """Yield the events of each random occurrence on one node; only one if the entry has no duration."""
    at, until, stream_name = entry.schedule.at, entry.schedule.until or LATEST_NS, f"{name}/{node}"
    while True:
        at = Instant(at + (_draw_duration(entry.schedule.interval, streams, stream_name) or 0))
        if at > until:
            return
        duration = _draw_duration(entry.duration, streams, stream_name)
        yield _events_of(entry, (node,), at, duration)
        if duration is None:
            return
        at = Instant(at + entry.notice + duration)


def _is_random(entry: EventEntry) -> bool:
    """Return whether the start or the duration of an entry is random."""
    return entry.schedule.interval is not None or (entry.duration is not None and entry.duration.name != "constant")


def _draw_duration(drawn: Distribution | None, streams: Streams, name: str) -> Duration | None:
    if drawn is None:
        return None
    return max(_MIN_DURATION, seconds(min(drawn.draw(streams.named(name)), LATEST_NS / seconds(1) / 4)))


def _events_of(
    entry: EventEntry, nodes: tuple[str, ...], at: Instant, duration: Duration | None
) -> list[TimelineEvent]:
    """Return the events of one occurrence of an entry; `reclaim` drains the nodes and then removes them."""
    if entry.action is EventAction.RECLAIM:
        steps = [
            TimelineEvent(at, EventAction.DRAIN, nodes, None, entry),
            TimelineEvent(Instant(at + entry.notice), EventAction.REMOVE, nodes, None, entry),
        ]
    else:
        steps = [TimelineEvent(at, entry.action, nodes, entry.detail, entry)]
    if duration is not None:
        steps.append(
            TimelineEvent(Instant(steps[-1].at + duration), INVERSE_ACTIONS[entry.action], nodes, entry.detail, entry)
        )
    return [step for step in steps if step.at <= LATEST_NS]


def _sort_groups(groups: Iterable[list[TimelineEvent]]) -> Iterator[TimelineEvent]:
    """Yield the events of all groups in order of time; groups are sorted by their first event."""
    heap: list[tuple[Instant, int, TimelineEvent]] = []
    numbers = itertools.count()
    for group in groups:
        while heap and heap[0][0] < group[0].at:
            yield heapq.heappop(heap)[2]
        for step in group:
            heapq.heappush(heap, (step.at, next(numbers), step))
    while heap:
        yield heapq.heappop(heap)[2]


# Validation


def _validate_events(events: Iterable[TimelineEvent], platform: Platform, random_nodes: Collection[str]) -> None:
    """Reject events on nodes that do not exist at the time, and events that undo nothing.

    Nodes with random events (`random_nodes`) are not checked, since their state cannot be predicted.
    """
    existing = {kube_name(machine.name) for machine in platform.machines}
    removed_at: dict[str, Instant] = {}
    marked: dict[EventAction, set[str]] = {EventAction.FAIL: set(), EventAction.CORDON: set()}
    for event in itertools.islice(events, _MAX_VALIDATED):
        action, place = event.action, event.entry.place / event.entry.action
        for node in event.nodes:
            if node in random_nodes:
                continue
            if action is EventAction.ADD:
                existing.add(node)
            elif node not in existing and action in NODE_ACTIONS:
                conflict = (
                    f"was removed at {format_seconds(removed_at[node])} s" if node in removed_at else "is added later"
                )
                place.reject(f"acts on {node!r} at {format_seconds(event.at)} s, which {conflict}")
            _update_state(event, node, marked)
        if action is EventAction.REMOVE:
            existing.difference_update(event.nodes)
            removed_at.update(dict.fromkeys(event.nodes, event.at))


def _update_state(event: TimelineEvent, node: str, marked: dict[EventAction, set[str]]) -> None:
    """Track failed and cordoned nodes; reject an event that changes nothing."""
    place = event.entry.place / event.entry.action
    match event.action:
        case EventAction.RETURN:
            if node not in marked[EventAction.FAIL]:
                place.reject(f"repairs {node!r}, which has not failed", "add a `fail` before it")
            marked[EventAction.FAIL].discard(node)
        case EventAction.UNCORDON:
            if node not in marked[EventAction.CORDON]:
                place.reject(f"makes {node!r} available, which it is already", "add a `cordon` before it")
            marked[EventAction.CORDON].discard(node)
        case EventAction.FAIL:
            if node in marked[EventAction.FAIL]:
                place.reject(f"fails {node!r} at {format_seconds(event.at)} s, which has failed already")
            marked[EventAction.FAIL].add(node)
        case EventAction.CORDON | EventAction.DRAIN:
            marked[EventAction.CORDON].add(node)
        case EventAction.REMOVE:
            for nodes in marked.values():
                nodes.discard(node)


def _abbreviate(names: Iterable[str]) -> str:
    listed = list(names)
    return ", ".join(listed[:5]) + (", …" if len(listed) > 5 else "")
