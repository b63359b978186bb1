"""Estimate traits of the cluster from recorded runs: the rate limit of the client, and nodes with system pods.

**The client.** A client-go program submits `burst` jobs at once, then `qps` per second. If many jobs are due at one
time, their submissions show it: some close together, then a long series at equal intervals.

**System pods.** A job as large as a node never runs on a node with other pods. The number of nodes that jobs used is
recorded; the total number of nodes is not always. If it is unknown, one pod of cluster DNS is assumed, which every real
cluster has, with its requests in kubeadm and k3s.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from batkube.calibration.recorded_runs import Floats, RecordedRun
from batkube.calibration.steps import peak_concurrency
from batkube.execution.latencies.request_limit import RequestLimit
from batkube.execution.latencies.system_pods import SystemPod
from batkube.kernel.quantities import CPU, MEMORY, parse_amount

#: Kubernetes: cluster/addons/dns/coredns/coredns.yaml.base; k3s: manifests/coredns.yaml.
DNS_REQUESTS = ((CPU, parse_amount(CPU, "100m")), (MEMORY, parse_amount(MEMORY, "70Mi")))

#: The minimum length of the series.
_MIN_SERIES_LENGTH = 20
#: This share of the intervals must be within this fraction of their median.
_EVEN_SHARE, _EVEN_WITHIN = 0.8, 0.2


def client_limit(recordings: Sequence[RecordedRun]) -> RequestLimit | None:
    """Return the rate limit of the submitting client; None if no run has one."""
    limits = [limit for recording in recordings if (limit := request_limit_in(recording.submitted)) is not None]
    if not limits:
        return None
    qps, burst = np.median([limit.qps for limit in limits]), np.median([limit.burst for limit in limits])
    return RequestLimit(float(qps), int(burst))


def request_limit_in(submitted: Floats) -> RequestLimit | None:
    """Return the rate limit that explains submissions at these times (in seconds); None if there is none."""
    times = np.sort(submitted[~np.isnan(submitted)])
    gaps = np.diff(times)
    if len(gaps) < _MIN_SERIES_LENGTH:
        return None
    spacing = float(np.median(gaps[len(gaps) // 2 :]))
    burst = 1 + int(np.argmin(gaps < spacing / 2))
    series = gaps[burst - 1 :]
    if burst < 2 or len(series) < _MIN_SERIES_LENGTH:
        return None
    even_share = float(np.mean(np.abs(series - spacing) <= _EVEN_WITHIN * spacing))
    # Use the whole series: a single interval is known only to the millisecond.
    rate = (len(series) - 1) / float(times[-1] - times[burst])
    return RequestLimit(float(f"{rate:.2g}"), burst) if even_share >= _EVEN_SHARE else None


class NodeUsage:
    """The number of nodes that jobs used, and of all nodes."""

    def __init__(self, recordings: Sequence[RecordedRun], nodes: int | None) -> None:
        """`nodes` is the number of nodes of the cluster; None to read it from the runs, if it is recorded."""
        largest = max(recordings, key=lambda recording: len(_used_nodes(recording)))
        self.used = len(_used_nodes(largest))
        self.peak_concurrency = max(peak_concurrency(recording) for recording in recordings)
        self.total = largest.node_count if nodes is None else nodes

    @property
    def system_pods(self) -> tuple[SystemPod, ...]:
        """A pod for each unused node; a single pod if the number of nodes is unknown."""
        count = 1 if self.total is None else max(0, self.total - self.used)
        names = ["coredns"] if count == 1 else [f"coredns-{number}" for number in range(1, count + 1)]
        return tuple(SystemPod(name, DNS_REQUESTS) for name in names)


def _used_nodes(recording: RecordedRun) -> list[str]:
    return sorted({node for node in recording.nodes if node})
