"""How long a pod may run, and how long its containers take to stop when they are told to.

Simulated processes obey a request to end at once, unless the pod says otherwise: by a preStop hook, or by the
annotation `batkube.io/stop-time`. The grace period is the most they get.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from batkube.cluster.object_meta import key_of
from batkube.cluster.pods.accessors import duration_annotation
from batkube.cluster.store import KubeObject
from batkube.execution.latencies.delays import Delays
from batkube.kernel.fidelity import FidelityNote, FidelityNotes
from batkube.kernel.instants import Duration, Instant, bounded_seconds, instant_of, seconds
from batkube.workloads.formats.kubernetes.annotations import WALLTIME

if TYPE_CHECKING:
    from batkube.execution.scripts.environment import ContainerFiles

STOP_TIME = "batkube.io/stop-time"
_UNSUPPORTED_HOOK = FidelityNote(
    "containers",
    "a preStop hook calls somebody, or executes what is not understood in full; that is taken to take no time",
)


class TerminationDelays:
    """Knows how long containers take to stop, as their kubelets see it."""

    def __init__(self, notes: FidelityNotes, delays: Delays | None = None) -> None:
        self._notes = notes
        self._delays = delays

    def pod_stopped_at(self, pod: KubeObject, disks: Mapping[str, ContainerFiles], now: Instant) -> Instant:
        """Return when the last container of a pod that was deleted has ended; `disks` are what its containers see."""
        deadline = instant_of(pod["metadata"]["deletionTimestamp"])
        most = Duration(max(0, deadline - now))
        containers = pod["spec"]["containers"]
        lengths = [
            self.container_stop_time(pod, container, disks.get(container["name"]), most, now)
            for container in containers
        ]
        stopped = Instant(now + max(lengths))
        return stopped if self._delays is None else max(stopped, self._delays.stopped_at(now, deadline))

    def container_stop_time(
        self, pod: KubeObject, container: KubeObject, disk: ContainerFiles | None, most: Duration, now: Instant
    ) -> Duration:
        """Return how long a container takes to stop, at most that long."""
        hook = (container.get("lifecycle") or {}).get("preStop") or {}
        wanted = max(
            duration_annotation(pod, STOP_TIME) or 0, bounded_seconds((hook.get("sleep") or {}).get("seconds", 0))
        )
        if "httpGet" in hook:
            self._note(pod, container, "httpGet")
        if command := (hook.get("exec") or {}).get("command"):
            length = self._command_duration(command, pod, container, disk, now)
            wanted = max(wanted, most if length is None else length)
        return Duration(min(wanted, most))

    def _command_duration(
        self, command: list[str], pod: KubeObject, container: KubeObject, disk: ContainerFiles | None, now: Instant
    ) -> Duration | None:
        """Return how long a command takes in a container that is to end, None if it never ends."""
        # Few pods have such a hook, and what follows scripts takes memory.
        from batkube.execution.containers.plans import run_command
        from batkube.execution.scripts.environment import ContainerFiles, VolumeFiles, environment_of
        from batkube.execution.scripts.lexer import UnsupportedScript

        seen = (ContainerFiles(VolumeFiles(), pod, container, now) if disk is None else disk).private_view(now)
        try:
            outcome = run_command(command, environment_of(pod, container), seen)
        except UnsupportedScript:
            self._note(pod, container, " ".join(command))
            return Duration(0)
        was_asked = seen.has_read_own_files or seen.has_read_volumes
        if outcome.unknown_program or (was_asked and not seen.is_fully_known):
            self._note(pod, container, " ".join(command))
        return outcome.length

    def _note(self, pod: KubeObject, container: KubeObject, what: str) -> None:
        self._notes.add(_UNSUPPORTED_HOOK, example=f"pod {key_of(pod)}, container {container['name']}: {what}")


def grace_period_of(pod: KubeObject, probe: KubeObject) -> Duration:
    """Return how long a container may take to end of which a probe has failed."""
    usual_s = pod["spec"].get("terminationGracePeriodSeconds", 30)
    return bounded_seconds(probe.get("terminationGracePeriodSeconds", usual_s))


def active_deadline_of(pod: KubeObject) -> Duration | None:
    """Return after how long the kubelet ends the pod; None when it may run for ever."""
    limits = [duration_annotation(pod, WALLTIME)]
    deadline = pod["spec"].get("activeDeadlineSeconds")
    limits.append(None if deadline is None else seconds(deadline))
    return min((limit for limit in limits if limit is not None), default=None)
