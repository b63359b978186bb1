"""The tracks of a timeline. A track is created with its first item, so there are no empty tracks."""

from __future__ import annotations

import heapq
from collections import defaultdict

from batkube.outputs.exports.timeline.items import Track, TrackGroup


class Tracks:
    """Returns tracks by their subject, and creates them when needed."""

    def __init__(self) -> None:
        self._by_key: dict[tuple[str, object], Track] = {}
        #: Tracks that were created since the last call of `pop_new`, parents before children.
        self._new: list[Track] = []

    def pop_new(self) -> list[Track]:
        """Return the tracks that were created since the last call."""
        new, self._new = self._new, []
        return new

    def counter(self, name: str, unit: str) -> Track:
        """Return a counter of the cluster."""
        return self._track(("counter", name), TrackGroup.CLUSTER, name, unit=unit)

    def events(self) -> Track:
        """Return the track for events that concern the whole cluster."""
        return self._track(("events", ""), TrackGroup.CLUSTER, "events")

    def scheduler(self, name: str) -> Track:
        """Return the track of a scheduler."""
        return self._track(("scheduler", name), TrackGroup.SCHEDULERS, name)

    def job(self, number: int, key: str) -> Track:
        """Return the track of a job."""
        return self._track(("job", number), TrackGroup.JOBS, key, order=number)

    def node_status(self, number: int, node: str) -> Track:
        """Return the track for the status of a node, inside the track of the node."""
        parent = self._node(number, node).number
        return self._track(("status", node), TrackGroup.NODES, "status", parent=parent, order=0)

    def lane(self, number: int, node: str, lane: int) -> Track:
        """Return a lane for the pods of a node, inside the track of the node. Lanes of a node have the same name."""
        parent = self._node(number, node).number
        return self._track(("lane", (node, lane)), TrackGroup.NODES, "pods", parent=parent, order=1 + lane)

    def _node(self, number: int, node: str) -> Track:
        return self._track(("node", node), TrackGroup.NODES, node, order=number)

    def _track(
        self,
        key: tuple[str, object],
        group: TrackGroup,
        name: str,
        *,
        parent: int | None = None,
        order: int | None = None,
        unit: str | None = None,
    ) -> Track:
        track = self._by_key.get(key)
        if track is None:
            number = len(TrackGroup) + 1 + len(self._by_key)
            track = Track(number, group, name, parent, len(self._by_key) if order is None else order, unit)
            self._by_key[key] = track
            self._new.append(track)
        return track


class Lanes:
    """Lanes of nodes. A lane has at most one pod at a time; a pod gets the first free lane."""

    def __init__(self) -> None:
        self._free: defaultdict[str, list[int]] = defaultdict(list)
        self._counts: defaultdict[str, int] = defaultdict(int)

    def take(self, node: str) -> int:
        """Reserve the first free lane of a node and return it."""
        if self._free[node]:
            return heapq.heappop(self._free[node])
        self._counts[node] += 1
        return self._counts[node] - 1

    def release(self, node: str, lane: int) -> None:
        """Release a lane."""
        heapq.heappush(self._free[node], lane)
