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
from batkube.platforms.reading import read_platform
from batkube.workloads.happenings import (
    API_DEEDS,
    NODE_DEEDS,
    UNDOING,
    Addition,
    Deed,
    Detail,
    EventEntry,
    Manifest,
    NodeChoice,
    Scaling,
)

#: What is drawn to be shorter takes so long: two things that undo each other must not keep the clock from moving.
_SHORTEST: Duration = seconds(1)
#: How many happenings are looked at before a run to see that they are possible; some entries never end.
_CHECKED = 100_000


class Happening(NamedTuple):
    """One thing that happens."""

    at: Instant
    deed: Deed
    nodes: tuple[str, ...]
    detail: Detail
    entry: EventEntry


class Timetable:
    """The happenings of a run, and the machines that they add to its platform."""

    def __init__(self, entries: Sequence[EventEntry], platform: Platform) -> None:
        """Raises InputError when an entry asks for what cannot be."""
        self._platform = platform
        #: Each entry with its nodes; of machines that are added, with a group for each time.
        self._entries: list[tuple[EventEntry, list[tuple[str, ...]]]] = []
        #: The platform's machines, then those added.
        self.machines: list[Machine] = list(platform.machines)
        #: By name, the platform's machines and those added so far.
        self._named = {kube_name(machine.name): machine for machine in platform.machines}
        for entry in entries:
            if isinstance(entry.detail, Addition):
                self._entries.append((entry, self._add(entry, entry.detail)))
        for entry in entries:
            if not isinstance(entry.detail, Addition):
                self._entries.append((entry, [() if entry.nodes is None else self._chosen(entry, entry.nodes)]))
        numbers = {id(entry): number for number, entry in enumerate(entries)}
        self._entries.sort(key=lambda pair: numbers[id(pair[0])])
        self._check()

    @property
    def platform(self) -> Platform:
        """The platform with all machines there will ever be."""
        return replace(self._platform, machines=tuple(self.machines))

    @property
    def objects(self) -> list[tuple[EventEntry, Manifest]]:
        """The manifests that are applied, each with its entry."""
        applied = [entry for entry, _ in self._entries if entry.deed is Deed.APPLY]
        return [(entry, manifest) for entry in applied for manifest in cast("tuple[Manifest, ...]", entry.detail)]

    @property
    def objects_named(self) -> list[tuple[EventEntry, str]]:
        """The kinds of objects that are deleted or scaled, each with its entry."""
        named: list[tuple[EventEntry, str]] = []
        for entry, _ in self._entries:
            if isinstance(entry.detail, Scaling):
                named.append((entry, entry.detail.kind))
            elif entry.deed is Deed.DELETE:
                named += [(entry, str(one["kind"])) for one in cast("tuple[Manifest, ...]", entry.detail)]
        return named

    @property
    def concerns_nodes(self) -> bool:
        """Whether anything is done to nodes, or nodes are added."""
        return any(entry.deed not in API_DEEDS for entry, _ in self._entries)

    def __bool__(self) -> bool:
        return bool(self._entries)

    @property
    def added(self) -> frozenset[str]:
        """The nodes that are not there from the beginning."""
        first = len(self._platform.machines)
        return frozenset(kube_name(machine.name) for machine in self.machines[first:])

    def not_begun(self, now: Instant) -> list[EventEntry]:
        """Return the entries of which nothing has happened by `now`; chance may put off what is drawn for ever."""
        return [entry for entry, _ in self._entries if entry.when.between is None and entry.when.at > now]

    def happenings(self, streams: Streams) -> Iterator[Happening]:
        """Yield what happens in the order of time, and at one instant in that of the file; perhaps for ever."""
        return self._happenings(streams, range(len(self._entries)))

    def _happenings(self, streams: Streams, numbers: Iterable[int]) -> Iterator[Happening]:
        """Yield what happens by the entries of these numbers."""
        courses: list[Iterator[Happening]] = []
        for number in numbers:
            (entry, groups), name = self._entries[number], f"events/{number}"
            if entry.when.between is None:
                courses.append(_in_order(_timed(entry, groups, streams, name)))
            else:
                courses += [_in_order(_drawn(entry, node, streams, name)) for node in groups[0]]
        return heapq.merge(*courses, key=lambda happening: happening.at)

    def _check(self) -> None:
        """Refuse what can never be, whatever chance does: to nodes on which it has no influence."""
        certain = [number for number, (entry, _) in enumerate(self._entries) if not _depends_on_chance(entry)]
        others = [groups for entry, groups in self._entries if _depends_on_chance(entry)]
        uncertain = {node for groups in others for nodes in groups for node in nodes}
        _check(self._happenings(Streams(0), certain), self._platform, uncertain)

    # Which nodes

    def _add(self, entry: EventEntry, addition: Addition) -> list[tuple[str, ...]]:
        """Make the machines of every time they are added; return their nodes' names."""
        offered = read_platform(addition.platform)
        groups, number = [], itertools.count()
        for _ in _instants(entry):
            machines = [
                replace(one, id=len(self.machines) + rank, name=f"{addition.prefix}-{next(number)}")
                for rank, one in enumerate(offered.machines)
            ]
            names = tuple(kube_name(machine.name) for machine in machines)
            if taken := [name for name in names if name in self._named]:
                problem = f"adds a node {taken[0]!r}, which there is already"
                (entry.place / "names").refuse(problem, "give `names`, what the new ones' names begin with")
            self.machines += machines
            self._named |= dict(zip(names, machines, strict=True))
            groups.append(names)
        return groups

    def _chosen(self, entry: EventEntry, choice: NodeChoice) -> tuple[str, ...]:
        place = entry.place / entry.deed
        if choice.ids:
            if choice.ids.bit_length() > len(self.machines):
                problem = f"names machine {choice.ids.bit_length() - 1}, and there are {len(self.machines)} machines"
                place.refuse(problem, f"machine ids go from 0 to {len(self.machines) - 1}")
            return tuple(kube_name(self.machines[number].name) for number in members(choice.ids))
        if choice.labels is not None:
            labels = choice.labels.items()
            named = tuple(name for name, machine in self._named.items() if labels <= machine.labels.items())
            return named or place.refuse("chooses no node of the platform by these labels", "see the nodes' labels")
        if choice.is_all:
            return tuple(kube_name(machine.name) for machine in self._platform.machines)
        for name in choice.names:
            if name not in self._named:
                place.refuse(f"names the node {name!r}, which is not there", f"there are {_some(self._named)}")
        return choice.names


# When


def _instants(entry: EventEntry) -> Iterator[Instant]:
    when, at = entry.when, entry.when.at
    for _ in itertools.repeat(None) if when.count is None else range(when.count):
        if at > LATEST_NS or (when.until is not None and at > when.until):
            return
        yield at
        if when.every is None:
            return
        at = Instant(at + when.every)


def _timed(
    entry: EventEntry, groups: Sequence[tuple[str, ...]], streams: Streams, name: str
) -> Iterator[list[Happening]]:
    """Yield what happens each time that an entry of fixed instants comes up."""
    for at, nodes in zip(_instants(entry), groups if len(groups) > 1 else itertools.cycle(groups), strict=False):
        yield _steps(entry, nodes, at, _length(entry.lasts, streams, name))


def _drawn(entry: EventEntry, node: str, streams: Streams, name: str) -> Iterator[list[Happening]]:
    """Yield what happens to one node each time that it does; once only where nothing undoes it."""
    at, until, own = entry.when.at, entry.when.until or LATEST_NS, f"{name}/{node}"
    while True:
        at = Instant(at + (_length(entry.when.between, streams, own) or 0))
        if at > until:
            return
        lasts = _length(entry.lasts, streams, own)
        yield _steps(entry, (node,), at, lasts)
        if lasts is None:
            return
        at = Instant(at + entry.notice + lasts)


def _depends_on_chance(entry: EventEntry) -> bool:
    """Return whether it is drawn when an entry comes up, or when what it does is undone."""
    return entry.when.between is not None or (entry.lasts is not None and entry.lasts.name != "constant")


def _length(drawn: Distribution | None, streams: Streams, name: str) -> Duration | None:
    if drawn is None:
        return None
    return max(_SHORTEST, seconds(min(drawn.draw(streams.named(name)), LATEST_NS / seconds(1) / 4)))


def _steps(entry: EventEntry, nodes: tuple[str, ...], at: Instant, lasts: Duration | None) -> list[Happening]:
    """Return what an entry's coming up means: a node is reclaimed by draining it, and then taking it away."""
    if entry.deed is Deed.RECLAIM:
        steps = [
            Happening(at, Deed.DRAIN, nodes, None, entry),
            Happening(Instant(at + entry.notice), Deed.REMOVE, nodes, None, entry),
        ]
    else:
        steps = [Happening(at, entry.deed, nodes, entry.detail, entry)]
    if lasts is not None:
        steps.append(Happening(Instant(steps[-1].at + lasts), UNDOING[entry.deed], nodes, entry.detail, entry))
    return [step for step in steps if step.at <= LATEST_NS]


def _in_order(groups: Iterable[list[Happening]]) -> Iterator[Happening]:
    """Yield the steps of groups in the order of time; groups come in the order of their first step."""
    heap: list[tuple[Instant, int, Happening]] = []
    numbers = itertools.count()
    for group in groups:
        while heap and heap[0][0] < group[0].at:
            yield heapq.heappop(heap)[2]
        for step in group:
            heapq.heappush(heap, (step.at, next(numbers), step))
    while heap:
        yield heapq.heappop(heap)[2]


# Whether it can be


def _check(happenings: Iterable[Happening], platform: Platform, uncertain: Collection[str]) -> None:
    """Refuse what is done to nodes that are not there at the time, and what undoes nothing.

    Nothing is held against an entry where chance has a part in what becomes of the node: that cannot be foretold.
    """
    there = {kube_name(machine.name) for machine in platform.machines}
    gone: dict[str, Instant] = {}
    marked: dict[Deed, set[str]] = {Deed.FAIL: set(), Deed.CORDON: set()}
    for happening in itertools.islice(happenings, _CHECKED):
        deed, place = happening.deed, happening.entry.place / happening.entry.deed
        for node in happening.nodes:
            if node in uncertain:
                continue
            if deed is Deed.ADD:
                there.add(node)
            elif node not in there and deed in NODE_DEEDS:
                when = f"was removed at {format_seconds(gone[node])} s" if node in gone else "is added later"
                place.refuse(f"is done to {node!r} at {format_seconds(happening.at)} s, which {when}")
            _follow(happening, node, marked)
        if deed is Deed.REMOVE:
            there.difference_update(happening.nodes)
            gone.update(dict.fromkeys(happening.nodes, happening.at))


def _follow(happening: Happening, node: str, marked: dict[Deed, set[str]]) -> None:
    """Keep in mind which nodes failed and are cordoned; refuse what was done already, or is undone without that."""
    place = happening.entry.place / happening.entry.deed
    match happening.deed:
        case Deed.RETURN:
            if node not in marked[Deed.FAIL]:
                place.refuse(f"repairs {node!r}, which has not failed", "let it `fail` before")
            marked[Deed.FAIL].discard(node)
        case Deed.UNCORDON:
            if node not in marked[Deed.CORDON]:
                place.refuse(f"makes {node!r} available, which it is already", "let it be cordoned before")
            marked[Deed.CORDON].discard(node)
        case Deed.FAIL:
            if node in marked[Deed.FAIL]:
                place.refuse(f"lets {node!r} fail at {format_seconds(happening.at)} s, which has failed already")
            marked[Deed.FAIL].add(node)
        case Deed.CORDON | Deed.DRAIN:
            marked[Deed.CORDON].add(node)
        case Deed.REMOVE:
            for nodes in marked.values():
                nodes.discard(node)


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    return ", ".join(listed[:5]) + (", …" if len(listed) > 5 else "")
