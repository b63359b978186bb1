"""The kubelets of all nodes: what happens to a pod once a scheduler has bound it, whoever made it.

    bound ─▶ admitted (or rejected: OutOf…) ─▶ Running ─▶ Succeeded / Failed, its node's resources free
    deleted ─▶ stopped within its grace period ─▶ gone

What goes on inside a pod is one of two things. The pods of a workload's job share a course (`cluster.courses`): it
begins when the last of them runs and ends for all at once, so what happens to them together is written together. Any
other pod has containers, which `containers` starts, restarts and ends one by one.

Kubelets hear of bindings and deletions through the store only, and answer through it. They never act inside a change:
they book what follows on the agenda. A finished pod is left where it is; whoever made it may delete it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from batkube.cluster.courses import Course, Courses
from batkube.cluster.mapping import NODE, POD
from batkube.cluster.outcomes import FinalState
from batkube.cluster.pods import is_finished, node_of_pod, phase_of
from batkube.cluster.references import is_being_deleted
from batkube.cluster.resources import demand_of
from batkube.cluster.store import ADDED, DELETED, Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.execution.containers import Containers
from batkube.execution.latencies import Delays
from batkube.execution.node_accounts import NodeAccounts, Shortage
from batkube.execution.pod_lives import PodLife
from batkube.execution.stopping import stop_time_of
from batkube.kernel.agenda import Rank
from batkube.kernel.fidelity import FidelityNote, Severity
from batkube.kernel.instants import Instant, instant_of, rfc3339

_NO_SUCH_NODE = FidelityNote("scheduler", "bound a pod to a node that does not exist", Severity.VIOLATION)


class Conductor(Protocol):
    """Who knows what the courses are about."""

    def begin(self, course: Course, now: Instant) -> Instant:
        """All pods of the course run: return when its work ends, and settle how."""


class CourseLife:
    """A pod that has part in a course, from admission until it is gone."""

    __slots__ = ("course", "demand", "is_over", "key", "node", "rank", "uid")

    def __init__(self, key: Key, uid: str, node: str, course: Course, rank: int) -> None:
        self.key = key
        self.uid = uid
        self.node = node
        self.demand = course.demand
        self.course = course
        self.rank = rank
        #: Whether it has ended; its node's resources are free then.
        self.is_over = False


Life = CourseLife | PodLife


class Kubelets:
    """Runs pods on every node of the store."""

    def __init__(
        self,
        world: World,
        accounts: NodeAccounts,
        *,
        courses: Courses,
        conductor: Conductor | None = None,
        containers: Containers | None = None,
        delays: Delays | None = None,
        on_busy: Callable[[int, Instant], None] | None = None,
        is_watched: bool = True,
    ) -> None:
        """`delays` is None when nothing is delayed.

        Without `containers` every pod has part in a course. Where nobody watches, that such a pod runs is not written.
        """
        self._store = world.store
        self._agenda = world.agenda
        self._notes = world.notes
        self._accounts = accounts
        self._courses = courses
        self._conductor = conductor
        self._containers = containers
        self._delays = delays
        self._on_busy = on_busy
        self._is_watched = is_watched
        #: The pods that a kubelet knows and that are not gone.
        self._lives: dict[Key, Life] = {}
        #: Pods bound to a node that is not there, by its name. Dicts for their order.
        self._homeless: dict[str, dict[Key, None]] = {}
        if containers is not None:
            containers.on_end = self._end_containers
        world.store.listen(POD, self._hear, author=self)
        world.store.listen(NODE, self._hear_node)

    # What they hear

    def _hear(self, batch: Batch, now: Instant) -> None:
        """Take note of what was done to pods."""
        if batch.type is DELETED:
            self._forget([life for key in batch.keys if (life := self._lives.get(key)) is not None], now)
            return
        bound, deleted = [], []
        for key, pod in zip(batch.keys, batch.objects, strict=True):
            if not pod["spec"].get("nodeName"):
                continue
            life = self._lives.get(key)
            if life is not None and life.uid != pod["metadata"]["uid"]:
                self._forget([life], now)
                life = None
            if is_being_deleted(pod):
                deleted.append(key)
            elif life is None and phase_of(pod) == "Pending":
                bound.append(key)
            elif isinstance(life, CourseLife) and not life.is_over and is_finished(pod):
                self._forget([life], now)
        if bound:
            self._agenda.book(now, Rank.START, functools.partial(self._take_up, bound))
        if deleted:
            self._agenda.book(now, Rank.FINISH, functools.partial(self._stop, deleted))

    def _hear_node(self, batch: Batch, now: Instant) -> None:
        """Forget the pods of a node that is gone; take up those that wait for one that came."""
        for name in batch.keys:
            if batch.type is DELETED:
                lost = [life for life in self._lives.values() if life.node == name]
                self._homeless.setdefault(name, {}).update(dict.fromkeys(life.key for life in lost))
                self._forget(lost, now)
            elif batch.type is ADDED and (waiting := self._homeless.pop(name, {})):
                self._agenda.book(now, Rank.START, functools.partial(self._take_up, list(waiting)))

    # Pods come up

    def _take_up(self, keys: Sequence[Key], now: Instant) -> None:
        """Admit pods that were bound, or reject them, and book when they come up."""
        starts: dict[Instant, list[Life]] = {}
        for key in keys:
            pod = self._store.get(POD, key)
            if pod is None or key in self._lives or is_being_deleted(pod) or is_finished(pod):
                continue
            life = self._admitted(key, pod, now)
            if life is not None:
                node, container = life.node, pod["spec"]["containers"][0]
                up = now if self._delays is None else self._delays.until_running(now, node, container)
                starts.setdefault(up, []).append(life)
        self._tell_busy(now)
        for up, lives in starts.items():
            self._agenda.book(up, Rank.START, functools.partial(self._come_up, lives))

    def _admitted(self, key: Key, pod: KubeObject, now: Instant) -> Life | None:
        """Take the pod's resources from its node; reject the pod if they are not there."""
        place, node = self._courses.place(key), node_of_pod(pod)
        if self._store.get(NODE, Key(node)) is None:
            self._miss_node(key, node, place is not None, now)
            return None
        demand = place[0].demand if place is not None else tuple(demand_of(pod).items())
        shortage = self._accounts.take(node, demand)
        if shortage is not None:
            self._reject(key, pod, shortage, now)
            return None
        life: Life
        if place is not None:
            course, rank = place
            life = CourseLife(key, pod["metadata"]["uid"], node, course, rank)
            course.nodes[rank], course.scheduled[rank] = node, now
        else:
            assert self._containers is not None, f"nobody knows what the pod {key} does"
            life = self._containers.admitted(key, pod, demand, now)
        self._lives[key] = life
        return life

    def _miss_node(self, key: Key, node: str, has_course: bool, now: Instant) -> None:
        """A pod waits for its node to come, as in Kubernetes; one of a job would do so for ever, and fails instead."""
        if not has_course:
            self._homeless.setdefault(node, {})[key] = None
            return
        self._notes.add(_NO_SUCH_NODE, example=f"pod {key} on {node}")
        self._write([key], {"phase": "Failed", "reason": f"node {node} does not exist"}, now)

    def _reject(self, key: Key, pod: KubeObject, shortage: Shortage, now: Instant) -> None:
        reason = f"OutOf{shortage.resource}"
        note = FidelityNote("scheduler", f"bound a pod to a node without room for it ({reason})", Severity.VIOLATION)
        self._notes.add(note, example=f"pod {key} on {node_of_pod(pod)}")
        if self._containers is not None and self._courses.place(key) is None:
            self._containers.reject(pod, reason, str(shortage), now)
        else:
            self._write([key], {"phase": "Failed", "reason": reason, "message": f"Pod was rejected: {shortage}"}, now)

    def _come_up(self, lives: Sequence[Life], now: Instant) -> None:
        """Pods begin to run; when the last one of a course does, its work begins."""
        up = [life for life in lives if isinstance(life, CourseLife) and not life.is_over]
        for life in up:
            course = life.course
            course.started[life.rank] = now
            course.running += 1
        if up and self._is_watched:
            self._write([life.key for life in up], {"phase": "Running", "startTime": rfc3339(now)}, now)
        for course in dict.fromkeys(life.course for life in up):
            if course.running == len(course.keys):
                self._begin(course, now)
        for one in lives:
            if isinstance(one, PodLife) and not one.is_over and self._containers is not None:
                self._containers.begin(one, now)

    # Courses

    def _begin(self, course: Course, now: Instant) -> None:
        assert self._conductor is not None, "courses come with somebody who knows them"
        ends = self._conductor.begin(course, now)
        course.end_appointment = self._agenda.book(ends, Rank.FINISH, functools.partial(self._end_course, course))

    def _end_course(self, course: Course, now: Instant) -> None:
        """The work is over; the pods' terminal status follows once each is reported."""
        course.end_appointment = None
        course.ended = now
        lives = [life for key in course.keys if isinstance(life := self._lives.get(key), CourseLife)]
        if self._delays is None:
            self._conclude(lives, now)
            return
        reports: dict[Instant, list[CourseLife]] = {}
        for life in lives:
            reports.setdefault(self._delays.until_reported(now), []).append(life)
        for reported, some in reports.items():
            self._agenda.book(reported, Rank.FINISH, functools.partial(self._conclude, some))

    def _conclude(self, lives: Sequence[CourseLife], now: Instant) -> None:
        """Free the nodes of pods whose course is over, and say how it ended."""
        ending = [life for life in lives if not life.is_over]
        self._release(ending, now)
        by_phase: dict[str, list[Key]] = {}
        for life in ending:
            phase = "Succeeded" if life.course.state is FinalState.SUCCESS else "Failed"
            by_phase.setdefault(phase, []).append(life.key)
        for phase, keys in by_phase.items():
            whole = ending[0].course.keys if len(keys) == len(ending[0].course.keys) else keys
            self._write(whole, {"phase": phase}, now)

    def _end_containers(self, life: PodLife, now: Instant) -> None:
        """The last container of a pod has ended; that becomes known, and the node has room again."""
        assert self._containers is not None
        reported = now if self._delays is None else self._delays.until_reported(now)
        if reported == now:
            self._conclude_pod(life, now)
        else:
            self._containers.book(life, "report", reported, Rank.FINISH, self._conclude_pod)

    def _conclude_pod(self, life: PodLife, now: Instant) -> None:
        assert self._containers is not None
        self._release([life], now)
        self._containers.report(life, now)

    # Pods are deleted

    def _stop(self, keys: Sequence[Key], now: Instant) -> None:
        """Stop pods that were deleted: at once if they have ended, else as fast as they obey."""
        stops: dict[Instant, list[Life]] = {}
        for key in keys:
            pod, life = self._store.get(POD, key), self._lives.get(key)
            if pod is None or not is_being_deleted(pod):
                continue
            if life is not None and not life.is_over:
                stops.setdefault(self._stopped_at(pod, now), []).append(life)
            elif self._store.get(NODE, Key(node_of_pod(pod))) is not None:
                self._remove(key, pod["metadata"]["uid"], now)
        for stopped, lives in stops.items():
            for life in lives:
                if isinstance(life, CourseLife):
                    self._break_off(life.course)
                    self._agenda.book(stopped, Rank.FINISH, functools.partial(self._stopped, life))
                elif self._containers is not None:
                    self._containers.stop(life, stopped, self._stopped, now)

    def _stopped_at(self, pod: KubeObject, now: Instant) -> Instant:
        stopped = Instant(now + stop_time_of(pod, now))
        if self._delays is None:
            return stopped
        return max(stopped, self._delays.until_stopped(now, instant_of(pod["metadata"]["deletionTimestamp"])))

    def _stopped(self, life: Life, now: Instant) -> None:
        if life.is_over:
            return
        if isinstance(life, PodLife) and self._containers is not None:
            self._containers.end_all(life, now)
            self._conclude_pod(life, now)
        self._remove(life.key, life.uid, now)

    def _remove(self, key: Key, uid: str, now: Instant) -> None:
        """Let the API forget the pod; it is gone, or waits for its finalizers."""
        if self._containers is not None and self._courses.place(key) is None:
            self._containers.remove(key, uid, now)
            return
        life = self._lives.get(key)
        if life is not None:
            self._forget([life], now)
        self._store.delete(POD, [key], now, author=self)

    # Writing and remembering

    def _write(self, keys: Sequence[Key], status: KubeObject, now: Instant) -> None:
        self._store.set_status(POD, self._store.existing(POD, keys), status, now, author=self)

    def _forget(self, lives: Iterable[Life], now: Instant) -> None:
        gone = list(lives)
        for life in gone:
            if isinstance(life, CourseLife):
                self._break_off(life.course)
            del self._lives[life.key]
        self._release([life for life in gone if not life.is_over], now)

    def _break_off(self, course: Course) -> None:
        """End a course before its time: without one of its pods it cannot go on."""
        if course.end_appointment is not None:
            self._agenda.cancel(course.end_appointment)
            course.end_appointment = None
            course.state = None

    def _release(self, lives: Sequence[Life], now: Instant) -> None:
        """Give back what pods held of their nodes, once; nothing that was booked for them will happen."""
        for life in lives:
            life.is_over = True
            self._accounts.give_back(life.node, life.demand)
            if isinstance(life, PodLife) and self._containers is not None:
                self._containers.release(life)
        self._tell_busy(now)

    def _tell_busy(self, now: Instant) -> None:
        if self._on_busy is not None:
            self._on_busy(self._accounts.busy_nodes, now)
