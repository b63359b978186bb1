"""The kubelets of a served cluster: pods that anybody makes come up, run, restart, finish and are stopped.

    bound ─▶ admitted (or rejected: OutOf…) ─▶ init containers ─▶ Running ⇄ CrashLoopBackOff ─▶ Succeeded / Failed
    deleted ─▶ containers stop ─▶ gone

Where `execution.kubelets` runs the gangs of a workload and clears them away, these know nothing of jobs, show every
step in the pod's status as the real kubelet does, and leave a finished pod where it is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from batkube.cluster.client import Client, Refused
from batkube.cluster.event_recorder import EventRecorder, EventType
from batkube.cluster.pods import is_finished, node_of_pod
from batkube.cluster.references import is_being_deleted
from batkube.cluster.resources import demand_of
from batkube.cluster.store import ADDED, DELETED, Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.execution.addresses import AddressPool
from batkube.execution.latencies import Delays
from batkube.execution.node_accounts import ServedAccounts
from batkube.execution.pod_lives import KILLED, TERMINATED, ContainerLife, PodLife, Stage
from batkube.execution.pod_statuses import rejected_status, status_of
from batkube.execution.stopping import active_deadline_of, stop_time_of
from batkube.kernel.agenda import Rank
from batkube.kernel.instants import Duration, Instant, seconds

POD, NODE = "pods", "nodes"
#: Simulated pods live here; services have 10.96.0.0/12.
POD_NETWORK = "10.128.0.0/9"


class ServedKubelets:
    """Runs pods on every node of the store."""

    def __init__(self, world: World, client: Client, events: EventRecorder, delays: Delays | None = None) -> None:
        """`delays` is None when nothing is delayed."""
        self._store = store = world.store
        self._agenda = world.agenda
        self._client = client
        self._events = events
        self._delays = delays
        self._accounts = ServedAccounts()
        self._addresses = AddressPool(POD_NETWORK)
        #: The pods that a kubelet knows and that are not gone.
        self._lives: dict[Key, PodLife] = {}
        #: Pods bound to a node that is not there, by its name. Dicts for their order.
        self._homeless: dict[str, dict[Key, None]] = {}
        store.listen(POD, self._hear)
        store.listen(NODE, self._hear_node)

    # What it hears

    def _hear(self, batch: Batch, now: Instant) -> None:
        for key, pod in zip(batch.keys, batch.objects, strict=True):
            life = self._lives.get(key)
            if life is not None and (batch.type is DELETED or life.uid != pod["metadata"]["uid"]):
                self._forget(life)
                life = None
            if batch.type is DELETED:
                continue
            if is_being_deleted(pod):
                if node_of_pod(pod):
                    self._agenda.book(now, Rank.FINISH, functools.partial(self._stop, key))
            elif life is None and node_of_pod(pod) and not is_finished(pod):
                self._agenda.book(now, Rank.START, functools.partial(self._take_up, key))

    def _hear_node(self, batch: Batch, now: Instant) -> None:
        """Forget the pods of a node that is gone; take up those that wait for one that came."""
        for name in batch.keys:
            if batch.type is DELETED:
                for life in [one for one in self._lives.values() if one.node == name]:
                    self._homeless.setdefault(name, {})[life.key] = None
                    self._forget(life)
            elif batch.type is ADDED:
                for key in self._homeless.pop(name, {}):
                    self._agenda.book(now, Rank.START, functools.partial(self._take_up, key))

    # A pod comes up

    def _take_up(self, key: Key, now: Instant) -> None:
        """Admit a pod that was bound, or reject it."""
        pod = self._store.get(POD, key)
        if pod is None or key in self._lives or is_being_deleted(pod) or is_finished(pod):
            return
        node = self._store.get(NODE, Key(node_of_pod(pod)))
        if node is None:
            self._homeless.setdefault(node_of_pod(pod), {})[key] = None
            return
        demand = demand_of(pod)
        shortage = self._accounts.take(node, demand)
        if shortage is not None:
            reason = f"OutOf{shortage.resource}"
            self._tell(pod, "Warning", reason, str(shortage), now)
            self._write(pod, rejected_status(pod, reason, str(shortage)), now)
            return
        life = self._lives[key] = PodLife(key, pod, demand, now)
        life.host_ip = _address_of(node)
        self._report(life, now)
        container = pod["spec"]["containers"][0]
        starts = now if self._delays is None else self._delays.until_running(now, life.node, container)
        self._book(life, "begin", starts, Rank.START, self._begin)
        deadline = active_deadline_of(pod)
        if deadline is not None:
            self._book(life, "deadline", Instant(now + deadline), Rank.FINISH, self._exceed_deadline)

    def _begin(self, life: PodLife, now: Instant) -> None:
        """The sandbox is there: the pod has its address, and containers may start."""
        pod = self._store.get(POD, life.key)
        life.has_sandbox = True
        is_on_host = pod is not None and pod["spec"].get("hostNetwork")
        life.pod_ip = life.host_ip if is_on_host else self._addresses.take()
        self._go_on(life, now)

    def _go_on(self, life: PodLife, now: Instant) -> None:
        """Start what may start now: the next init container, or all ordinary ones."""
        for one in life.init:
            if one.stage is Stage.WAITING and one.started is None:
                self._start(life, one, now)
            if not one.is_done:
                break
        else:
            for one in life.main:
                if one.stage is Stage.WAITING and one.started is None:
                    self._start(life, one, now)
        self._report(life, now)

    def _start(self, life: PodLife, one: ContainerLife, now: Instant) -> None:
        pod = self._store.get(POD, life.key)
        if pod is None:
            return
        path = f"spec.{'initContainers' if one.is_init else 'containers'}{{{one.name}}}"
        for reason, message in (
            ("Pulled", f'Container image "{one.image}" already present on machine'),
            ("Created", f"Created container: {one.name}"),
            ("Started", f"Started container {one.name}"),
        ):
            self._tell(pod, "Normal", reason, message, now, field_path=path)
        one.start(now)
        if not one.is_ready:
            self._book_probes(life, one, now)
        if one.plan.length is not None:
            ends = Instant(now + one.plan.length)
            self._book(life, f"end {one.name}", ends, Rank.FINISH, functools.partial(self._end, one=one))

    def _book_probes(self, life: PodLife, one: ContainerLife, now: Instant) -> None:
        def come_up(life: PodLife, _now: Instant) -> None:
            one.is_up = True
            self._go_on(life, _now)

        def be_ready(life: PodLife, _now: Instant) -> None:
            one.is_up = one.is_ready = True
            self._report(life, _now)

        if 0 < one.started_after < one.ready_after or one.is_sidecar:
            self._book(life, f"up {one.name}", Instant(now + one.started_after), Rank.START, come_up)
        self._book(life, f"ready {one.name}", Instant(now + one.ready_after), Rank.START, be_ready)

    # Containers end

    def _end(self, life: PodLife, now: Instant, *, one: ContainerLife) -> None:
        """A container's process exits: it is started again, or lets others start, or was the last."""
        self._cancel(life, f"ready {one.name}", f"up {one.name}")
        one.end(one.plan.exit_code, now)
        if not one.restarts_after(life.restart_policy):
            if one.is_init and one.exit_code == 0:
                self._go_on(life, now)
            elif one.is_init or all(main.stage is Stage.TERMINATED for main in life.main):
                self._complete(life, now)
            else:
                self._report(life, now)
            return
        wait = one.back_off(now)
        if wait == 0:
            one.last_run = (one.started or now, now, one.exit_code)
            self._start(life, one, now)
        else:
            self._back_off(life, one, wait, now)
        self._report(life, now)

    def _back_off(self, life: PodLife, one: ContainerLife, wait: Duration, now: Instant) -> None:
        namespace, _, name = life.key.partition("/")
        who = f"{name}_{namespace}({life.uid})"
        one.wait("CrashLoopBackOff", f"back-off {_go_duration(wait)} restarting failed container={one.name} pod={who}")
        pod = self._store.get(POD, life.key)
        if pod is not None:
            path = f"spec.{'initContainers' if one.is_init else 'containers'}{{{one.name}}}"
            message = f"Back-off restarting failed container {one.name} in pod {who}"
            self._tell(pod, "Warning", "BackOff", message, now, field_path=path)
        restart = functools.partial(self._restart, one=one)
        self._book(life, f"restart {one.name}", Instant(now + wait), Rank.START, restart)

    def _restart(self, life: PodLife, now: Instant, *, one: ContainerLife) -> None:
        self._start(life, one, now)
        self._report(life, now)

    def _complete(self, life: PodLife, now: Instant) -> None:
        """The last container has ended; that becomes known, and the node has room again."""
        reported = now if self._delays is None else self._delays.until_reported(now)
        for one in life.containers():
            one.end(TERMINATED if not one.is_sidecar else 0, now)
        if reported == now:
            self._conclude(life, now)
        else:
            self._book(life, "report", reported, Rank.FINISH, self._conclude)

    def _conclude(self, life: PodLife, now: Instant) -> None:
        self._release(life)
        self._report(life, now)

    def _exceed_deadline(self, life: PodLife, now: Instant) -> None:
        life.reason = "DeadlineExceeded"
        life.message = "Pod was active on the node longer than the specified deadline"
        pod = self._store.get(POD, life.key)
        if pod is not None:
            self._tell(pod, "Normal", life.reason, life.message, now)
        for one in life.containers():
            one.end(KILLED, now)
        self._conclude(life, now)

    # A pod is deleted

    def _stop(self, key: Key, now: Instant) -> None:
        """Stop a pod that was deleted: at once if it has ended, else as fast as its containers obey."""
        pod, life = self._store.get(POD, key), self._lives.get(key)
        if pod is None or not is_being_deleted(pod):
            return
        if life is None or life.is_over:
            if self._store.get(NODE, Key(node_of_pod(pod))) is not None:
                self._remove(key, pod["metadata"]["uid"], now)
            return
        due = Instant(now + stop_time_of(pod, now))
        if life.is_stopping:
            self._cancel(life, "stopped")
        else:
            life.is_stopping = True
            self._cancel(life, *[name for name in life.appointments if name != "stopped"])
            for one in life.containers():
                if one.stage is Stage.RUNNING:
                    path = f"spec.{'initContainers' if one.is_init else 'containers'}{{{one.name}}}"
                    self._tell(pod, "Normal", "Killing", f"Stopping container {one.name}", now, field_path=path)
        self._book(life, "stopped", due, Rank.FINISH, self._stopped)

    def _stopped(self, life: PodLife, now: Instant) -> None:
        for one in life.containers():
            one.end(TERMINATED, now)
        self._conclude(life, now)
        self._remove(life.key, life.uid, now)

    def _remove(self, key: Key, uid: str, now: Instant) -> None:
        """Let the API forget the pod; it is gone, or waits for its finalizers."""
        try:
            self._client.delete(POD, key, now, grace_s=0, uid=uid)
        except Refused:
            return

    # Writing and remembering

    def _report(self, life: PodLife, now: Instant) -> None:
        pod = self._store.get(POD, life.key)
        if pod is not None:
            self._write(pod, status_of(pod, life, now), now)

    def _write(self, pod: KubeObject, status: KubeObject, now: Instant) -> None:
        if status == pod.get("status"):
            return
        try:
            self._client.update(POD, {**pod, "status": status}, now, subresource="status")
        except Refused:
            return

    def _tell(
        self, pod: KubeObject, kind: EventType, reason: str, message: str, now: Instant, *, field_path: str = ""
    ) -> None:
        host = node_of_pod(pod)
        self._events.record(pod, POD, kind, reason, message, now, field_path=field_path, host=host)

    def _book(
        self, life: PodLife, name: str, at: Instant, rank: Rank, action: Callable[[PodLife, Instant], None]
    ) -> None:
        def act(now: Instant) -> None:
            del life.appointments[name]
            action(life, now)

        life.appointments[name] = self._agenda.book(at, rank, act)

    def _cancel(self, life: PodLife, *names: str) -> None:
        for name in names:
            number = life.appointments.pop(name, None)
            if number is not None:
                self._agenda.cancel(number)

    def _release(self, life: PodLife) -> None:
        """Give back what the pod held of its node, once; nothing that was booked for it will happen."""
        self._cancel(life, *list(life.appointments))
        if life.is_over:
            return
        life.is_over = True
        self._accounts.give_back(life.node, life.demand)
        if life.pod_ip and life.pod_ip != life.host_ip:
            self._addresses.give_back(life.pod_ip)

    def _forget(self, life: PodLife) -> None:
        self._release(life)
        del self._lives[life.key]


def _address_of(node: KubeObject) -> str:
    addresses = node.get("status", {}).get("addresses") or ()
    return next((one["address"] for one in addresses if one["type"] == "InternalIP"), "")


def _go_duration(length: Duration) -> str:
    """Return a length as Go prints it: `10s`, `1m20s`."""
    minutes, rest = divmod(length // seconds(1), 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"
