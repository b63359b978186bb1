"""metrics.k8s.io: resource usage of pods and nodes, for `kubectl top` and autoscalers.

The usage of a node is the sum of its pods. Kubernetes: k8s.io/metrics, metrics-server.
"""

from __future__ import annotations

from collections.abc import Iterable

from batkube.api.requests import statuses
from batkube.api.requests.messages import JSON, Response
from batkube.api.requests.methods import method_not_allowed
from batkube.api.requests.negotiation import YAML
from batkube.api.requests.options import list_options
from batkube.api.verbs.handlers.object_request import ObjectRequest, SpecialHandler
from batkube.api.verbs.kinds.object_encoding import encode
from batkube.api.verbs.storage.selection import Selection
from batkube.cluster.pods.accessors import is_running, node_of_pod
from batkube.cluster.pods.usage import WINDOW, PodUsage, Usage
from batkube.cluster.store import Key, KubeObject, Store
from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Instant, rfc3339
from batkube.kernel.quantities import CPU, MEMORY, Format, Quantity

_VERSION = "metrics.k8s.io/v1beta1"
_ZERO = Quantity(0)


class MetricsApi:
    """Handles requests for the usage of pods and nodes."""

    def __init__(self, store: Store, usage: PodUsage) -> None:
        self._store = store
        self._pod_usage = usage

    def handlers(self) -> dict[str, SpecialHandler]:
        """Return the handlers by resource."""
        return {"pods.metrics.k8s.io": self._handle_pods, "nodes.metrics.k8s.io": self._handle_nodes}

    def _handle_pods(self, call: ObjectRequest) -> Response:
        route = call.route
        if route.verb == "get":
            pod = self._store.get("pods", Key(f"{route.namespace}/{route.name}"))
            if pod is None or not is_running(pod):
                raise statuses.not_found(call.resource, f"{route.namespace}/{route.name}")
            return _respond(call, self._pod_metrics(call, pod))
        items = [
            self._pod_metrics(call, pod)
            for _, (pod, _) in _selection(call).select(self._store.view("pods"))
            if is_running(pod)
        ]
        return _respond(call, _metrics_list(call, items))

    def _handle_nodes(self, call: ObjectRequest) -> Response:
        route = call.route
        usage = self._usage_by_node(call.now)
        if route.verb == "get":
            node = self._store.get("nodes", Key(route.name))
            if node is None:
                raise statuses.not_found(call.resource, route.name)
            return _respond(
                call, _metrics_object(call, node, "NodeMetrics", usage=_format_usage(usage.get(route.name, {})))
            )
        items = [
            _metrics_object(call, node, "NodeMetrics", usage=_format_usage(usage.get(key, {})))
            for key, (node, _) in _selection(call).select(self._store.view("nodes"))
        ]
        return _respond(call, _metrics_list(call, items))

    def _usage_by_node(self, now: Instant) -> dict[str, Usage]:
        totals: dict[str, Usage] = {}
        for pod, _ in self._store.entries("pods").values():
            if is_running(pod):
                total = totals.setdefault(node_of_pod(pod), {})
                for usage in self._pod_usage.of(pod, now).values():
                    for resource, used in usage.items():
                        total[resource] = total.get(resource, _ZERO) + used
        return totals

    def _pod_metrics(self, call: ObjectRequest, pod: KubeObject) -> KubeObject:
        usages = self._pod_usage.of(pod, call.now)
        containers = [{"name": name, "usage": _format_usage(usage)} for name, usage in usages.items()]
        return _metrics_object(call, pod, "PodMetrics", containers=containers)


def _format_usage(usage: Usage) -> dict[str, str]:
    """Format usage as metrics-server does: cpu in nanocores, memory in Ki."""
    cpu, memory = usage.get(CPU, _ZERO), usage.get(MEMORY, _ZERO)
    whole_ki = memory.value // 1024 * 1024
    return {
        CPU: f"{cpu.nanos}n" if cpu.nanos else "0",
        MEMORY: f"{whole_ki // 1024}Ki" if whole_ki else str(Quantity(0, Format.BINARY_SI)),
    }


def _metrics_object(call: ObjectRequest, of: KubeObject, kind: str, **measures: object) -> KubeObject:
    metadata = of["metadata"]
    copied = {name: metadata[name] for name in ("name", "namespace", "labels") if metadata.get(name)}
    return {
        "kind": kind,
        "apiVersion": _VERSION,
        "metadata": {**copied, "creationTimestamp": rfc3339(call.now)},
        "timestamp": rfc3339(call.now),
        "window": f"{WINDOW // NANOSECONDS_PER_SECOND}s",
        **measures,
    }


def _selection(call: ObjectRequest) -> Selection:
    """Return the selection of a list, with its field selector: the client may be authorized for one name only."""
    if call.route.verb != "list":
        raise method_not_allowed()
    return Selection(call.route.namespace, "", list_options(call.request, call.resource, watch=False))


def _metrics_list(call: ObjectRequest, items: Iterable[KubeObject]) -> KubeObject:
    kind = f"{call.resource.kind}List"
    return {"kind": kind, "apiVersion": _VERSION, "metadata": {}, "items": list(items)}


def _respond(call: ObjectRequest, value: KubeObject) -> Response:
    """Return a response in JSON or YAML. Clients that prefer protobuf accept JSON too."""
    media_type = YAML if call.form.media_type == YAML else JSON
    return Response(200, encode(value, media_type), media_type, call.warning_headers())
