"""How long a pod may run, and how long its containers take to stop when they are told to.

Simulated processes obey a request to end at once, unless the pod says otherwise: by a preStop hook, or by the
annotation `batkube.io/stop-time`. The grace period is the most they get.
"""

from __future__ import annotations

from collections.abc import Sequence

from batkube.cluster.pods import time_in
from batkube.cluster.references import key_of
from batkube.cluster.store import KubeObject
from batkube.execution.latencies import Delays
from batkube.kernel.fidelity import FidelityNote, FidelityNotes
from batkube.kernel.instants import START, Duration, Instant, instant_of, seconds
from batkube.workloads.annotations import WALLTIME

STOP_TIME = "batkube.io/stop-time"
_NOT_UNDERSTOOD = FidelityNote(
    "containers", "a preStop hook calls somebody, or executes what is not understood; it is taken to take no time"
)


def stop_time_of(pod: KubeObject, notes: FidelityNotes, now: Instant) -> Duration:
    """Return how long a pod that was deleted takes until its last container has ended."""
    deadline = instant_of(pod["metadata"]["deletionTimestamp"])
    most, wanted = Duration(max(0, deadline - now)), time_in(pod, STOP_TIME) or Duration(0)
    for container in pod["spec"]["containers"]:
        hook = (container.get("lifecycle") or {}).get("preStop") or {}
        wanted = max(wanted, seconds((hook.get("sleep") or {}).get("seconds", 0)))
        if "httpGet" in hook:
            notes.add(_NOT_UNDERSTOOD, example=f"pod {key_of(pod)}, container {container['name']}: httpGet")
        if command := (hook.get("exec") or {}).get("command"):
            length = _length_of(command, pod, container, notes)
            wanted = max(wanted, most if length is None else length)
    return min(wanted, most)


def _length_of(command: Sequence[str], pod: KubeObject, container: KubeObject, notes: FidelityNotes) -> Duration | None:
    """Return how long a command takes in a container that is to end, None if it never ends.

    What nobody knows takes no time, with a note.
    """
    # Few pods have such a hook, and what follows scripts takes memory.
    from batkube.execution.container_plans import run_command
    from batkube.execution.scripts.surroundings import Files, Mounts, environment_of
    from batkube.execution.scripts.words import NotUnderstood

    try:
        disk = Mounts(Files(), pod, container, START)
        outcome = run_command(list(command), environment_of(pod, container), disk)
    except NotUnderstood:
        notes.add(_NOT_UNDERSTOOD, example=f"pod {key_of(pod)}, container {container['name']}: {' '.join(command)}")
        return Duration(0)
    return outcome.length


def stopped_at(pod: KubeObject, delays: Delays | None, notes: FidelityNotes, now: Instant) -> Instant:
    """Return when a pod that was deleted has stopped, as its kubelet sees it."""
    stopped = Instant(now + stop_time_of(pod, notes, now))
    if delays is None:
        return stopped
    return max(stopped, delays.until_stopped(now, instant_of(pod["metadata"]["deletionTimestamp"])))


def active_deadline_of(pod: KubeObject) -> Duration | None:
    """Return after how long the kubelet ends the pod; None when it may run for ever."""
    limits = [time_in(pod, WALLTIME)]
    deadline = pod["spec"].get("activeDeadlineSeconds")
    limits.append(None if deadline is None else seconds(deadline))
    return min((limit for limit in limits if limit is not None), default=None)
