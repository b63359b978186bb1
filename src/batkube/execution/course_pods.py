"""The statuses of pods of courses, which their kubelets write as they do those of any other pod.

Where only an in-process policy looks at pods, nothing of a status is read but the phase of one that has ended: then
that is all there is, one status for all pods of a course.
"""

from __future__ import annotations

from collections.abc import Sequence

from batkube.cluster.courses import Course
from batkube.cluster.mapping import NODE, POD
from batkube.cluster.outcomes import FinalState
from batkube.cluster.store import DELETED, Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.execution.addresses import AddressPool, address_of
from batkube.execution.container_runs import KILLED, ContainerPlan
from batkube.execution.pod_lives import PodLife
from batkube.execution.pod_statuses import DEADLINE_EXCEEDED, status_of
from batkube.kernel.instants import Instant

#: Its end is that of the course.
_UNTIL_STOPPED = ContainerPlan(None)
_FAILED = 1


class CoursePods:
    """Writes the statuses of pods of courses."""

    def __init__(self, world: World, addresses: AddressPool | None, author: object) -> None:
        """`addresses` is None where nothing but phases is read; `author` is not notified of the writes."""
        self._store = world.store
        self._addresses = addresses
        self._author = author
        #: Pods that have come up and are not deleted.
        self._lives: dict[Key, PodLife] = {}
        if addresses is not None:
            world.store.listen(POD, self._on_pods)

    def _on_pods(self, batch: Batch, now: Instant) -> None:
        if batch.type is DELETED:
            for key in batch.keys:
                self._lives.pop(key, None)

    def come_up(self, course: Course, ranks: Sequence[int], now: Instant) -> None:
        """Write that pods run."""
        if self._addresses is None:
            return
        keys = self._store.existing(POD, [course.keys[rank] for rank in ranks])
        pods = self._store.objects(POD, keys)
        accepted = {course.keys[rank]: course.scheduled[rank] for rank in ranks}
        statuses = [self._started(key, pod, accepted[key] or now, now) for key, pod in zip(keys, pods, strict=True)]
        self._write(keys, pods, statuses, now)

    def _started(self, key: Key, pod: KubeObject, accepted: Instant, now: Instant) -> KubeObject:
        life = self._lives[key] = PodLife(key, pod, (), accepted)
        life.host_ip = address_of(self._store.get(NODE, Key(life.node)))
        life.has_sandbox = True
        assert self._addresses is not None
        life.pod_ip = self._addresses.take()
        for one in life.main:
            one.start(_UNTIL_STOPPED, None, now)
            one.come_up()
            one.is_ready = True
        return status_of(pod, life, now)

    def conclude(self, course: Course, ranks: Sequence[int], now: Instant) -> None:
        """Write that pods have ended as their course did."""
        keys = [course.keys[rank] for rank in ranks]
        if course.state is FinalState.WALLTIME:
            self.end(keys, KILLED, now, *DEADLINE_EXCEEDED)
        else:
            self.end(keys, 0 if course.state is FinalState.SUCCESS else _FAILED, now)

    def end(self, keys: Sequence[Key], exit_code: int, now: Instant, reason: str = "", message: str = "") -> None:
        """Write that pods, as far as they are still there, have ended with this exit code, or never came up."""
        keys = self._store.existing(POD, keys)
        if self._addresses is None:
            status = {"phase": "Failed" if exit_code else "Succeeded"} | ({"reason": reason} if reason else {})
            self._store.set_status(POD, keys, status, now, author=self._author)
            return
        pods = self._store.objects(POD, keys)
        statuses = [self._ended(key, pod, exit_code, now, reason, message) for key, pod in zip(keys, pods, strict=True)]
        self._write(keys, pods, statuses, now)

    def _ended(
        self, key: Key, pod: KubeObject, exit_code: int, now: Instant, reason: str, message: str
    ) -> KubeObject:
        life = self._lives.get(key)
        if life is None:
            words = {name: text for name, text in (("reason", reason), ("message", message)) if text}
            return {**pod["status"], "phase": "Failed", **words}
        for one in life.main:
            one.end(exit_code, now)
        life.is_over, life.reason, life.message = True, reason, message
        return status_of(pod, life, now)

    def release(self, keys: Sequence[Key]) -> None:
        """Give back the addresses of pods whose nodes are rid of them."""
        for key in keys if self._addresses is not None else ():
            if (life := self._lives.get(key)) is not None and self._addresses is not None:
                self._addresses.give_back(life.pod_ip)

    def _write(
        self, keys: Sequence[Key], pods: Sequence[KubeObject], statuses: Sequence[KubeObject], now: Instant
    ) -> None:
        changed = [{**pod, "status": status} for pod, status in zip(pods, statuses, strict=True)]
        self._store.replace(POD, keys, changed, now, author=self._author)
