"""What goes on inside pods that anybody makes: containers come up, are probed, exit, are restarted and are stopped.

    init containers, one after the other ─▶ all others ⇄ CrashLoopBackOff ─▶ ended

Every step is shown in the pod's status and in events, as the real kubelet shows it (Kubernetes: pkg/kubelet,
kuberuntime_manager.go). Admission, resources and deletion are the kubelet's (`kubelets`).
"""

from __future__ import annotations

import contextlib
import functools

from batkube.cluster.client import Client, Refused
from batkube.cluster.event_recorder import EventNote, EventRecorder
from batkube.cluster.mapping import NODE, POD
from batkube.cluster.pods import node_of_pod
from batkube.cluster.store import Key, KubeObject
from batkube.cluster.world import World
from batkube.execution.addresses import AddressPool, address_of
from batkube.execution.appointments import Appointments, LifeAction
from batkube.execution.config_sources import ConfigSources
from batkube.execution.container_plans import plan_of
from batkube.execution.container_runs import KILLED, LOST, TERMINATED, Role
from batkube.execution.container_troubles import Trouble, trouble_of
from batkube.execution.pod_lives import ContainerLife, PodLife, Stage, known_of
from batkube.execution.pod_statuses import DEADLINE_EXCEEDED, rejected_status, status_of
from batkube.execution.probes import ProbeKind, probes_of
from batkube.execution.probing import ContainerActions, Probing
from batkube.execution.scripts.surroundings import CLAIM, Files, Mounts, pod_files
from batkube.execution.stopping import Stopping, active_deadline_of, grace_of
from batkube.execution.undescribed import note_guess
from batkube.kernel.agenda import Rank
from batkube.kernel.instants import Duration, Instant, seconds
from batkube.kernel.time_text import format_duration
from batkube.workloads.rules import PROBES, ContainerRules

#: Simulated pods live here; services have 10.96.0.0/12.
POD_NETWORK = "10.128.0.0/9"

#: What is booked for a container that runs, each with its name.
_WHILE_IT_RUNS = ("end", "kill", *PROBES)


class Containers:
    """Runs the containers of pods, and writes what becomes of them."""

    def __init__(
        self, world: World, client: Client, events: EventRecorder, rules: ContainerRules | None = None
    ) -> None:
        self._store = world.store
        self._agenda = world.agenda
        self.appointments = Appointments(world.agenda)
        self._client = client
        self._events = events
        self._rules = rules or ContainerRules((), world.streams)
        self.addresses = AddressPool(POD_NETWORK)
        self._files = Files()
        for kind in (CLAIM, NODE):
            world.store.listen(kind, self._files.forget_gone)
        self._sources = ConfigSources(world)
        actions = ContainerActions(self.report, self._go_on, self._tell_of, self._end_unhealthy)
        self._probing = Probing(self.appointments, actions, world.notes)
        self._stopping = Stopping(world.notes)
        self._notes = world.notes
        #: Told when the last container of a pod has ended.
        self.on_end: LifeAction = lambda life, now: None

    # A pod comes up

    def admitted(self, life: PodLife, pod: KubeObject, now: Instant) -> None:
        """Show that a pod was taken up by its node."""
        life.host_ip = address_of(self._store.get(NODE, Key(life.node)))
        self.report(life, now)
        self._book_deadline(life, pod, now)

    def _book_deadline(self, life: PodLife, pod: KubeObject, now: Instant) -> None:
        """Book the end of a pod that may not run for ever; it is counted from when the kubelet took it up."""
        deadline = active_deadline_of(pod)
        if deadline != life.deadline:
            life.deadline = deadline
            self.appointments.cancel(life, "deadline")
            if deadline is not None:
                ends = max(now, Instant(life.accepted + deadline))
                self.appointments.book(life, "deadline", ends, Rank.FINISH, self._exceed_deadline)

    def book_rejection(self, pod: KubeObject, reason: str, message: str, now: Instant) -> None:
        """Arrange for it to be said that a pod is not admitted."""

        def reject(now: Instant) -> None:
            self.tell(pod, EventNote("Warning", reason, message), now)
            self._write(pod, rejected_status(pod, reason, message), now)

        self._agenda.book(now, Rank.START, reject)

    def heed(self, life: PodLife, pod: KubeObject, now: Instant) -> bool:
        """Arrange for what follows from a change of a pod that is here, if it is news: its deadline, its containers."""
        known = known_of(pod)
        if life.is_stopping or "admitted" in life.appointments or known == life.known:
            return False
        life.known = known
        self._book_deadline(life, pod, now)
        life.know_ephemeral(pod)
        can_start = any(one.started is None for one in life.ephemeral) or any(
            (one.stage is Stage.WAITING and one.trouble) or one.has_other_image(pod) for one in life.containers()
        )
        if can_start and life.has_sandbox and "heed" not in life.appointments:
            self.appointments.book(life, "heed", now, Rank.START, self._follow_changes)
        return True

    def _follow_changes(self, life: PodLife, now: Instant) -> None:
        """Start containers anew whose image is another now, whatever the restart policy, and what may start at last.

        Kubernetes: pkg/kubelet/kuberuntime/kuberuntime_manager.go, computePodActions.
        """
        pod = self._store.get(POD, life.key)
        for one in life.containers():
            if pod is not None and not one.trouble and one.has_other_image(pod):
                self.start_anew(life, one, "definition changed, will be restarted", now)
        self._go_on(life, now)

    def start_anew(self, life: PodLife, one: ContainerLife, why: str, now: Instant) -> None:
        """End a container, if it runs, and start it again."""
        if one.stage is Stage.RUNNING:
            self._tell_of(life, one, EventNote("Normal", "Killing", f"Container {one.name} {why}"), now)
            one.end(TERMINATED, now)
            one.last_run = one.ended_run
        self.appointments.cancel(life, *(f"{what} {one.name}" for what in (*_WHILE_IT_RUNS, "restart", "calm")))
        self._start(life, one, now)

    def begin(self, life: PodLife, now: Instant) -> None:
        """The sandbox is there: the pod has its address, and containers may start."""
        pod = self._store.get(POD, life.key)
        life.has_sandbox = True
        is_on_host = pod is not None and pod["spec"].get("hostNetwork")
        life.pod_ip = life.host_ip if is_on_host else self.addresses.take()
        self._go_on(life, now)

    def _go_on(self, life: PodLife, now: Instant) -> None:
        """Start what may start now: the next init container, or all ordinary ones."""
        for one in life.init:
            self._start_first(life, one, now)
            if not one.is_done:
                break
        else:
            for one in life.main:
                self._start_first(life, one, now)
        for one in life.ephemeral:
            self._start_first(life, one, now)
        self.report(life, now)

    def _start_first(self, life: PodLife, one: ContainerLife, now: Instant) -> None:
        if one.stage is Stage.WAITING and (one.started is None or one.trouble):
            self._start(life, one, now)

    def _start(self, life: PodLife, one: ContainerLife, now: Instant) -> None:
        pod = self._store.get(POD, life.key)
        if pod is None:
            return
        spec = one.spec_in(pod)
        run = 0 if one.started is None else one.restarts + 1
        rule = self._rules.conduct(pod, spec, run, is_init=one.is_init)
        trouble = trouble_of(pod, spec, rule)
        if trouble is not None:
            self._wait_with(life, one, trouble, now)
            return
        self.appointments.cancel(life, f"restart {one.name}")
        one.trouble = ""
        one.image = spec.get("image", "")
        pulled = f'Container image "{one.image}" already present on machine'
        self._tell_of(life, one, EventNote("Normal", "Pulled", pulled), now)
        self._tell_of(life, one, EventNote("Normal", "Created", f"Created container: {one.name}"), now)
        self._tell_of(life, one, EventNote("Normal", "Started", f"Started container {one.name}"), now)
        start = self._sources.environment_of(pod, spec)
        disk = Mounts(self._files, pod, spec, now)
        plan = plan_of(pod, spec, role=one.role, rule=rule, environment=start, disk=disk)
        if (guess := note_guess(self._notes, life.key, one, plan)) is not None:
            self._tell_of(life, one, guess, now)
        one.start(plan, disk, now)
        self._probing.begin(life, one, probes_of(spec, rule.health, start, disk, now), now)
        self.book_end(life, one, now)

    def book_end(self, life: PodLife, one: ContainerLife, now: Instant) -> None:
        """Book when a container that runs will end, within the limits that it has."""
        self.appointments.cancel(life, f"end {one.name}")
        length = one.limited_plan.length
        if length is not None and one.started is not None:
            ends = max(now, Instant(one.started + length))
            self.appointments.book(life, f"end {one.name}", ends, Rank.FINISH, functools.partial(self._end, one=one))

    def _wait_with(self, life: PodLife, one: ContainerLife, trouble: Trouble, now: Instant) -> None:
        """Say why a container cannot be started, and try again: a moment later, then ever more seldom."""
        for note in trouble.events:
            self._tell_of(life, one, note, now)
        one.trouble = trouble.reason
        one.wait(trouble.reason, trouble.message)
        retry = Instant(now + one.next_try(trouble))
        if trouble.later is not None:
            later = trouble.later

            def calm_down(life: PodLife, now: Instant) -> None:
                if one.trouble:
                    one.wait(*later)
                    self.report(life, now)

            self.appointments.book(life, f"calm {one.name}", Instant(now + seconds(1)), Rank.START, calm_down)
        restart = functools.partial(self._restart, one=one)
        self.appointments.book(life, f"restart {one.name}", retry, Rank.START, restart)

    # Containers end

    def _end(self, life: PodLife, now: Instant, *, one: ContainerLife) -> None:
        """A container's process exits."""
        one.exit(now)
        self._follow_end(life, one, now)

    def _end_unhealthy(self, life: PodLife, one: ContainerLife, kind: ProbeKind, now: Instant) -> None:
        """Have a container end because of what a probe found out; it may take its time, as when its pod is deleted."""
        if (pod := self._store.get(POD, life.key)) is None:
            return
        who = "Init container" if one.is_init else "Container"
        restarts = "" if one.is_init or life.restart_policy == "Never" else ", will be restarted"
        message = f"{who} {one.name} failed {kind.title} probe{restarts}"
        self._tell_of(life, one, EventNote("Normal", "Killing", message), now)
        spec = one.spec_in(pod)
        wait = self._stopping.time_of(pod, spec, one.disk, grace_of(pod, spec[kind.value]), now)
        kill = functools.partial(self._kill, one=one)
        self.appointments.book(life, f"kill {one.name}", Instant(now + wait), Rank.FINISH, kill)

    def _kill(self, life: PodLife, now: Instant, *, one: ContainerLife) -> None:
        one.end(TERMINATED, now)
        self._follow_end(life, one, now)

    def _follow_end(self, life: PodLife, one: ContainerLife, now: Instant) -> None:
        """A container has ended: it is started again, or lets others start, or was the last."""
        self.appointments.cancel(life, *(f"{what} {one.name}" for what in _WHILE_IT_RUNS))
        if one.role is Role.EPHEMERAL:
            self.report(life, now)
            return
        if not one.restarts_after(life.restart_policy):
            if one.is_init and one.exit_code == 0:
                self._go_on(life, now)
            elif one.is_init or all(main.stage is Stage.TERMINATED for main in life.main):
                self._complete(life, now)
            else:
                self.report(life, now)
            return
        if wait := one.back_off(now):
            self._back_off(life, one, wait, now)
        else:
            one.last_run = one.ended_run
            self._start(life, one, now)
        self.report(life, now)

    def _back_off(self, life: PodLife, one: ContainerLife, wait: Duration, now: Instant) -> None:
        namespace, _, name = life.key.partition("/")
        who = f"{name}_{namespace}({life.uid})"
        one.wait(
            "CrashLoopBackOff", f"back-off {format_duration(wait)} restarting failed container={one.name} pod={who}"
        )
        message = f"Back-off restarting failed container {one.name} in pod {who}"
        self._tell_of(life, one, EventNote("Warning", "BackOff", message), now)
        restart = functools.partial(self._restart, one=one)
        self.appointments.book(life, f"restart {one.name}", Instant(now + wait), Rank.START, restart)

    def _restart(self, life: PodLife, now: Instant, *, one: ContainerLife) -> None:
        self._start(life, one, now)
        self.report(life, now)

    def _complete(self, life: PodLife, now: Instant) -> None:
        for one in life.containers():
            one.end(TERMINATED if not one.is_sidecar else 0, now)
        self._conclude(life, now)

    def _conclude(self, life: PodLife, now: Instant) -> None:
        """Nothing more happens to a pod whose containers have ended."""
        self.appointments.cancel_all(life)
        self.on_end(life, now)

    def _exceed_deadline(self, life: PodLife, now: Instant) -> None:
        life.reason, life.message = DEADLINE_EXCEEDED
        pod = self._store.get(POD, life.key)
        if pod is not None:
            self.tell(pod, EventNote("Normal", life.reason, life.message), now)
        self.end_all(life, now, KILLED)
        self._conclude(life, now)

    def lose(self, life: PodLife, now: Instant) -> None:
        """Say of a pod that is not started again that its processes were lost with its node."""
        self.end_all(life, now, LOST)
        self.report(life, now)

    # A pod is stopped

    def stop(self, life: PodLife, due: Instant, stopped: LifeAction, now: Instant) -> None:
        """Tell the containers to end, which they will have done when `due`; nothing else happens to them until then."""
        if not life.is_stopping:
            life.is_stopping = True
            self.appointments.cancel_all(life)
            for one in (*life.containers(), *life.ephemeral):
                if one.stage is Stage.RUNNING:
                    self._tell_of(life, one, EventNote("Normal", "Killing", f"Stopping container {one.name}"), now)
        self.appointments.book(life, "stopped", due, Rank.FINISH, stopped)

    def end_all(self, life: PodLife, now: Instant, exit_code: int = TERMINATED) -> None:
        """End every container that runs."""
        for one in (*life.containers(), *life.ephemeral):
            one.end(exit_code, now)

    def release(self, life: PodLife) -> None:
        """Drop what was booked for the pod, and give back its address."""
        self.appointments.cancel_all(life)
        self._files.forget(pod_files(life.uid))
        if life.pod_ip and life.pod_ip != life.host_ip:
            self.addresses.give_back(life.pod_ip)

    def remove(self, key: Key, uid: str, now: Instant) -> None:
        """Let the API forget the pod; it is gone, or waits for its finalizers."""
        with contextlib.suppress(Refused):
            self._client.delete(POD, key, now, grace_s=0, uid=uid)

    # Writing and remembering

    def report(self, life: PodLife, now: Instant) -> None:
        """Write the pod's status as it is now."""
        if (pod := self._store.get(POD, life.key)) is not None:
            self._write(pod, status_of(pod, life, now), now)

    def _write(self, pod: KubeObject, status: KubeObject, now: Instant) -> None:
        if status != pod.get("status"):
            with contextlib.suppress(Refused):
                self._client.update(POD, {**pod, "status": status}, now, subresource="status")

    def _tell_of(self, life: PodLife, one: ContainerLife, note: EventNote, now: Instant) -> None:
        pod = self._store.get(POD, life.key)
        if pod is not None:
            self.tell(pod, note._replace(field_path=f"spec.{one.field}{{{one.name}}}"), now)

    def tell(self, pod: KubeObject, note: EventNote, now: Instant) -> None:
        """Record an event of a pod, as its node's kubelet."""
        self._events.record(pod, POD, note._replace(host=node_of_pod(pod)), now)
