"""What goes on inside pods that anybody makes: containers come up, are probed, exit, are restarted and are stopped.

    init containers, one after the other ─▶ all others ⇄ CrashLoopBackOff ─▶ ended

Every step is shown in the pod's status and in events, as the real kubelet shows it (Kubernetes: pkg/kubelet,
kuberuntime_manager.go). Admission, resources and deletion are the kubelet's (`kubelets`).
"""

from __future__ import annotations

import contextlib
import functools

from batkube.cluster.client import ApiError, Client
from batkube.cluster.event_recorder import EventNote, EventRecorder
from batkube.cluster.mapping import NODE, POD
from batkube.cluster.pods.accessors import node_of_pod
from batkube.cluster.store import Key, KubeObject
from batkube.cluster.world import World
from batkube.execution.containers.config_sources import ConfigSources
from batkube.execution.containers.guesses import note_guess
from batkube.execution.containers.plans import plan_of
from batkube.execution.containers.prober import ContainerActions, Prober
from batkube.execution.containers.probes import ProbeKind, probes_of
from batkube.execution.containers.termination import TerminationDelays, active_deadline_of, grace_period_of
from batkube.execution.nodes.addresses import AddressPool, internal_ip_of
from batkube.execution.pods.appointments import PodAction, PodAppointments
from batkube.execution.pods.container_errors import StartFailure, start_failure_of
from batkube.execution.pods.container_plan import EXIT_KILLED, EXIT_LOST, EXIT_TERMINATED, ContainerRole
from batkube.execution.pods.state import ContainerState, PodState, Stage, relevant_fields_of
from batkube.execution.pods.status import DEADLINE_EXCEEDED, rejected_status, status_of
from batkube.execution.scripts.environment import CLAIM, ContainerFiles, VolumeFiles, pod_root
from batkube.kernel.agenda import Rank
from batkube.kernel.instants import Duration, Instant, seconds
from batkube.kernel.text.go_times import format_go_duration
from batkube.workloads.container_rules.rules import PROBES, ContainerRules

#: Simulated pods live here; services have 10.96.0.0/12.
POD_NETWORK = "10.128.0.0/9"

#: What is booked for a container that runs, each with its name.
_RUN_APPOINTMENTS = ("end", "kill", *PROBES)


class ContainerRuntime:
    """Runs the containers of pods, and writes what becomes of them."""

    def __init__(
        self, world: World, client: Client, events: EventRecorder, rules: ContainerRules | None = None
    ) -> None:
        self._store = world.store
        self._agenda = world.agenda
        self.appointments = PodAppointments(world.agenda)
        self._client = client
        self._events = events
        self._rules = rules or ContainerRules((), world.streams)
        self.addresses = AddressPool(POD_NETWORK)
        self._files = VolumeFiles()
        for kind in (CLAIM, NODE):
            world.store.subscribe(kind, self._files.on_owners_changed)
        self._sources = ConfigSources(world)
        actions = ContainerActions(
            self.write_status, self._start_ready_containers, self._record_container_event, self._kill_unhealthy
        )
        self._prober = Prober(self.appointments, actions, world.notes)
        self._termination = TerminationDelays(world.notes)
        self._notes = world.notes
        #: Told when the last container of a pod has ended.
        self.on_pod_ended: PodAction = lambda life, now: None

    # A pod comes up

    def on_admitted(self, life: PodState, pod: KubeObject, now: Instant) -> None:
        """Show that a pod was taken up by its node."""
        life.host_ip = internal_ip_of(self._store.get(NODE, Key(life.node)))
        self.write_status(life, now)
        self._book_deadline(life, pod, now)

    def _book_deadline(self, life: PodState, pod: KubeObject, now: Instant) -> None:
        """Book the end of a pod that may not run for ever; it is counted from when the kubelet took it up."""
        deadline = active_deadline_of(pod)
        if deadline != life.deadline:
            life.deadline = deadline
            self.appointments.cancel(life, "deadline")
            if deadline is not None:
                ends = max(now, Instant(life.admitted + deadline))
                self.appointments.book(life, "deadline", ends, Rank.FINISH, self._exceed_deadline)

    def book_rejection(self, pod: KubeObject, reason: str, message: str, now: Instant) -> None:
        """Arrange for it to be said that a pod is not admitted."""

        def reject(now: Instant) -> None:
            self.record_event(pod, EventNote("Warning", reason, message), now)
            self._update_status(pod, rejected_status(pod, reason, message), now)

        self._agenda.book(now, Rank.START, reject)

    def handle_pod_update(self, life: PodState, pod: KubeObject, now: Instant) -> bool:
        """Arrange for what follows from a change of a pod that is here, if it is news: its deadline, its containers."""
        known = relevant_fields_of(pod)
        if life.is_stopping or "admitted" in life.appointments or known == life.relevant_fields:
            return False
        life.relevant_fields = known
        self._book_deadline(life, pod, now)
        life.add_ephemeral(pod)
        can_start = any(one.started is None for one in life.ephemeral) or any(
            (one.stage is Stage.WAITING and one.failure_reason) or one.has_other_image(pod) for one in life.containers()
        )
        if can_start and life.has_sandbox and "heed" not in life.appointments:
            self.appointments.book(life, "heed", now, Rank.START, self._apply_pod_update)
        return True

    def _apply_pod_update(self, life: PodState, now: Instant) -> None:
        """Start containers anew whose image is another now, whatever the restart policy, and what may start at last.

        Kubernetes: pkg/kubelet/kuberuntime/kuberuntime_manager.go, computePodActions.
        """
        pod = self._store.get(POD, life.key)
        for one in life.containers():
            if pod is not None and not one.failure_reason and one.has_other_image(pod):
                self.restart_container(life, one, "definition changed, will be restarted", now)
        self._start_ready_containers(life, now)

    def restart_container(self, life: PodState, one: ContainerState, why: str, now: Instant) -> None:
        """End a container, if it runs, and start it again."""
        if one.stage is Stage.RUNNING:
            self._record_container_event(life, one, EventNote("Normal", "Killing", f"Container {one.name} {why}"), now)
            one.end(EXIT_TERMINATED, now)
            one.last_run = one.ended_run
        self.appointments.cancel(life, *(f"{what} {one.name}" for what in (*_RUN_APPOINTMENTS, "restart", "calm")))
        self._start(life, one, now)

    def start_containers(self, life: PodState, now: Instant) -> None:
        """The sandbox is there: the pod has its address, and containers may start."""
        pod = self._store.get(POD, life.key)
        life.has_sandbox = True
        is_on_host = pod is not None and pod["spec"].get("hostNetwork")
        life.pod_ip = life.host_ip if is_on_host else self.addresses.allocate()
        self._start_ready_containers(life, now)

    def _start_ready_containers(self, life: PodState, now: Instant) -> None:
        """Start what may start now: the next init container, or all ordinary ones."""
        for one in life.init:
            self._start_if_waiting(life, one, now)
            if not one.is_done:
                break
        else:
            for one in life.main:
                self._start_if_waiting(life, one, now)
        for one in life.ephemeral:
            self._start_if_waiting(life, one, now)
        self.write_status(life, now)

    def _start_if_waiting(self, life: PodState, one: ContainerState, now: Instant) -> None:
        if one.stage is Stage.WAITING and (one.started is None or one.failure_reason):
            self._start(life, one, now)

    def _start(self, life: PodState, one: ContainerState, now: Instant) -> None:
        pod = self._store.get(POD, life.key)
        if pod is None:
            return
        spec = one.spec_in(pod)
        run = 0 if one.started is None else one.restarts + 1
        rule = self._rules.behaviour_of(pod, spec, run, is_init=one.is_init)
        trouble = start_failure_of(pod, spec, rule)
        if trouble is not None:
            self._back_off_start(life, one, trouble, now)
            return
        self.appointments.cancel(life, f"restart {one.name}")
        one.failure_reason = ""
        one.image = spec.get("image", "")
        pulled = f'Container image "{one.image}" already present on machine'
        self._record_container_event(life, one, EventNote("Normal", "Pulled", pulled), now)
        self._record_container_event(life, one, EventNote("Normal", "Created", f"Created container: {one.name}"), now)
        self._record_container_event(life, one, EventNote("Normal", "Started", f"Started container {one.name}"), now)
        start = self._sources.environment_of(pod, spec)
        disk = ContainerFiles(self._files, pod, spec, now)
        plan = plan_of(pod, spec, role=one.role, rule=rule, environment=start, disk=disk)
        if (guess := note_guess(self._notes, life.key, one, plan)) is not None:
            self._record_container_event(life, one, guess, now)
        one.start(plan, disk, now)
        self._prober.start(life, one, probes_of(spec, rule.health, start, disk, now), now)
        self.book_end(life, one, now)

    def book_end(self, life: PodState, one: ContainerState, now: Instant) -> None:
        """Book when a container that runs will end, within the limits that it has."""
        self.appointments.cancel(life, f"end {one.name}")
        length = one.limited_plan.length
        if length is not None and one.started is not None:
            ends = max(now, Instant(one.started + length))
            self.appointments.book(life, f"end {one.name}", ends, Rank.FINISH, functools.partial(self._exit, one=one))

    def _back_off_start(self, life: PodState, one: ContainerState, trouble: StartFailure, now: Instant) -> None:
        """Say why a container cannot be started, and try again: a moment later, then ever more seldom."""
        for note in trouble.events:
            self._record_container_event(life, one, note, now)
        one.failure_reason = trouble.reason
        one.set_waiting(trouble.reason, trouble.message)
        retry = Instant(now + one.next_retry(trouble))
        if trouble.back_off_status is not None:
            later = trouble.back_off_status

            def calm_down(life: PodState, now: Instant) -> None:
                if one.failure_reason:
                    one.set_waiting(*later)
                    self.write_status(life, now)

            self.appointments.book(life, f"calm {one.name}", Instant(now + seconds(1)), Rank.START, calm_down)
        restart = functools.partial(self._restart_after_back_off, one=one)
        self.appointments.book(life, f"restart {one.name}", retry, Rank.START, restart)

    # Containers end

    def _exit(self, life: PodState, now: Instant, *, one: ContainerState) -> None:
        """A container's process exits."""
        one.exit(now)
        self._on_container_ended(life, one, now)

    def _kill_unhealthy(self, life: PodState, one: ContainerState, kind: ProbeKind, now: Instant) -> None:
        """Have a container end because of what a probe found out; it may take its time, as when its pod is deleted."""
        if (pod := self._store.get(POD, life.key)) is None:
            return
        who = "Init container" if one.is_init else "Container"
        restarts = "" if one.is_init or life.restart_policy == "Never" else ", will be restarted"
        message = f"{who} {one.name} failed {kind.title} probe{restarts}"
        self._record_container_event(life, one, EventNote("Normal", "Killing", message), now)
        spec = one.spec_in(pod)
        wait = self._termination.container_stop_time(pod, spec, one.files, grace_period_of(pod, spec[kind.value]), now)
        kill = functools.partial(self._kill, one=one)
        self.appointments.book(life, f"kill {one.name}", Instant(now + wait), Rank.FINISH, kill)

    def _kill(self, life: PodState, now: Instant, *, one: ContainerState) -> None:
        one.end(EXIT_TERMINATED, now)
        self._on_container_ended(life, one, now)

    def _on_container_ended(self, life: PodState, one: ContainerState, now: Instant) -> None:
        """A container has ended: it is started again, or lets others start, or was the last."""
        self.appointments.cancel(life, *(f"{what} {one.name}" for what in _RUN_APPOINTMENTS))
        if one.role is ContainerRole.EPHEMERAL:
            self.write_status(life, now)
            return
        if not one.restarts_after(life.restart_policy):
            if one.is_init and one.exit_code == 0:
                self._start_ready_containers(life, now)
            elif one.is_init or all(main.stage is Stage.TERMINATED for main in life.main):
                self._complete_pod(life, now)
            else:
                self.write_status(life, now)
            return
        if wait := one.next_back_off(now):
            self._back_off(life, one, wait, now)
        else:
            one.last_run = one.ended_run
            self._start(life, one, now)
        self.write_status(life, now)

    def _back_off(self, life: PodState, one: ContainerState, wait: Duration, now: Instant) -> None:
        namespace, _, name = life.key.partition("/")
        who = f"{name}_{namespace}({life.uid})"
        one.set_waiting(
            "CrashLoopBackOff", f"back-off {format_go_duration(wait)} restarting failed container={one.name} pod={who}"
        )
        message = f"Back-off restarting failed container {one.name} in pod {who}"
        self._record_container_event(life, one, EventNote("Warning", "BackOff", message), now)
        restart = functools.partial(self._restart_after_back_off, one=one)
        self.appointments.book(life, f"restart {one.name}", Instant(now + wait), Rank.START, restart)

    def _restart_after_back_off(self, life: PodState, now: Instant, *, one: ContainerState) -> None:
        self._start(life, one, now)
        self.write_status(life, now)

    def _complete_pod(self, life: PodState, now: Instant) -> None:
        for one in life.containers():
            one.end(EXIT_TERMINATED if not one.is_sidecar else 0, now)
        self._finish_pod(life, now)

    def _finish_pod(self, life: PodState, now: Instant) -> None:
        """Nothing more happens to a pod whose containers have ended."""
        self.appointments.cancel_all(life)
        self.on_pod_ended(life, now)

    def _exceed_deadline(self, life: PodState, now: Instant) -> None:
        life.reason, life.message = DEADLINE_EXCEEDED
        pod = self._store.get(POD, life.key)
        if pod is not None:
            self.record_event(pod, EventNote("Normal", life.reason, life.message), now)
        self.end_containers(life, now, EXIT_KILLED)
        self._finish_pod(life, now)

    def mark_lost(self, life: PodState, now: Instant) -> None:
        """Say of a pod that is not started again that its processes were lost with its node."""
        self.end_containers(life, now, EXIT_LOST)
        self.write_status(life, now)

    # A pod is stopped

    def stop_pod(self, life: PodState, due: Instant, stopped: PodAction, now: Instant) -> None:
        """Tell the containers to end, which they will have done when `due`; nothing else happens to them until then."""
        if not life.is_stopping:
            life.is_stopping = True
            self.appointments.cancel_all(life)
            for one in (*life.containers(), *life.ephemeral):
                if one.stage is Stage.RUNNING:
                    self._record_container_event(
                        life, one, EventNote("Normal", "Killing", f"Stopping container {one.name}"), now
                    )
        self.appointments.book(life, "stopped", due, Rank.FINISH, stopped)

    def end_containers(self, life: PodState, now: Instant, exit_code: int = EXIT_TERMINATED) -> None:
        """End every container that runs."""
        for one in (*life.containers(), *life.ephemeral):
            one.end(exit_code, now)

    def release(self, life: PodState) -> None:
        """Drop what was booked for the pod, and give back its address."""
        self.appointments.cancel_all(life)
        self._files.forget(pod_root(life.uid))
        if life.pod_ip and life.pod_ip != life.host_ip:
            self.addresses.release(life.pod_ip)

    def remove(self, key: Key, uid: str, now: Instant) -> None:
        """Let the API forget the pod; it is gone, or waits for its finalizers."""
        with contextlib.suppress(ApiError):
            self._client.delete(POD, key, now, grace_s=0, uid=uid)

    # Writing and remembering

    def write_status(self, life: PodState, now: Instant) -> None:
        """Write the pod's status as it is now."""
        if (pod := self._store.get(POD, life.key)) is not None:
            self._update_status(pod, status_of(pod, life, now), now)

    def _update_status(self, pod: KubeObject, status: KubeObject, now: Instant) -> None:
        if status != pod.get("status"):
            with contextlib.suppress(ApiError):
                self._client.update(POD, {**pod, "status": status}, now, subresource="status")

    def _record_container_event(self, life: PodState, one: ContainerState, note: EventNote, now: Instant) -> None:
        pod = self._store.get(POD, life.key)
        if pod is not None:
            self.record_event(pod, note._replace(field_path=f"spec.{one.field}{{{one.name}}}"), now)

    def record_event(self, pod: KubeObject, note: EventNote, now: Instant) -> None:
        """Record an event of a pod, as its node's kubelet."""
        self._events.record(pod, POD, note._replace(host=node_of_pod(pod)), now)
