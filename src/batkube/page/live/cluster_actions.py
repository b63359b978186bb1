"""The actions of a live page on a served cluster.

They are what an administrator does with kubectl, through the same API: a refusal has the API's own words. The failure
of a node is not a request, as in the events of a run; loads are those of the rules.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import msgspec

from batkube.cluster.client import ApiError
from batkube.cluster.object_meta import key_of
from batkube.cluster.pods.accessors import eviction_of, is_evicted_by_drain
from batkube.cluster.store import KubeObject
from batkube.files.yaml_reader import yaml_documents
from batkube.kernel.errors import InputError
from batkube.kernel.quantities import CPU, format_amount, parse_amount
from batkube.page.live.action_requests import (
    ActionRequest,
    AnyAction,
    Apply,
    Cordon,
    Drain,
    Fail,
    Restore,
    Scale,
    SetLoad,
    Uncordon,
)
from batkube.page.live.api_client import ApiClient
from batkube.page.server import InvalidCommand
from batkube.serving.observed_cluster import ObservedCluster

_MAX_COPIES = 1000
#: How many refusals of one action are reported; the others are counted.
_MAX_REFUSALS = 3
#: Kinds that the page lists for scaling.
_SCALABLE = (("apps", "deployments", "Deployment"), ("apps", "statefulsets", "StatefulSet"))


class ClusterActions:
    """Carries out actions. Its methods may be called from any thread but that of the event loop."""

    def __init__(self, cluster: ObservedCluster) -> None:
        self._cluster = cluster
        #: The client through which they are carried out.
        self.client = ApiClient(cluster.api)
        self._handlers: dict[type[ActionRequest], Callable[[Any], str]] = {
            Apply: self._apply,
            Cordon: lambda request: self._cordon(request.node, is_cordoned=True),
            Uncordon: lambda request: self._cordon(request.node, is_cordoned=False),
            Drain: self._drain,
            Fail: lambda request: _accepted(cluster.fail_node(request.node), f"node {request.node} failed"),
            Restore: lambda request: _accepted(cluster.restore_node(request.node), f"node {request.node} returned"),
            Scale: self._scale,
            SetLoad: self._set_load,
        }

    def carry_out(self, body: bytes) -> tuple[str, bytes]:
        """Carry out an action; return what was done, or why not, as JSON. Raises InvalidCommand."""
        try:
            request = cast(ActionRequest, msgspec.json.decode(body, type=AnyAction))
        except msgspec.MsgspecError as error:
            raise InvalidCommand(str(error)) from error
        if any("/" in getattr(request, field, "") for field in ("node", "namespace", "name")):
            raise InvalidCommand("a name contains a slash")
        try:
            answer = {"message": self._handlers[type(request)](request), "isRefused": False}
        except (ApiError, InputError) as error:
            answer = {"message": str(error), "isRefused": True}
        return "application/json", msgspec.json.encode(answer)

    def choices(self, _: object = None) -> tuple[str, bytes]:
        """Return what can be scaled, and the loads, as JSON."""
        scalable = []
        for group, plural, kind in _SCALABLE:
            for item in self.client.get(f"/apis/{group}/v1/{plural}")["items"]:
                meta, replicas = item["metadata"], item["spec"].get("replicas", 1)
                scalable.append(
                    {"kind": kind, "namespace": meta["namespace"], "name": meta["name"], "replicas": replicas}
                )
        loads = [
            {"rule": load.rule, "containers": load.containers, "cpu": format_amount(CPU, load.millicores)}
            for load in self._cluster.loads()
        ]
        return "application/json", msgspec.json.encode({"scalable": scalable, "loads": loads})

    def _apply(self, request: Apply) -> str:
        if not 1 <= request.copies <= _MAX_COPIES:
            raise InputError("copies", problem=f"cannot be {request.copies}", remedy=f"use 1 to {_MAX_COPIES}")
        manifests = [_checked(document) for document in yaml_documents(Path("manifest"), request.manifest)]
        if not manifests:
            raise InputError("manifest", problem="contains no object", remedy="write apiVersion, kind and metadata")
        if request.copies > 1 and any(manifest["metadata"].get("name") for manifest in manifests):
            problem = f"cannot be created {request.copies} times, because its object has a name"
            raise InputError("manifest", problem=problem, remedy="use generateName instead of name")
        names = []
        for manifest in manifests:
            for _ in range(request.copies):
                resource, key = self.client.manifests.apply(manifest)
                names.append(f"{resource.kind} {key}")
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        return f"applied {names[0]}{more}"

    def _cordon(self, node: str, *, is_cordoned: bool) -> str:
        # kubectl removes the field instead of setting it to false, and so does a null.
        self.client.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": True if is_cordoned else None}})
        return f"node {node} is {'cordoned' if is_cordoned else 'schedulable again'}"

    def _drain(self, request: Drain) -> str:
        """Cordon a node, and evict its pods as `kubectl drain --ignore-daemonsets --force` does, without retries."""
        self._cordon(request.node, is_cordoned=True)
        pods = self.client.get("/api/v1/pods", fieldSelector=f"spec.nodeName={request.node}")["items"]
        leaving = [pod for pod in pods if is_evicted_by_drain(pod)]
        refusals = [refusal for pod in leaving if (refusal := self._evict(pod))]
        if refusals:
            shown = "; ".join(refusals[:_MAX_REFUSALS])
            more = f"; and {len(refusals) - _MAX_REFUSALS} more" if len(refusals) > _MAX_REFUSALS else ""
            message = f"{len(refusals)} of {len(leaving)} pods were not evicted: {shown}{more}"
            raise ApiError(429, "TooManyRequests", message)
        return f"node {request.node} is cordoned, and {len(leaving)} pods are evicted"

    def _evict(self, pod: KubeObject) -> str:
        """Evict a pod; return why it is refused, if it is."""
        meta = pod["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/eviction"
        try:
            self.client.create(path, eviction_of(key_of(pod)))
        except ApiError as refusal:
            return "" if refusal.code == 404 else f"{meta['name']}: {refusal.message}"
        return ""

    def _scale(self, request: Scale) -> str:
        self.client.manifests.scale(request.kind, request.namespace, request.name, request.replicas)
        return f"{request.kind} {request.namespace}/{request.name} is scaled to {request.replicas}"

    def _set_load(self, request: SetLoad) -> str:
        try:
            millicores = parse_amount(CPU, request.cpu)
        except ValueError as error:
            raise InputError("load", problem=str(error), remedy="write cores, such as 2.5 or 500m") from error
        if millicores < 0:
            raise InputError("load", problem=f"cannot be {request.cpu}", remedy="write 0 or more cores")
        if not self._cluster.set_load(request.rule, millicores):
            raise InputError("load", problem=f"no rule at {request.rule} has one", remedy="reload the page")
        return f"the load of {request.rule} is {request.cpu} cores from now on"


def _accepted(refusal: str, message: str) -> str:
    if refusal:
        raise ApiError(409, "Conflict", refusal)
    return message


def _checked(document: object) -> KubeObject:
    """Return an object of a manifest. Raises InputError unless it has a kind and a name."""
    if isinstance(document, dict) and isinstance(document.get("metadata"), dict):
        meta = document["metadata"]
        if document.get("apiVersion") and document.get("kind") and (meta.get("name") or meta.get("generateName")):
            return document
    problem = "is not a Kubernetes object"
    raise InputError("manifest", problem=problem, remedy="write apiVersion, kind, and metadata with a name")
