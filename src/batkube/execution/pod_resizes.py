"""Pods that are given other amounts of cpu and memory while they run (`kubectl patch --subresource resize`).

    wanted (the spec) ─▶ allocated, if the node has room ─▶ actual, in every container that runs ─▶ done
                      ├▶ Deferred: it has none now; tried again when a pod leaves or shrinks, or after three minutes
                      └▶ Infeasible: it could never have

What is allocated counts on the node from that moment on; what is wanted is counted by schedulers. A container gets its
new amounts while it runs, unless its resize policy wants it to be started anew. A limit is not lowered below the memory
that is in use: that is tried again. Kubernetes: pkg/kubelet, allocation/allocation_manager.go for what a node grants,
kuberuntime/kuberuntime_manager.go (computePodResizeAction, doPodResizeAction) for what containers get.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from batkube.cluster.event_recorder import EventNote
from batkube.cluster.mapping import POD
from batkube.cluster.references import Condition
from batkube.cluster.resources import Amounts, spec_demand
from batkube.cluster.store import Key, KubeObject
from batkube.cluster.world import World
from batkube.execution.node_accounts import NodeAccounts
from batkube.execution.pod_lives import ContainerLife, PodLife, Stage, resources_in
from batkube.execution.pod_statuses import RESIZE_IN_PROGRESS, RESIZE_PENDING
from batkube.kernel.agenda import Rank
from batkube.kernel.instants import Duration, Instant, rfc3339, seconds
from batkube.kernel.quantities import CPU, MEMORY, amount

if TYPE_CHECKING:
    from batkube.execution.absent_nodes import Life
    from batkube.execution.containers import Containers

#: After how long a kubelet looks at resizes again that its node had no room for (retryDelay).
_RETRY: Duration = seconds(180)
#: After how long it tries again what a container did not take (backOffPeriod, without its jitter).
_BACK_OFF: Duration = seconds(10)
_SINCE = "lastTransitionTime"


class PodResizes:
    """Gives the pods of all nodes the resources that their specs ask for, as far as there is room."""

    def __init__(self, world: World, accounts: NodeAccounts, containers: Containers, lives: Mapping[Key, Life]) -> None:
        self._store = world.store
        self._agenda = world.agenda
        self._accounts = accounts
        self._containers = containers
        self._lives = lives
        #: By node, the pods that may get what they want when it has room for it.
        self._waiting: dict[str, dict[Key, PodLife]] = {}
        #: By node, the appointment to look at them again.
        self._retries: dict[str, int] = {}

    def heed(self, life: PodLife, pod: KubeObject, now: Instant) -> None:
        """Arrange for what follows from a change of a pod: of its containers, and of their resources."""
        if self._containers.heed(life, pod, now):
            self.compare(life, pod, now)

    def compare(self, life: PodLife, pod: KubeObject, now: Instant) -> None:
        """Arrange for what follows when the spec of a pod asks for other resources than before."""
        wanted = resources_in(pod)
        if wanted != life.wanted:
            life.wanted = wanted
            if "resize" not in life.appointments:
                self._containers.appointments.book(life, "resize", now, Rank.START, self._consider)

    def leave(self, life: PodLife, now: Instant) -> None:
        """Take note that a pod is gone: others may get what they want."""
        waiting = self._waiting.get(life.node)
        if waiting is not None:
            waiting.pop(life.key, None)
            self._book_retry(life.node, now)

    def _consider(self, life: PodLife, now: Instant) -> None:
        self._waiting.setdefault(life.node, {})[life.key] = life
        self._look(life.node, now)

    def _book_retry(self, node: str, at: Instant) -> None:
        """Look at the resizes of a node again at that time, and not before; if there are none, never."""
        number = self._retries.pop(node, None)
        if number is not None:
            self._agenda.cancel(number)
        if self._waiting.get(node):
            self._retries[node] = self._agenda.book(at, Rank.START, functools.partial(self._retry, node))
        else:
            self._waiting.pop(node, None)

    def _retry(self, node: str, now: Instant) -> None:
        del self._retries[node]
        self._look(node, now)

    def _look(self, node: str, now: Instant) -> None:
        """Grant what can be granted on a node, to those first that ask for no more than they have."""
        waiting = self._waiting[node]
        for life in sorted(waiting.values(), key=self._turn):
            pod = self._store.get(POD, life.key)
            is_here = self._lives.get(life.key) is life and not life.is_over and not life.is_stopping
            if pod is None or not is_here or not self._decide(life, pod, now):
                del waiting[life.key]
        self._book_retry(node, Instant(now + _RETRY))

    def _turn(self, life: PodLife) -> tuple[bool, int, bool, str]:
        """Return whose turn it is first (Kubernetes: allocation manager, sortPendingResizes)."""
        pod = self._store.get(POD, life.key) or {"spec": {}, "status": {}}
        has, wants = dict(life.demand), spec_demand(pod["spec"])
        grows = any(wants.get(resource, 0) > has.get(resource, 0) for resource in (CPU, MEMORY))
        is_guaranteed = pod["status"].get("qosClass") == "Guaranteed"
        # A time that no text comes after stands for a resize that nobody has looked at yet.
        since = life.resize.get(RESIZE_PENDING, {}).get(_SINCE, "~")
        return (grows, -pod["spec"].get("priority", 0), not is_guaranteed, since) if grows else (False, 0, False, "")

    # What a node grants

    def _decide(self, life: PodLife, pod: KubeObject, now: Instant) -> bool:
        """Give a pod what it wants, or say why not; return whether it may be given it later."""
        before = dict(life.resize)
        if [one.allocated for one in life.containers()] == resources_in(pod):
            life.resize.pop(RESIZE_PENDING, None)
            if before != life.resize:
                self._containers.report(life, now)
            return False
        demand = spec_demand(pod["spec"])
        if problem := self._too_much(life.node, demand):
            self._set(life, RESIZE_PENDING, pod, now, "Infeasible", problem)
        elif shortage := self._accounts.exchange(life.node, life.demand, tuple(demand.items())):
            self._set(life, RESIZE_PENDING, pod, now, "Deferred", str(shortage))
        else:
            self._allocate(life, pod, demand, now)
            return False
        if before != life.resize:
            self._containers.report(life, now)
        return not problem

    def _too_much(self, node: str, demand: Amounts) -> str:
        """Return what a node could never give (Kubernetes: allocation manager, canResizePod)."""
        for resource in (MEMORY, CPU):
            capacity = self._accounts.offered(node, resource)
            if demand.get(resource, 0) > capacity:
                wish = f"{resource}, requested: {demand[resource]}, capacity: {capacity}"
                return f"Node didn't have enough capacity: {wish}"
        return ""

    def _allocate(self, life: PodLife, pod: KubeObject, demand: Amounts, now: Instant) -> None:
        self._accounts.record(now)
        life.demand = tuple(demand.items())
        for one, resources in zip(life.containers(), resources_in(pod), strict=True):
            one.allocated = resources
        life.resize.clear()
        self._set(life, RESIZE_IN_PROGRESS, pod, now)
        self._containers.report(life, now)
        self._actuate(life, now)

    # What containers get

    def _actuate(self, life: PodLife, now: Instant) -> None:
        """Let the containers that run have what is allocated to them, or say why they cannot."""
        pod = self._store.get(POD, life.key)
        if pod is None:
            return
        self._containers.appointments.cancel(life, "actuate")
        resized = [one for one in life.containers() if one.stage is Stage.RUNNING and one.actual != one.allocated]
        if problem := _below_use(life, resized, now):
            self._set(life, RESIZE_IN_PROGRESS, pod, now, "Error", problem)
            self._containers.appointments.book(life, "actuate", Instant(now + _BACK_OFF), Rank.START, self._actuate)
        else:
            for one in resized:
                if _must_restart(pod, one):
                    self._containers.start_anew(life, one, "resize requires restart", now)
                else:
                    one.resize(now)
                    self._containers.book_end(life, one, now)
            del life.resize[RESIZE_IN_PROGRESS]
            self._containers.tell(pod, EventNote("Normal", "ResizeCompleted", _completed(life)), now)
        self._containers.report(life, now)

    def _set(
        self, life: PodLife, kind: str, pod: KubeObject, now: Instant, reason: str = "", message: str = ""
    ) -> None:
        """Set a condition of a resize; when it was last probed tells when it was last set, as in Kubernetes."""
        old = life.resize.get(kind) or {}
        observed = pod["metadata"].get("generation")
        condition: Condition = {
            "type": kind,
            "status": "True",
            "reason": reason,
            "message": message,
            "lastProbeTime": rfc3339(now),
            _SINCE: rfc3339(now) if old.get("reason", "") != reason else old.get(_SINCE, rfc3339(now)),
            "observedGeneration": old.get("observedGeneration", observed) if kind == RESIZE_IN_PROGRESS else observed,
        }
        life.resize[kind] = {name: value for name, value in condition.items() if value}


def _must_restart(pod: KubeObject, one: ContainerLife) -> bool:
    """Return whether a container's own policy wants it to be started anew with its new resources."""
    spec = next(spec for spec in pod["spec"][one.field] if spec["name"] == one.name)
    wanting = [
        each["resourceName"] for each in spec.get("resizePolicy") or () if each["restartPolicy"] != "NotRequired"
    ]
    return any(
        (one.actual.get(part) or {}).get(resource) != (one.allocated.get(part) or {}).get(resource)
        for resource in wanting
        for part in ("requests", "limits")
    )


def _below_use(life: PodLife, resized: list[ContainerLife], now: Instant) -> str:
    """Return which limits would be below the memory in use (Kubernetes: validateMemoryResizeAction)."""
    use, problems = sum(_use(one, now) for one in life.main), []
    old, new = _pod_limit([one.actual for one in life.main]), _pod_limit([one.allocated for one in life.main])
    if new is not None and (old is None or new < old) and use >= new:
        problems.append(f"attempting to set pod memory limit ({new}) below current usage ({use})")
    for one in resized:
        low, high = _memory_limit(one.allocated), _memory_limit(one.actual)
        if low is not None and (high is None or low < high) and _use(one, now) >= low:
            problems.append(
                f'attempting to set container "{one.name}" memory limit ({low}) below current usage ({use})'
            )
    told = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
    return f"cannot decrease memory limits: {told}" if problems else ""


def _use(one: ContainerLife, now: Instant) -> int:
    if one.plan.memory is None or one.started is None or one.stage is not Stage.RUNNING:
        return 0
    return one.plan.memory.at(Duration(now - one.started))


def _memory_limit(resources: KubeObject) -> int | None:
    limit = (resources.get("limits") or {}).get(MEMORY)
    return None if limit is None else amount(MEMORY, limit)


def _pod_limit(resources: list[KubeObject]) -> int | None:
    """Return the limit of a pod as a whole: there is one if each container has one."""
    limits = [limit for one in resources if (limit := _memory_limit(one)) is not None]
    return sum(limits) if len(limits) == len(resources) else None


def _completed(life: PodLife) -> str:
    """Return what the event of a resize says, with the new resources as Go writes them."""

    def described(containers: list[ContainerLife]) -> Iterator[KubeObject]:
        for one in containers:
            parts = {part: one.allocated[part] for part in ("limits", "requests") if one.allocated.get(part)}
            yield {"name": one.name, "resources": parts}

    summary = {"initContainers": list(described(life.init)), "containers": list(described(life.main))}
    text = json.dumps({key: value for key, value in summary.items() if value}, separators=(",", ":"))
    return f"Pod resize completed: {text}"
