"""How long a pod may run, and how long its containers take to stop when they are told to.

Simulated processes obey a request to end at once, unless the pod says otherwise: by a preStop hook that sleeps, or by
the annotation `batkube.io/stop-time`. The grace period is the most they get.
"""

from __future__ import annotations

from batkube.cluster.pods import time_in
from batkube.cluster.store import KubeObject
from batkube.execution.latencies import Delays
from batkube.kernel.instants import Duration, Instant, instant_of, seconds
from batkube.workloads.annotations import WALLTIME

STOP_TIME = "batkube.io/stop-time"


def stop_time_of(pod: KubeObject, now: Instant) -> Duration:
    """Return how long a pod that was deleted takes until its last container has ended."""
    metadata = pod["metadata"]
    wanted = time_in(pod, STOP_TIME) or Duration(0)
    for container in pod["spec"]["containers"]:
        hook = (container.get("lifecycle") or {}).get("preStop") or {}
        wanted = max(wanted, seconds((hook.get("sleep") or {}).get("seconds", 0)))
    deadline = instant_of(metadata["deletionTimestamp"])
    return min(wanted, Duration(max(0, deadline - now)))


def stopped_at(pod: KubeObject, delays: Delays | None, now: Instant) -> Instant:
    """Return when a pod that was deleted has stopped, as its kubelet sees it."""
    stopped = Instant(now + stop_time_of(pod, now))
    if delays is None:
        return stopped
    return max(stopped, delays.until_stopped(now, instant_of(pod["metadata"]["deletionTimestamp"])))


def active_deadline_of(pod: KubeObject) -> Duration | None:
    """Return after how long the kubelet ends the pod; None when it may run for ever."""
    limits = [time_in(pod, WALLTIME)]
    deadline = pod["spec"].get("activeDeadlineSeconds")
    limits.append(None if deadline is None else seconds(deadline))
    return min((limit for limit in limits if limit is not None), default=None)
