"""Objects as YAML text: as the API has them, or as far as the recording of a run tells."""

from __future__ import annotations

from typing import Any

import yaml

from batkube.cluster.store import KubeObject
from batkube.kernel.instants import format_seconds
from batkube.kernel.quantities import format_amount
from batkube.outputs.playback.model import RecordedJob, RecordedNode, RecordedPod
from batkube.outputs.writers.nodes_csv import RACK_LABELS, ZONE_LABELS

_FROM_POD_TABLE = (
    "# From pods.csv, as it was at the end of the run. Not recorded: labels, annotations, containers,\n"
    "# volumes, conditions and managed fields. The requests are those of all containers together.\n"
)
_FROM_NODE_TABLE = (
    "# From nodes.csv. Not recorded: other labels, by which names the node had these ones, annotations, taints,\n"
    "# addresses and conditions.\n"
)
_POOL_LABEL = "node.kubernetes.io/pool"
_FROM_JOB_TABLE = "# From jobs.csv and the journal, as in a workload. Not recorded: the profile's content.\n"
_OF_LIVE_JOB = "# As in the workload, without the profile.\n"


def object_yaml(value: KubeObject) -> str:
    """Return an object as `kubectl get -o yaml` prints it: without its managed fields."""
    metadata = {name: field for name, field in value.get("metadata", {}).items() if name != "managedFields"}
    return _dump({**value, "metadata": metadata})


def recorded_pod_yaml(pod: RecordedPod) -> str:
    """Return a recorded pod."""
    namespace, _, name = pod.name.rpartition("/")
    kind, _, owner = pod.owner.partition("/")
    metadata: dict[str, Any] = {"name": name, "namespace": namespace or "default"}
    if owner:
        metadata["ownerReferences"] = [{"kind": kind, "name": owner}]
    requests = {resource: format_amount(resource, amount) for resource, amount in pod.requests.items() if amount}
    spec: dict[str, Any] = {"nodeName": pod.node} if pod.node else {}
    spec |= {"resources": {"requests": requests}} if requests else {}
    status = {"phase": pod.phase, **({"message": pod.reason} if pod.reason else {})}
    return _FROM_POD_TABLE + _dump(
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}
    )


def recorded_node_yaml(node: RecordedNode) -> str:
    """Return a recorded node."""
    labels = {
        ZONE_LABELS[0]: node.zone,
        RACK_LABELS[0]: node.rack,
        _POOL_LABEL: node.pool,
    }
    labels = {name: value for name, value in labels.items() if value}
    metadata: dict[str, Any] = {"name": node.name, **({"labels": labels} if labels else {})}
    allocatable = {name: format_amount(name, amount) for name, amount in node.capacity.items() if amount}
    value = {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": {"allocatable": allocatable}}
    return _FROM_NODE_TABLE + _dump(value)


def recorded_job_yaml(job: RecordedJob, *, is_live: bool = False) -> str:
    """Return a job of a workload, with Batsim's names."""
    entry: dict[str, Any] = {"id": job.key}
    if job.executions:
        entry["subtime"] = _seconds(job.submitted)
    optional = {
        "res": job.size,
        "walltime": None if job.walltime is None else _seconds(job.walltime),
        "user": job.user,
        "priority": job.priority,
        "scheduler": job.scheduler,
    }
    entry |= {name: value for name, value in optional.items() if value}
    return (_OF_LIVE_JOB if is_live else _FROM_JOB_TABLE) + _dump(entry)


def _seconds(length: int) -> int | float:
    value = float(format_seconds(length))
    return int(value) if value.is_integer() else value


def _dump(value: dict[str, Any]) -> str:
    # A width as in kubectl, which does not break lines.
    return str(yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=1 << 16))
