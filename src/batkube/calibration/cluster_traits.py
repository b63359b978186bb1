"""What recorded runs tell of the cluster around the pods: the client's limit, and nodes that jobs cannot use.

**The client.** Programs made with client-go submit `burst` jobs at once and then `qps` a second. That leaves a plain
mark when many jobs are due at one time: some close together, then a long series at even distances.

**The cluster's own pods.** Jobs as large as a node never run on a node on which something else runs. How many nodes
jobs ran on is recorded; how many the cluster had must be told. Where it is not told, one pod of cluster DNS is assumed,
with the requests that kubeadm and k3s both give it: every real cluster has it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from batkube.calibration.recorded_runs import Floats, RecordedRun
from batkube.calibration.steps import peak_concurrency
from batkube.execution.latencies.request_limit import RequestLimit
from batkube.execution.latencies.system_pods import SystemPod
from batkube.kernel.quantities import CPU, MEMORY, parse_amount

#: Kubernetes: cluster/addons/dns/coredns; k3s: manifests/coredns.yaml.
DNS_REQUESTS = ((CPU, parse_amount(CPU, "100m")), (MEMORY, parse_amount(MEMORY, "70Mi")))

#: A series shorter than this proves nothing.
_MIN_SERIES_LENGTH = 20
#: How even the series must be: this share of its distances within this part of their median.
_EVEN_SHARE, _EVEN_WITHIN = 0.8, 0.2


def client_limit(recordings: Sequence[RecordedRun]) -> RequestLimit | None:
    """Return the rate limit of the submitting client; None if no run shows one."""
    limits = [limit for one in recordings if (limit := request_limit_in(one.submitted)) is not None]
    if not limits:
        return None
    qps, burst = np.median([one.qps for one in limits]), np.median([one.burst for one in limits])
    return RequestLimit(float(qps), int(burst))


def request_limit_in(submitted: Floats) -> RequestLimit | None:
    """Return the limit that jobs submitted at these times (in seconds) show; None when they show none."""
    times = np.sort(submitted[~np.isnan(submitted)])
    gaps = np.diff(times)
    if len(gaps) < _MIN_SERIES_LENGTH:
        return None
    spacing = float(np.median(gaps[len(gaps) // 2 :]))
    at_once = 1 + int(np.argmin(gaps < spacing / 2))
    series = gaps[at_once - 1 :]
    if at_once < 2 or len(series) < _MIN_SERIES_LENGTH:
        return None
    even = float(np.mean(np.abs(series - spacing) <= _EVEN_WITHIN * spacing))
    # From the whole series, for single distances are known to the millisecond only.
    rate = (len(series) - 1) / float(times[-1] - times[at_once])
    return RequestLimit(float(f"{rate:.2g}"), at_once) if even >= _EVEN_SHARE else None


class NodeUsage:
    """How many nodes jobs used, and how many there were."""

    def __init__(self, recordings: Sequence[RecordedRun], nodes: int | None) -> None:
        """`nodes` is how many the cluster had, if the user says so."""
        busiest = max(recordings, key=lambda one: len(_nodes_seen(one)))
        self.used = len(_nodes_seen(busiest))
        self.peak_concurrency = max(peak_concurrency(one) for one in recordings)
        self.stated = busiest.stated_node_count if nodes is None else nodes

    @property
    def system_pods(self) -> tuple[SystemPod, ...]:
        """One pod for each node that no job used; one in all when the number of nodes is not known."""
        count = 1 if self.stated is None else max(0, self.stated - self.used)
        names = ["coredns"] if count == 1 else [f"coredns-{number}" for number in range(1, count + 1)]
        return tuple(SystemPod(name, DNS_REQUESTS) for name in names)


def _nodes_seen(recording: RecordedRun) -> list[str]:
    return sorted({node for node in recording.nodes if node})
