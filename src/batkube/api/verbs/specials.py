"""Resources that are answered rather than kept: reviews, tokens, logs, and what a simulated cluster cannot do."""

from __future__ import annotations

from batkube.api.access.reviews import Reviews
from batkube.api.access.token_requests import TokenRequests
from batkube.api.requests import statuses
from batkube.api.requests.messages import Response
from batkube.api.requests.options import write_options
from batkube.api.requests.statuses import Failure
from batkube.api.requests.writes import Write
from batkube.api.verbs.bodies import Bodies
from batkube.api.verbs.calls import Call, Special
from batkube.api.verbs.logs import NOTHING_YET, checked_container
from batkube.api.verbs.registry import Registry
from batkube.api.verbs.served import Served
from batkube.cluster.kinds import Resource
from batkube.cluster.store import KubeObject

_CANNOT = {
    "attach": "attach to a container",
    "exec": "execute a command in a container",
    "portforward": "forward a port of a pod",
    "proxy": "proxy to a pod, node or service",
}


class Specials:
    """Answers requests about what is not in the store."""

    def __init__(
        self, served: Served, bodies: Bodies, reviews: Reviews, tokens: TokenRequests, registry: Registry
    ) -> None:
        self._served = served
        self._bodies = bodies
        self._reviews = reviews
        self._tokens = tokens
        self._registry = registry

    def handlers(self) -> dict[str, Special]:
        """Return the handlers by resource, or resource and sub-resource."""
        handlers: dict[str, Special] = {
            "serviceaccounts/token": self._token,
            "pods/log": self._log,
            "componentstatuses": self._components,
        }
        for resource in self._served.table.resources():
            if self._reviews.handles(resource):
                handlers[resource.storage] = self._review
            for below in resource.subresources:
                if below in _CANNOT:
                    handlers[f"{resource.storage}/{below}"] = self._refuse
        return handlers

    def _written(self, call: Call) -> Write:
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

    def _answer(self, call: Call, status: int, value: KubeObject, resource: Resource) -> Response:
        body = self._served.view(resource, call.form, "").object(value, call.now)
        return Response(status, body, call.form.media_type, call.headers())

    def _review(self, call: Call) -> Response:
        write = self._written(call)
        value = self._bodies.object(call, write)
        if call.resource.namespaced:
            Registry.match_namespace(write, value)
        value.setdefault("metadata", {})
        self._registry.own(write, value, None)
        return self._answer(call, 201, self._reviews.answer(call.resource, value, call.user, call.now), call.resource)

    def _token(self, call: Call) -> Response:
        write = self._written(call)
        wanted = ("authentication.k8s.io", "v1", "TokenRequest")
        value = self._bodies.other(call, write, *wanted)
        answer = self._tokens.answer(value, call.route.namespace, call.route.name, call.now)
        return self._answer(call, 201, answer, self._served.kind(*wanted))

    def _components(self, call: Call) -> Response:
        """There are no components to ask for their health (the resource is deprecated)."""
        if call.route.name:
            raise statuses.not_found(call.resource, call.route.name)
        body = self._served.view(call.resource, call.form, "").list([], {}, call.now)
        return Response(200, body, call.form.media_type, call.headers())

    def _log(self, call: Call) -> Response:
        """Without kubelets there is nobody who has the log."""
        pod = self._registry.get(call.resource, call.route.namespace, call.route.name)
        checked_container(call, pod)
        node = pod["spec"].get("nodeName")
        if not node:
            return NOTHING_YET
        raise Failure(404, "NotFound", f'nodes "{node}" not found', {"name": node, "kind": "nodes"})

    @staticmethod
    def _check_reachable(pod: KubeObject, subresource: str) -> None:
        """A pod that runs nowhere is refused as the real server would do it."""
        name = pod["metadata"]["name"]
        if subresource == "proxy":
            if not (pod.get("status") or {}).get("podIP"):
                raise statuses.bad_request("address not allowed")
        elif not pod["spec"].get("nodeName"):
            raise statuses.bad_request(f"pod {name} does not have a host assigned")

    def _refuse(self, call: Call) -> Response:
        value = self._registry.get(call.resource, call.route.namespace, call.route.name)
        if call.resource.storage == "pods":
            self._check_reachable(value, call.route.subresource)
        what = _CANNOT[call.route.subresource]
        message = f"a simulated cluster cannot {what}: its containers do not really run"
        raise Failure(501, "NotImplemented", message, {"name": call.route.name, "kind": call.resource.plural})
