"""Nodes without a kubelet, because they failed, are gone or are not there yet, and the pods that wait for them.

A failed node is silent: its pods' processes are gone, and nobody says so. When it comes back, its kubelet starts the
pods again, or says that they have failed, and finishes those that were deleted meanwhile.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Protocol

from batkube.cluster.courses import Conductor, Course, Courses
from batkube.cluster.mapping import NODE, NODE_LOST, POD
from batkube.cluster.pods import is_finished, node_of_pod
from batkube.cluster.references import is_being_deleted
from batkube.cluster.store import ADDED, DELETED, Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.execution.node_accounts import NodeAccounts
from batkube.execution.pod_lives import PodLife
from batkube.kernel.agenda import Rank
from batkube.kernel.instants import Instant

Life = Course | PodLife
"""What a kubelet knows of a pod: the course it has part in, or the state of its containers."""


class PodHost(Protocol):
    """The kubelets, as far as it takes to take pods from them and to give them back."""

    lives: dict[Key, Life]

    @property
    def conductor(self) -> Conductor:
        """Who knows the courses."""

    def forget(self, keys: Sequence[Key], now: Instant) -> None:
        """Let go of pods."""

    def take_up(self, key: Key, pod: KubeObject, now: Instant, before: PodLife | None = None) -> None:
        """Start a pod, again if it ran `before`."""

    def remove(self, key: Key, uid: str, now: Instant) -> None:
        """Let the API forget a pod."""

    def write(self, keys: Sequence[Key], status: KubeObject, now: Instant) -> None:
        """Give pods a status."""


class AbsentNodes:
    """Which nodes are away, and which pods wait for them; takes pods from the kubelets, and gives them back."""

    def __init__(self, world: World, accounts: NodeAccounts, courses: Courses, kubelets: PodHost) -> None:
        self._store = world.store
        self._agenda = world.agenda
        self._silent = world.heartbeats.silent
        self._accounts = accounts
        self._courses = courses
        self._kubelets = kubelets
        #: Pods by the name of the node they are bound to; with their life until the node went away, if they had one.
        self._waiting: dict[str, dict[Key, Life | None]] = {}
        world.store.listen(NODE, self._hear)
        world.heartbeats.listen(self._lose, self._find)

    def __contains__(self, node: str) -> bool:
        return node in self._silent or node not in self._accounts

    def wait(self, node: str, key: Key) -> None:
        """Let a pod wait for its node."""
        self._waiting.setdefault(node, {})[key] = None

    def keep_waiting(self, keys: Sequence[Key], nodes: Sequence[str]) -> bool:
        """Let those of a course's pods wait that were bound to a node that has failed; return whether there are any."""
        if not self._silent or self._silent.keys().isdisjoint(nodes):
            return False
        for key, node in zip(keys, nodes, strict=True):
            if node in self._silent:
                self.wait(node, key)
        return True

    def _hear(self, batch: Batch, now: Instant) -> None:
        for name in batch.keys:
            if batch.type is DELETED:
                self._lose(name, now)
            elif batch.type is ADDED:
                self._find(name, now)

    def _lose(self, node: str, now: Instant) -> None:
        """A node failed or is gone, and the processes of its pods with it; who knows courses is told."""
        lost = _lives_on(node, self._kubelets.lives)
        self._waiting.setdefault(node, {}).update(lost)
        self._kubelets.forget(list(lost), now)
        for course in dict.fromkeys(life for life in lost.values() if isinstance(life, Course)):
            self._kubelets.conductor.lost(course, now)

    def _find(self, node: str, now: Instant) -> None:
        """A node came, or came back: its kubelet sees the pods that it should have."""
        if waiting := self._waiting.pop(node, {}):
            self._agenda.book(now, Rank.START, functools.partial(self._take_up, node, waiting))

    def _take_up(self, node: str, waiting: Mapping[Key, Life | None], now: Instant) -> None:
        for key, before in waiting.items():
            pod = self._store.get(POD, key)
            # Meanwhile there may be another pod of the name, elsewhere.
            if pod is None or node_of_pod(pod) != node or key in self._kubelets.lives or is_finished(pod):
                continue
            if is_being_deleted(pod):
                self._kubelets.remove(key, pod["metadata"]["uid"], now)
            elif self._courses.place(key) is not None:
                self._kubelets.write([key], {"phase": "Failed", "reason": NODE_LOST}, now)
            else:
                self._kubelets.take_up(key, pod, now, before if isinstance(before, PodLife) else None)


def _lives_on(node: str, lives: Mapping[Key, Life]) -> dict[Key, Life]:
    """Return those of the pods that are on a node; each course is looked through once."""
    there: dict[Key, Life] = {}
    for key, life in lives.items():
        if isinstance(life, PodLife):
            if life.node == node:
                there[key] = life
        elif key == life.keys[0] or life.keys[0] not in lives:
            there |= {one: life for one, on in zip(life.keys, life.nodes, strict=True) if on == node}
    return there
