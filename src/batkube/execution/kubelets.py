"""The kubelets of all nodes: what happens to a pod once a scheduler has bound it, whoever made it.

    bound ─▶ admitted (or rejected: OutOf…) ─▶ Running ─▶ Succeeded / Failed, its node's resources free
    deleted ─▶ stopped within its grace period ─▶ gone
    its node fails ─▶ not heard of any more, until the node is back: then it is started again, or has failed

What goes on inside a pod is one of two things. The pods of a workload's job share a course (`cluster.courses`): it
begins when the last of them runs and ends for all at once, so what happens to them together is written together. Any
other pod has containers, which `containers` starts, restarts and ends one by one.

Kubelets hear of bindings and deletions through the store only, and answer through it. They never act inside a change:
they book what follows on the agenda. A finished pod is left where it is; whoever made it may delete it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from batkube.cluster.courses import Conductor, Course
from batkube.cluster.decisions import Binding
from batkube.cluster.mapping import NODE_LOST, POD
from batkube.cluster.pods import TERMINAL_PHASES, is_finished, node_of_pod, phase_of
from batkube.cluster.references import is_being_deleted
from batkube.cluster.resources import spec_demand
from batkube.cluster.store import ADDED, DELETED, Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.execution import host_ports
from batkube.execution.absent_nodes import AbsentNodes, Life
from batkube.execution.container_runs import LOST, TERMINATED
from batkube.execution.course_pods import CoursePods
from batkube.execution.latencies import Delays
from batkube.execution.node_accounts import NodeAccounts
from batkube.execution.pod_lives import PodLife
from batkube.execution.pod_resizes import PodResizes
from batkube.execution.stopping import Stopping
from batkube.kernel.agenda import Rank
from batkube.kernel.fidelity import FidelityNote, Severity
from batkube.kernel.instants import Instant

if TYPE_CHECKING:
    from batkube.execution.containers import Containers

BusyListener = Callable[[int, Instant], None]
"""Told how many nodes have pods, whenever that may have changed."""

_NO_SUCH_NODE = FidelityNote("scheduler", "bound a pod to a node that does not exist", Severity.VIOLATION)


class Kubelets:
    """Runs pods on every node of the store."""

    def __init__(
        self,
        world: World,
        accounts: NodeAccounts,
        conductor: Conductor | None = None,
        containers: Containers | None = None,
        delays: Delays | None = None,
        on_busy: BusyListener = lambda count, now: None,
    ) -> None:
        """Without `containers` every pod has part in a course, and nobody watches: what it does is not written."""
        self._store = world.store
        self._agenda = world.agenda
        self._notes = world.notes
        self._accounts = accounts
        self._ports = host_ports.HostPorts()
        self._courses = world.courses
        self._conductor = conductor
        self._containers = containers
        self._delays = delays
        self._stopping = Stopping(world.notes, delays)
        self._on_busy = on_busy
        #: The pods that a kubelet knows and that are not gone.
        self.lives: dict[Key, Life] = {}
        self._course_pods = CoursePods(world, None if containers is None else containers.addresses, author=self)
        self._absent = AbsentNodes(world, accounts, self)
        if conductor is not None:
            conductor.on_end = self._end_course
        if containers is not None:
            containers.on_end = self._end_containers
            self._resizes = PodResizes(world, accounts, containers, self.lives)
        world.store.listen(POD, self._hear, author=self)

    # What they hear

    def _hear(self, batch: Batch, now: Instant) -> None:
        """Take note of what was done to pods."""
        if batch.type is DELETED:
            self.forget([key for key in batch.keys if key in self.lives], now)
            return
        if batch.type is ADDED and self._containers is None:
            return  # no pod comes with a node
        known = 0
        for course, positions, ranks in self._courses.among(batch.keys):
            known += len(positions)
            if batch.type is not ADDED:
                if isinstance(batch.decision, Binding) and len(ranks) == len(batch.keys):
                    self._admit(course, dict(zip(ranks, batch.decision.nodes, strict=True)), batch.objects[0], now)
                else:
                    self._hear_of_course(course, ranks, batch.at(positions), now)
        if known < len(batch.keys):
            for key, pod in zip(batch.keys, batch.objects, strict=True):
                if node_of_pod(pod) and self._courses.place(key) is None:
                    self._hear_of_pod(key, pod, now)

    def _hear_of_course(self, course: Course, ranks: Sequence[int], pods: Sequence[KubeObject], now: Instant) -> None:
        """Take up pods that were bound, stop those that were deleted, let go of those that somebody else ended."""
        bound: dict[int, str] = {}
        for rank, pod in zip(ranks, pods, strict=True):
            if "nodeName" not in pod["spec"]:
                continue
            if "deletionTimestamp" in pod["metadata"]:
                self._agenda.book(now, Rank.FINISH, functools.partial(self._stop, course.keys[rank]))
            elif pod["status"]["phase"] in TERMINAL_PHASES:
                if course.nodes[rank] is not None:
                    self.forget([course.keys[rank]], now)
            elif course.machine_ids[rank] is None and course.scheduled[rank] is None:
                bound[rank] = pod["spec"]["nodeName"]
        if bound:
            self._admit(course, bound, pods[0], now)

    def _hear_of_pod(self, key: Key, pod: KubeObject, now: Instant) -> None:
        """Take up a pod that was bound, or stop it."""
        life = self.lives.get(key)
        if isinstance(life, PodLife) and life.uid != pod["metadata"]["uid"]:
            self.forget([key], now)
            life = None
        if is_being_deleted(pod):
            self._agenda.book(now, Rank.FINISH, functools.partial(self._stop, key))
        elif life is None and phase_of(pod) == "Pending":
            self.take_up(key, pod, now)
        elif isinstance(life, PodLife) and not life.is_over:
            self._resizes.heed(life, pod, now)

    # The pods of a course come up

    def _admit(self, course: Course, bound: dict[int, str], pod: KubeObject, now: Instant) -> None:
        """Take the resources of pods, all like `pod`, from their nodes, and book when they come up; or refuse them."""
        nodes, keys = list(bound.values()), [course.keys[rank] for rank in bound]
        self.conductor.bound(course, list(bound), nodes, now)
        if self._absent.strand(course, keys, nodes, now):
            return
        if unknown := self._accounts.unknown(nodes):
            self._notes.add(_NO_SUCH_NODE, example=f"job {course.job.key} on {unknown[0]}")
            self._refuse(keys, f"node {unknown[0]} does not exist", "", now)
            return
        shortage = self._accounts.take(nodes, course.demand)
        if shortage is not None:
            self._notes.add(shortage.note, example=f"job {course.job.key} on {shortage.node}")
            self._refuse(keys, f"OutOf{shortage.resource}", f"Pod was rejected: {shortage}", now)
            return
        self.lives.update(dict.fromkeys(keys, course))
        for rank, node in bound.items():
            course.nodes[rank] = node
            course.scheduled[rank] = now
        self._on_busy(self._accounts.busy_nodes, now)
        starts = {now: list(bound)} if self._delays is None else self._delays.starts(now, bound, pod)
        for up, some in starts.items():
            self._agenda.book(up, Rank.START, functools.partial(self._come_up, course, some))

    def _refuse(self, keys: Sequence[Key], reason: str, message: str, now: Instant) -> None:
        reject = functools.partial(self._course_pods.end, keys, LOST, reason=reason, message=message)
        self._agenda.book(now, Rank.FINISH, lambda at: reject(at))

    def _come_up(self, course: Course, ranks: Sequence[int], now: Instant) -> None:
        """Pods begin to run; when the last one of the course does, its work begins."""
        up = [rank for rank in ranks if course.nodes[rank] is not None]
        for rank in up:
            course.started[rank] = now
        course.running += len(up)
        self._course_pods.come_up([course.keys[rank] for rank in up], now)
        if up and course.running == len(course.keys) and course.broken is None:
            ends, end = self.conductor.begin(course, now), functools.partial(self._end_course, course)
            course.end_appointment = None if ends is None else self._agenda.book(ends, Rank.FINISH, end)

    def _end_course(self, course: Course, now: Instant) -> None:
        """The work is over; the pods' terminal status follows once each is reported."""
        course.end_appointment = None
        course.ended = now
        if self._delays is None:
            self._conclude(course, range(len(course.keys)), now)
            return
        for reported, ranks in self._delays.reports(now, len(course.keys)).items():
            self._agenda.book(reported, Rank.FINISH, functools.partial(self._conclude, course, ranks))

    def _conclude(self, course: Course, ranks: Sequence[int], now: Instant) -> None:
        """Say how a course ended for some of its pods, unless they are gone; their nodes are free, and forget them."""
        there = [rank for rank in ranks if course.nodes[rank] is not None]
        self._release(course, there, now)
        if self._containers is None and len(there) == len(course.keys):
            self.conductor.over(course, now)
            return
        self._course_pods.conclude(course, [course.keys[rank] for rank in there], now)

    def _release(self, course: Course, ranks: Sequence[int], now: Instant) -> None:
        """Give back what pods of a course held of their nodes, and forget them."""
        held = [node for rank in ranks if (node := course.nodes[rank]) is not None]
        self._course_pods.release([course.keys[rank] for rank in ranks])
        for rank in ranks:
            course.nodes[rank] = None
            del self.lives[course.keys[rank]]
        if course.is_owned:
            course.departures.update(dict.fromkeys(ranks, now))
        self._accounts.give_back(held, course.demand)
        self._on_busy(self._accounts.busy_nodes, now)

    # Any other pod

    def take_up(self, key: Key, pod: KubeObject, now: Instant, before: PodLife | None = None) -> None:
        """Take the pod's resources from its node, and book its start; reject it if there is no room.

        What ran `before` the node failed starts again, or has failed (Kubernetes: computePodActions).
        """
        if before is not None and before.uid != pod["metadata"]["uid"]:
            before = None
        if before is not None and before.has_begun and before.restart_policy == "Never":
            self.containers.lose(before, now)
            return
        node = node_of_pod(pod)
        demand = tuple(spec_demand(pod["spec"]).items()) if before is None else before.demand
        if node in self._absent:
            self._absent.wait(node, key)
            return
        shortage = self._accounts.take([node], demand, for_job=False)
        if shortage is not None:
            self._notes.add(shortage.note, example=f"pod {key} on {shortage.node}")
            self.containers.book_rejection(pod, f"OutOf{shortage.resource}", str(shortage), now)
            return
        if not self._ports.take(node, key, pod):
            self._accounts.give_back([node], demand, for_job=False)
            self.containers.book_rejection(pod, host_ports.REASON, host_ports.MESSAGE, now)
            return
        life = self.lives[key] = PodLife(key, pod, demand, now)
        if before is not None:
            life.follow(before, now)
        self._on_busy(self._accounts.busy_nodes, now)
        self.containers.appointments.book(life, "admitted", now, Rank.START, self._start)
        self._resizes.compare(life, pod, now)

    def _start(self, life: PodLife, now: Instant) -> None:
        """Say that the pod was admitted, and book when it comes up."""
        if (pod := self._store.get(POD, life.key)) is None:
            return
        self.containers.admitted(life, pod, now)
        container = pod["spec"]["containers"][0]
        up = now if self._delays is None else self._delays.until_running(now, life.node, container)
        self.containers.appointments.book(life, "begin", up, Rank.START, self.containers.begin)

    def _end_containers(self, life: PodLife, now: Instant) -> None:
        """The last container of a pod has ended; that becomes known, and the node has room again."""
        reported = now if self._delays is None else self._delays.until_reported(now)
        if reported == now:
            self._conclude_pod(life, now)
        else:
            self.containers.appointments.book(life, "report", reported, Rank.FINISH, self._conclude_pod)

    def _conclude_pod(self, life: PodLife, now: Instant) -> None:
        self._release_pod(life, now)
        self.containers.report(life, now)

    def _release_pod(self, life: PodLife, now: Instant) -> None:
        """Give back what a pod held of its node, once; nothing that was booked for it will happen."""
        if life.is_over:
            return
        life.is_over = True
        self._accounts.give_back([life.node], life.demand, for_job=False)
        self._ports.give_back(life.node, life.key)
        self.containers.release(life)
        self._on_busy(self._accounts.busy_nodes, now)

    # Pods are deleted

    def _stop(self, key: Key, now: Instant) -> None:
        """Stop a pod that was deleted: at once if it has ended, else as fast as it obeys."""
        pod, life = self._store.get(POD, key), self.lives.get(key)
        if pod is None or not is_being_deleted(pod):
            return
        if isinstance(life, PodLife) and not life.is_over:
            self.containers.stop(life, self._stopping.pod_stopped_at(pod, life.disks, now), self._stopped, now)
        elif isinstance(life, Course):
            self._break_off(life, now)
            stop = functools.partial(self._stopped_in, life, key)
            self._agenda.book(self._stopping.pod_stopped_at(pod, {}, now), Rank.FINISH, stop)
        elif node_of_pod(pod) not in self._absent:
            self.remove(key, pod["metadata"]["uid"], now)

    def _stopped(self, life: PodLife, now: Instant) -> None:
        if life.is_over:
            return
        self.containers.end_all(life, now)
        self._conclude_pod(life, now)
        self.containers.remove(life.key, life.uid, now)

    def _stopped_in(self, course: Course, key: Key, now: Instant) -> None:
        if self.lives.get(key) is course:
            self.forget([key], now)
            self.remove(key, self._store.objects(POD, [key])[0]["metadata"]["uid"], now)

    def remove(self, key: Key, uid: str, now: Instant) -> None:
        """Let the API forget a pod that has ended; it is gone, or waits for its finalizers."""
        place, pod = self._courses.place(key), self._store.objects(POD, [key])[0]
        if self._containers is None or (place is not None and not place[0].is_owned):
            self._store.delete(POD, [key], now, author=self)
            return
        if place is not None and not is_finished(pod):
            # What ends because it was deleted has failed, and whoever counts it must see that before it is gone.
            self._course_pods.end([key], TERMINATED, now)
        self._containers.remove(key, uid, now)

    def lose(self, key: Key, now: Instant) -> None:
        """Write that a pod of a course was lost with its node."""
        self._course_pods.end([key], LOST, now, NODE_LOST)

    def forget(self, keys: Sequence[Key], now: Instant) -> None:
        """Let go of pods that are gone, or that somebody else ended."""
        for key in keys:
            life = self.lives[key]
            if isinstance(life, Course):
                self._break_off(life, now)
                self._release(life, [life.keys.index(key)], now)
            else:
                del self.lives[key]
                self._release_pod(life, now)
                self._resizes.leave(life, now)

    def _break_off(self, course: Course, now: Instant) -> None:
        """End a course before its time: without one of its pods it cannot go on."""
        if course.ended is None and course.broken is None:
            course.broken = now
        if course.end_appointment is not None:
            self._agenda.cancel(course.end_appointment)
            course.end_appointment = course.state = None
        elif course.ended is None:
            self.conductor.broken(course, now)

    @property
    def conductor(self) -> Conductor:
        """Who knows the courses, where there are any."""
        assert self._conductor is not None, "courses come with somebody who knows them"
        return self._conductor

    @property
    def containers(self) -> Containers:
        """Who runs what is in pods that have no part in a course, where there are any."""
        assert self._containers is not None, "such pods come with somebody who knows what they do"
        return self._containers
