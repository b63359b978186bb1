"""Handlers of resources that are not stored: reviews, token requests, logs, and unsupported actions such as exec."""

from __future__ import annotations

from batkube.api.access.reviews import ReviewEvaluator
from batkube.api.access.token_requests import TokenRequestHandler
from batkube.api.requests import statuses
from batkube.api.requests.messages import Response
from batkube.api.requests.options import write_options
from batkube.api.requests.statuses import Failure
from batkube.api.requests.writes import Write
from batkube.api.verbs.handlers.body_decoder import BodyDecoder
from batkube.api.verbs.handlers.logs import EMPTY_LOG, selected_container
from batkube.api.verbs.handlers.object_request import ObjectRequest, SpecialHandler
from batkube.api.verbs.kinds.served_kinds import ServedKinds
from batkube.api.verbs.storage.registry import Registry
from batkube.cluster.kinds import Resource
from batkube.cluster.store import KubeObject

_UNSUPPORTED_ACTIONS = {
    "attach": "attach to a container",
    "exec": "execute a command in a container",
    "portforward": "forward a port of a pod",
    "proxy": "proxy to a pod, node or service",
}


class SpecialHandlers:
    """Handles requests about resources that are not stored."""

    def __init__(
        self,
        served: ServedKinds,
        bodies: BodyDecoder,
        reviews: ReviewEvaluator,
        tokens: TokenRequestHandler,
        registry: Registry,
    ) -> None:
        self._served_kinds = served
        self._body_decoder = bodies
        self._reviews = reviews
        self._token_requests = tokens
        self._registry = registry

    def handlers(self) -> dict[str, SpecialHandler]:
        """Return the handlers by resource, or by resource and subresource."""
        handlers: dict[str, SpecialHandler] = {
            "serviceaccounts/token": self._handle_token_request,
            "pods/log": self._handle_log,
            "componentstatuses": self._handle_component_statuses,
        }
        for resource in self._served_kinds.kind_table.resources():
            if self._reviews.is_review(resource):
                handlers[resource.storage] = self._handle_review
            for below in resource.subresources:
                if below in _UNSUPPORTED_ACTIONS:
                    handlers[f"{resource.storage}/{below}"] = self._reject_unsupported
        return handlers

    def _new_write(self, call: ObjectRequest) -> Write:
        route = call.route
        return Write(
            call.resource,
            call.resource,
            route.namespace,
            route.name,
            route.subresource,
            write_options(call.request, "CreateOptions"),
            call.user,
            call.now,
            call.warnings,
        )

    def _respond(self, call: ObjectRequest, status: int, value: KubeObject, resource: Resource) -> Response:
        body = self._served_kinds.encoder(resource, call.form, "").encode_object(value, call.now)
        return Response(status, body, call.form.media_type, call.warning_headers())

    def _handle_review(self, call: ObjectRequest) -> Response:
        write = self._new_write(call)
        value = self._body_decoder.decode_object(call, write)
        if call.resource.namespaced:
            Registry.set_or_check_namespace(write, value)
        value.setdefault("metadata", {})
        self._registry.set_managed_fields(write, value, None)
        return self._respond(
            call, 201, self._reviews.evaluate(call.resource, value, call.user, call.now), call.resource
        )

    def _handle_token_request(self, call: ObjectRequest) -> Response:
        write = self._new_write(call)
        kind = ("authentication.k8s.io", "v1", "TokenRequest")
        value = self._body_decoder.decode_kind(call, write, *kind)
        issued = self._token_requests.issue(value, call.route.namespace, call.route.name, call.now)
        return self._respond(call, 201, issued, self._served_kinds.resource_of_kind(*kind))

    def _handle_component_statuses(self, call: ObjectRequest) -> Response:
        """Return an empty list: there are no components to probe (the resource is deprecated)."""
        if call.route.name:
            raise statuses.not_found(call.resource, call.route.name)
        body = self._served_kinds.encoder(call.resource, call.form, "").encode_list([], {}, call.now)
        return Response(200, body, call.form.media_type, call.warning_headers())

    def _handle_log(self, call: ObjectRequest) -> Response:
        """Return a failure: without kubelets there are no logs."""
        pod = self._registry.get(call.resource, call.route.namespace, call.route.name)
        selected_container(call, pod)
        node = pod["spec"].get("nodeName")
        if not node:
            return EMPTY_LOG
        raise Failure(404, "NotFound", f'nodes "{node}" not found', {"name": node, "kind": "nodes"})

    @staticmethod
    def _check_pod_reachable(pod: KubeObject, subresource: str) -> None:
        """Raise kube-apiserver's error for a pod that is not running on a node."""
        name = pod["metadata"]["name"]
        if subresource == "proxy":
            if not (pod.get("status") or {}).get("podIP"):
                raise statuses.bad_request("address not allowed")
        elif not pod["spec"].get("nodeName"):
            raise statuses.bad_request(f"pod {name} does not have a host assigned")

    def _reject_unsupported(self, call: ObjectRequest) -> Response:
        value = self._registry.get(call.resource, call.route.namespace, call.route.name)
        if call.resource.storage == "pods":
            self._check_pod_reachable(value, call.route.subresource)
        action = _UNSUPPORTED_ACTIONS[call.route.subresource]
        message = f"a simulated cluster cannot {action}: its containers do not really run"
        raise Failure(501, "NotImplemented", message, {"name": call.route.name, "kind": call.resource.plural})
