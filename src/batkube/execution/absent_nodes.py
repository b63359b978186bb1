"""Nodes without a kubelet, because they failed, are gone or are not there yet, and the pods that wait for them.

A failed node is silent: its pods' processes are gone, and nobody says so. When it comes back, its kubelet starts the
pods again, or says that they have failed, and finishes those that were deleted meanwhile.

A scheduler that has not heard of it may bind pods to such a node. They are stranded there until the node is back, or
for as long as pods tolerate it by default (Kubernetes: plugin/pkg/admission/defaulttolerationseconds). One that never
hears of it may do so for ever; then the run has failed.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Protocol

from batkube.cluster.courses import Conductor, Course
from batkube.cluster.mapping import NODE, POD
from batkube.cluster.pods import is_finished, node_of_pod
from batkube.cluster.references import is_being_deleted
from batkube.cluster.store import ADDED, DELETED, Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.execution.node_accounts import NodeAccounts
from batkube.execution.pod_lives import PodLife
from batkube.kernel.agenda import Rank
from batkube.kernel.errors import RunFailed
from batkube.kernel.instants import Duration, Instant, after, seconds

#: How long pods stay bound to a node that has failed.
_TOLERATED: Duration = seconds(300)
#: A job that was bound so often to nodes that had failed, and did nothing in between, will not do anything else.
_STRANDED_MAX = 100

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

    def lose(self, key: Key, now: Instant) -> None:
        """Write that a pod of a course was lost with its node."""


class AbsentNodes:
    """Which nodes are away, and which pods wait for them; takes pods from the kubelets, and gives them back."""

    def __init__(self, world: World, accounts: NodeAccounts, kubelets: PodHost) -> None:
        self._store = world.store
        self._agenda = world.agenda
        self._silent = world.heartbeats.silent
        self._accounts = accounts
        self._courses = world.courses
        self._kubelets = kubelets
        #: Pods by the name of the node they are bound to; with their life until the node went away, if they had one.
        self._waiting: dict[str, dict[Key, Life | None]] = {}
        #: How often jobs were stranded in a row, and what work was lost of them before.
        self._stranded: dict[str, tuple[int, int]] = {}
        world.store.listen(NODE, self._hear)
        world.store.listen(POD, self._hear_pods)
        world.heartbeats.listen(self._lose, self._find)

    def __contains__(self, node: str) -> bool:
        return node in self._silent or node not in self._accounts

    def wait(self, node: str, key: Key) -> None:
        """Let a pod wait for its node."""
        self._waiting.setdefault(node, {})[key] = None

    def _hear_pods(self, batch: Batch, now: Instant) -> None:
        """Forget pods that are gone, where any wait."""
        if self._waiting and batch.type is DELETED:
            for node, waiting in list(self._waiting.items()):
                for key in batch.keys:
                    waiting.pop(key, None)
                if not waiting:
                    del self._waiting[node]

    def strand(self, course: Course, keys: Sequence[Key], nodes: Sequence[str], now: Instant) -> bool:
        """Let those of a course's pods wait that were bound to a node that has failed; return whether there are any."""
        if not self._silent or self._silent.keys().isdisjoint(nodes):
            return False
        for key, node in zip(keys, nodes, strict=True):
            if node in self._silent:
                self.wait(node, key)
        if not course.is_lost:
            course.is_lost = True
            self._count(course, now)
            self._agenda.book(after(now, _TOLERATED), Rank.FINISH, functools.partial(self._give_up, course))
        return True

    def _count(self, course: Course, now: Instant) -> None:
        """Count how often a job was stranded in a row; if that goes on and on, the run has failed."""
        count, work = self._stranded.get(course.job.key, (0, -1))
        count = count + 1 if work == course.past.work else 1
        self._stranded[course.job.key] = count, course.past.work
        if count > _STRANDED_MAX:
            self._agenda.book(now, Rank.FINISH, functools.partial(_fail, course))

    def _give_up(self, course: Course, now: Instant) -> None:
        """Say that a course is lost, unless it is over: the node may have come back."""
        place = self._courses.place(course.keys[0])
        if place is not None and place[0] is course:
            self._kubelets.conductor.lost(course, now)

    def _hear(self, batch: Batch, now: Instant) -> None:
        for name in batch.keys:
            if batch.type is DELETED:
                self._lose(name, now)
            elif batch.type is ADDED:
                self._find(name, now)

    def _lose(self, node: str, now: Instant) -> None:
        """A node failed or is gone, and the processes of its pods with it; who knows courses is told."""
        lost = _lives_on(node, self._kubelets.lives)
        if lost:
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
                self._kubelets.lose(key, now)
            else:
                self._kubelets.take_up(key, pod, now, before if isinstance(before, PodLife) else None)


def _fail(course: Course, now: Instant) -> None:
    raise RunFailed(
        f"job {course.job.key} was bound {_STRANDED_MAX} times in a row to nodes that had failed: "
        "its scheduler does not hear of them, and the run would not end\n"
        "  remedy: let the scheduler hear of nodes, let nodes come back, or let such jobs fail with --on-failure fail"
    )


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
