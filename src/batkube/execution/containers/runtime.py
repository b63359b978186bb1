"""Container runtime: containers start, are probed, exit, restart and are stopped, each by its own plan.

    init containers, one after the other ─▶ all others ⇄ CrashLoopBackOff ─▶ ended

Every step is reported in the pod's status and by events, as the real kubelet does (Kubernetes:
pkg/kubelet/kuberuntime/kuberuntime_manager.go). Admission, resources and deletion are handled by `kubelet.kubelets`,
which uses this module through `containers.pods`.
"""

from __future__ import annotations

import contextlib
import functools
import itertools

from batkube.cluster.client import ApiError, Client
from batkube.cluster.event_recorder import EventNote, EventRecorder
from batkube.cluster.mapping import NODE, POD
from batkube.cluster.object_meta import name_of, namespace_of
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
from batkube.kernel.fidelity import FidelityNote
from batkube.kernel.instants import Duration, Instant, seconds
from batkube.text.go_times import format_go_duration
from batkube.workloads.container_rules.rules import PROBES, ContainerRules

#: The addresses of simulated pods; services have 10.96.0.0/12.
POD_NETWORK = "10.128.0.0/9"

#: How many containers of a pod are started before other work that is due at the same instant gets its turn.
_MAX_STARTS_PER_TURN = 100
#: A pod with so many containers reports their changes only once a second, and one with n times as many once in n
#: seconds: a status lists all containers, so that a report of each change would take quadratic time. The real kubelet
#: reports the changes of any pod once a second (Kubernetes: pkg/kubelet/kubelet.go, genericPlegRelistPeriod).
_CONTAINERS_PER_REPORT_SECOND = 100
_DELAYED_REPORTS = FidelityNote("containers", "a pod has so many containers that changes are reported at intervals")

#: The names of appointments of a running container; each is followed by the container's name.
_RUN_APPOINTMENTS = ("end", "kill", *PROBES)


class ContainerRuntime:
    """Runs the containers of pods, and writes the pods' statuses and events."""

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
            self._report_change, self._start_ready_containers, self._record_container_event, self._kill_unhealthy
        )
        self._prober = Prober(self.appointments, actions, world.notes)
        self._termination = TerminationDelays(world.notes)
        self._notes = world.notes
        #: Called when the last container of a pod has ended.
        self.on_pod_ended: PodAction = lambda pod_state, now: None

    # Start

    def on_admitted(self, pod_state: PodState, pod: KubeObject, now: Instant) -> None:
        """Report that a pod was admitted by its node, and book its deadline."""
        pod_state.host_ip = internal_ip_of(self._store.get(NODE, Key(pod_state.node)))
        self.write_status(pod_state, now)
        self._book_deadline(pod_state, pod, now)

    def _book_deadline(self, pod_state: PodState, pod: KubeObject, now: Instant) -> None:
        """Book the end of a pod with a deadline, counted from its admission."""
        deadline = active_deadline_of(pod)
        if deadline != pod_state.deadline:
            pod_state.deadline = deadline
            self.appointments.cancel(pod_state, "deadline")
            if deadline is not None:
                ends = max(now, Instant(pod_state.admitted + deadline))
                self.appointments.book(pod_state, "deadline", ends, Rank.FINISH, self._exceed_deadline)

    def book_rejection(self, pod: KubeObject, reason: str, message: str, now: Instant) -> None:
        """Report that a pod is rejected, by an appointment at this instant."""

        def reject(now: Instant) -> None:
            self.record_event(pod, EventNote("Warning", reason, message), now)
            self._update_status(pod, rejected_status(pod, reason, message), now)

        self._agenda.book(now, Rank.START, reject)

    def handle_pod_update(self, pod_state: PodState, pod: KubeObject, now: Instant) -> bool:
        """Handle an update of a pod's deadline or containers; return whether it changed a relevant field."""
        fields = relevant_fields_of(pod)
        if pod_state.is_stopping or "admitted" in pod_state.appointments or fields == pod_state.relevant_fields:
            return False
        pod_state.relevant_fields = fields
        self._book_deadline(pod_state, pod, now)
        pod_state.add_ephemeral(pod)
        can_start = any(container.started is None for container in pod_state.ephemeral) or any(
            (container.stage is Stage.WAITING and container.failure_reason) or container.has_other_image(pod)
            for container in pod_state.containers()
        )
        if can_start and pod_state.has_sandbox and "update" not in pod_state.appointments:
            self.appointments.book(pod_state, "update", now, Rank.START, self._apply_pod_update)
        return True

    def _apply_pod_update(self, pod_state: PodState, now: Instant) -> None:
        """Restart containers whose image has changed, whatever the restart policy, and start those that now can.

        Kubernetes: pkg/kubelet/kuberuntime/kuberuntime_manager.go, computePodActions.
        """
        pod = self._store.get(POD, pod_state.key)
        for container in pod_state.containers():
            if pod is not None and not container.failure_reason and container.has_other_image(pod):
                self.restart_container(pod_state, container, "definition changed, will be restarted", now)
        self._start_ready_containers(pod_state, now)

    def restart_container(self, pod_state: PodState, container: ContainerState, reason: str, now: Instant) -> None:
        """End a container, if it runs, and start it again."""
        if container.stage is Stage.RUNNING:
            self._record_container_event(
                pod_state, container, EventNote("Normal", "Killing", f"Container {container.name} {reason}"), now
            )
            container.end(EXIT_TERMINATED, now)
            container.last_run = container.ended_run
        self.appointments.cancel(
            pod_state, *(f"{kind} {container.name}" for kind in (*_RUN_APPOINTMENTS, "restart", "calm"))
        )
        self._start(pod_state, container, now)

    def start_containers(self, pod_state: PodState, now: Instant) -> None:
        """Create the pod's sandbox with its address, and start its first containers."""
        pod = self._store.get(POD, pod_state.key)
        pod_state.has_sandbox = True
        is_on_host = pod is not None and pod["spec"].get("hostNetwork")
        pod_state.pod_ip = pod_state.host_ip if is_on_host else self.addresses.allocate()
        self._start_ready_containers(pod_state, now)

    def _start_ready_containers(self, pod_state: PodState, now: Instant) -> None:
        """Start the containers that can start now: the next init container, or all main containers."""
        for container in pod_state.unfinished_init():
            self._start_if_waiting(pod_state, container, now)
            if not container.is_done:
                break
        else:
            self._start_main_containers(pod_state, now)
        for container in pod_state.ephemeral:
            self._start_if_waiting(pod_state, container, now)
        self._report_change(pod_state, now)

    def _start_main_containers(self, pod_state: PodState, now: Instant, *, retry_failed: bool = True) -> None:
        """Start the main containers that wait; book the start of those that exceed the number for one turn."""
        waiting = (
            container
            for container in pod_state.main
            if container.stage is Stage.WAITING
            and (container.started is None if not container.failure_reason else retry_failed)
        )
        for container in list(itertools.islice(waiting, _MAX_STARTS_PER_TURN)):
            self._start(pod_state, container, now)
        if next(waiting, None) is not None:
            self.appointments.book(pod_state, "starts", now, Rank.START, self._continue_starts)

    def _continue_starts(self, pod_state: PodState, now: Instant) -> None:
        self._start_main_containers(pod_state, now, retry_failed=False)
        self._report_change(pod_state, now)

    def _start_if_waiting(self, pod_state: PodState, container: ContainerState, now: Instant) -> None:
        if container.stage is Stage.WAITING and (container.started is None or container.failure_reason):
            self._start(pod_state, container, now)

    def _start(self, pod_state: PodState, container: ContainerState, now: Instant) -> None:
        pod = self._store.get(POD, pod_state.key)
        if pod is None:
            return
        spec = container.spec_in(pod)
        run = 0 if container.started is None else container.restarts + 1
        rule = self._rules.behaviour_of(pod, spec, run, is_init=container.is_init)
        failure = start_failure_of(pod, spec, rule)
        if failure is not None:
            self._back_off_start(pod_state, container, failure, now)
            return
        self.appointments.cancel(pod_state, f"restart {container.name}")
        container.failure_reason = ""
        container.image = spec.get("image", "")
        for reason, message in (
            ("Pulled", f'Container image "{container.image}" already present on machine'),
            ("Created", f"Created container: {container.name}"),
            ("Started", f"Started container {container.name}"),
        ):
            self._record_container_event(pod_state, container, EventNote("Normal", reason, message), now)
        start = self._sources.environment_of(pod, spec)
        disk = ContainerFiles(self._files, pod, spec, now)
        plan = plan_of(pod, spec, role=container.role, rule=rule, environment=start, disk=disk)
        if (guess := note_guess(self._notes, pod_state.key, container, plan)) is not None:
            self._record_container_event(pod_state, container, guess, now)
        container.start(plan, disk, now)
        self._prober.start(pod_state, container, probes_of(spec, rule.health, start, disk, now), now)
        self.book_end(pod_state, container, now)

    def book_end(self, pod_state: PodState, container: ContainerState, now: Instant) -> None:
        """Book the end of a running container with its current limits."""
        self.appointments.cancel(pod_state, f"end {container.name}")
        length = container.limited_plan.length
        if length is not None and container.started is not None:
            ends = max(now, Instant(container.started + length))
            self.appointments.book(
                pod_state,
                f"end {container.name}",
                ends,
                Rank.FINISH,
                functools.partial(self._exit, container=container),
            )

    def _back_off_start(
        self, pod_state: PodState, container: ContainerState, failure: StartFailure, now: Instant
    ) -> None:
        """Report why a container cannot be started, and book the next attempt."""
        for note in failure.events:
            self._record_container_event(pod_state, container, note, now)
        container.failure_reason = failure.reason
        container.set_waiting(failure.reason, failure.message)
        retry = Instant(now + container.next_retry(failure))
        if failure.back_off_status is not None:
            back_off_status = failure.back_off_status

            def calm_down(pod_state: PodState, now: Instant) -> None:
                if container.failure_reason:
                    container.set_waiting(*back_off_status)
                    self._report_change(pod_state, now)

            self.appointments.book(
                pod_state, f"calm {container.name}", Instant(now + seconds(1)), Rank.START, calm_down
            )
        restart = functools.partial(self._restart_after_back_off, container=container)
        self.appointments.book(pod_state, f"restart {container.name}", retry, Rank.START, restart)

    # End

    def _exit(self, pod_state: PodState, now: Instant, *, container: ContainerState) -> None:
        """End a container as planned."""
        container.exit(now)
        self._on_container_ended(pod_state, container, now)

    def _kill_unhealthy(self, pod_state: PodState, container: ContainerState, kind: ProbeKind, now: Instant) -> None:
        """Kill a container after a failed probe, within its grace period."""
        if (pod := self._store.get(POD, pod_state.key)) is None:
            return
        kind_of_container = "Init container" if container.is_init else "Container"
        restarts = "" if container.is_init or pod_state.restart_policy == "Never" else ", will be restarted"
        message = f"{kind_of_container} {container.name} failed {kind.title} probe{restarts}"
        self._record_container_event(pod_state, container, EventNote("Normal", "Killing", message), now)
        spec = container.spec_in(pod)
        grace = grace_period_of(pod, spec[kind.value])
        wait = self._termination.container_stop_time(pod, spec, container.files, grace, now)
        kill = functools.partial(self._kill, container=container)
        self.appointments.book(pod_state, f"kill {container.name}", Instant(now + wait), Rank.FINISH, kill)

    def _kill(self, pod_state: PodState, now: Instant, *, container: ContainerState) -> None:
        container.end(EXIT_TERMINATED, now)
        self._on_container_ended(pod_state, container, now)

    def _on_container_ended(self, pod_state: PodState, container: ContainerState, now: Instant) -> None:
        """Restart a container that has ended, or start the next one, or complete the pod."""
        self.appointments.cancel(pod_state, *(f"{kind} {container.name}" for kind in _RUN_APPOINTMENTS))
        if container.role is ContainerRole.EPHEMERAL:
            self._report_change(pod_state, now)
            return
        if not container.restarts_after(pod_state.restart_policy):
            if container.is_init and container.exit_code == 0:
                self._start_ready_containers(pod_state, now)
            elif container.is_init or pod_state.has_ended_main:
                self._complete_pod(pod_state, now)
            else:
                self._report_change(pod_state, now)
            return
        if wait := container.next_back_off(now):
            self._back_off(pod_state, container, wait, now)
        else:
            container.last_run = container.ended_run
            self._start(pod_state, container, now)
        self._report_change(pod_state, now)

    def _back_off(self, pod_state: PodState, container: ContainerState, wait: Duration, now: Instant) -> None:
        pod_name = f"{name_of(pod_state.key)}_{namespace_of(pod_state.key)}({pod_state.uid})"
        container.set_waiting(
            "CrashLoopBackOff",
            f"back-off {format_go_duration(wait)} restarting failed container={container.name} pod={pod_name}",
        )
        message = f"Back-off restarting failed container {container.name} in pod {pod_name}"
        self._record_container_event(pod_state, container, EventNote("Warning", "BackOff", message), now)
        restart = functools.partial(self._restart_after_back_off, container=container)
        self.appointments.book(pod_state, f"restart {container.name}", Instant(now + wait), Rank.START, restart)

    def _restart_after_back_off(self, pod_state: PodState, now: Instant, *, container: ContainerState) -> None:
        self._start(pod_state, container, now)
        self._report_change(pod_state, now)

    def _complete_pod(self, pod_state: PodState, now: Instant) -> None:
        for container in pod_state.containers():
            container.end(EXIT_TERMINATED if not container.is_sidecar else 0, now)
        self._finish_pod(pod_state, now)

    def _finish_pod(self, pod_state: PodState, now: Instant) -> None:
        """Cancel the appointments of a pod whose containers have ended, and notify the kubelet."""
        self.appointments.cancel_all(pod_state)
        self.on_pod_ended(pod_state, now)

    def _exceed_deadline(self, pod_state: PodState, now: Instant) -> None:
        pod_state.reason, pod_state.message = DEADLINE_EXCEEDED
        pod = self._store.get(POD, pod_state.key)
        if pod is not None:
            self.record_event(pod, EventNote("Normal", pod_state.reason, pod_state.message), now)
        self.end_containers(pod_state, now, EXIT_KILLED)
        self._finish_pod(pod_state, now)

    def mark_lost(self, pod_state: PodState, now: Instant) -> None:
        """Report that the containers of a pod, which is not restarted, were lost with its node."""
        self.end_containers(pod_state, now, EXIT_LOST)
        self.write_status(pod_state, now)

    # Deletion

    def begin_stop(self, pod_state: PodState, now: Instant) -> None:
        """Stop the containers: from now on, nothing else happens in the pod until they have ended."""
        if pod_state.is_stopping:
            return
        pod_state.is_stopping = True
        self.appointments.cancel_all(pod_state)
        for container in (*pod_state.containers(), *pod_state.ephemeral):
            if container.stage is Stage.RUNNING:
                note = EventNote("Normal", "Killing", f"Stopping container {container.name}")
                self._record_container_event(pod_state, container, note, now)

    def end_containers(self, pod_state: PodState, now: Instant, exit_code: int = EXIT_TERMINATED) -> None:
        """End every running container."""
        for container in (*pod_state.containers(), *pod_state.ephemeral):
            container.end(exit_code, now)

    def release(self, pod_state: PodState) -> None:
        """Cancel the pod's appointments, and release its files and address."""
        self.appointments.cancel_all(pod_state)
        self._files.forget(pod_root(pod_state.uid))
        if pod_state.pod_ip and pod_state.pod_ip != pod_state.host_ip:
            self.addresses.release(pod_state.pod_ip)

    # Writing

    def _report_change(self, pod_state: PodState, now: Instant) -> None:
        """Write the pod's status after a change of a container: at once, or at intervals if it has very many."""
        if "starts" in pod_state.appointments:
            return  # reported with the last of them
        interval = seconds((len(pod_state.init) + len(pod_state.main)) // _CONTAINERS_PER_REPORT_SECOND)
        if pod_state.reported is None or now >= pod_state.reported + interval:
            pod_state.reported = now
            self.write_status(pod_state, now)
        elif "report" not in pod_state.appointments:
            self._notes.add(_DELAYED_REPORTS, example=f"pod {pod_state.key}")
            due = Instant(pod_state.reported + interval)
            self.appointments.book(pod_state, "report", due, Rank.START, self._report_change)

    def write_status(self, pod_state: PodState, now: Instant) -> None:
        """Write the pod's current status."""
        if (pod := self._store.get(POD, pod_state.key)) is not None:
            self._update_status(pod, status_of(pod, pod_state, now), now)

    def _update_status(self, pod: KubeObject, status: KubeObject, now: Instant) -> None:
        if status != pod.get("status"):
            with contextlib.suppress(ApiError):
                self._client.update(POD, {**pod, "status": status}, now, subresource="status")

    def _record_container_event(
        self, pod_state: PodState, container: ContainerState, note: EventNote, now: Instant
    ) -> None:
        pod = self._store.get(POD, pod_state.key)
        if pod is not None:
            self.record_event(pod, note._replace(field_path=f"spec.{container.field}{{{container.name}}}"), now)

    def record_event(self, pod: KubeObject, note: EventNote, now: Instant) -> None:
        """Record an event of a pod, as its node's kubelet."""
        self._events.record(pod, POD, note._replace(host=node_of_pod(pod)), now)
