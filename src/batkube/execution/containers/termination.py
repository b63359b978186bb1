"""Deadlines of pods, and the time that containers take to stop.

A simulated process ends at once on SIGTERM, unless the pod has a preStop hook or the annotation `batkube.io/stop-time`.
The grace period is the maximum.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from batkube.cluster.object_meta import key_of
from batkube.cluster.pods.accessors import duration_annotation
from batkube.cluster.store import KubeObject
from batkube.execution.latencies.delays import NO_DELAYS, Delays
from batkube.kernel.fidelity import FidelityNote, FidelityNotes
from batkube.kernel.instants import Duration, Instant, bounded_seconds, instant_of, seconds
from batkube.workloads.formats.kubernetes.annotations import WALLTIME

if TYPE_CHECKING:
    from batkube.execution.scripts.environment import ContainerFiles

STOP_TIME = "batkube.io/stop-time"
_UNSUPPORTED_HOOK = FidelityNote(
    "containers",
    "a preStop hook sends a request, or executes a command that is not fully supported; it is assumed to take no time",
)


class TerminationDelays:
    """Computes how long containers take to stop, as seen by their kubelets."""

    def __init__(self, notes: FidelityNotes, delays: Delays = NO_DELAYS) -> None:
        self._notes = notes
        self._delays = delays

    def pod_stopped_at(self, pod: KubeObject, disks: Mapping[str, ContainerFiles], now: Instant) -> Instant:
        """Return when the last container of a deleted pod has ended; `disks` are the files of its containers."""
        deadline = instant_of(pod["metadata"]["deletionTimestamp"])
        limit = Duration(max(0, deadline - now))
        containers = pod["spec"]["containers"]
        lengths = [
            self.container_stop_time(pod, container, disks.get(container["name"]), limit, now)
            for container in containers
        ]
        stopped = Instant(now + max(lengths))
        return max(stopped, self._delays.stopped_at(now, deadline))

    def container_stop_time(
        self, pod: KubeObject, container: KubeObject, disk: ContainerFiles | None, limit: Duration, now: Instant
    ) -> Duration:
        """Return how long a container takes to stop, at most `limit`."""
        hook = (container.get("lifecycle") or {}).get("preStop") or {}
        stop_time = max(
            duration_annotation(pod, STOP_TIME) or 0, bounded_seconds((hook.get("sleep") or {}).get("seconds", 0))
        )
        if "httpGet" in hook:
            self._note(pod, container, "httpGet")
        if command := (hook.get("exec") or {}).get("command"):
            length = self._command_duration(command, pod, container, disk, now)
            stop_time = max(stop_time, limit if length is None else length)
        return Duration(min(stop_time, limit))

    def _command_duration(
        self, command: list[str], pod: KubeObject, container: KubeObject, disk: ContainerFiles | None, now: Instant
    ) -> Duration | None:
        """Return how long a hook's command takes in a container, None if it never ends."""
        # Imported on demand: few pods have such a hook, and the interpreter takes memory.
        from batkube.execution.containers.plans import run_command
        from batkube.execution.scripts.environment import ContainerFiles, VolumeFiles, environment_of
        from batkube.execution.scripts.lexer import UnsupportedScript

        view = (ContainerFiles(VolumeFiles(), pod, container, now) if disk is None else disk).private_view(now)
        try:
            outcome = run_command(command, environment_of(pod, container), view)
        except UnsupportedScript:
            self._note(pod, container, " ".join(command))
            return Duration(0)
        has_read_files = view.has_read_own_files or view.has_read_volumes
        if outcome.unknown_program or (has_read_files and not view.is_fully_known):
            self._note(pod, container, " ".join(command))
        return outcome.length

    def _note(self, pod: KubeObject, container: KubeObject, command: str) -> None:
        self._notes.add(_UNSUPPORTED_HOOK, example=f"pod {key_of(pod)}, container {container['name']}: {command}")


def grace_period_of(pod: KubeObject, probe: KubeObject) -> Duration:
    """Return the grace period of a container that is killed because `probe` has failed."""
    default_s = pod["spec"].get("terminationGracePeriodSeconds", 30)
    return bounded_seconds(probe.get("terminationGracePeriodSeconds", default_s))


def active_deadline_of(pod: KubeObject) -> Duration | None:
    """Return the longest time that the pod may run, by spec or annotation; None if there is no limit."""
    limits = [duration_annotation(pod, WALLTIME)]
    deadline = pod["spec"].get("activeDeadlineSeconds")
    limits.append(None if deadline is None else seconds(deadline))
    return min((limit for limit in limits if limit is not None), default=None)
