"""Build webhook requests from a `clientConfig`: a URL, or a service that has a real endpoint.

Kubernetes: apiserver/pkg/util/webhook/client.go, apiserver/pkg/util/proxy/proxy.go (ResolveEndpoint).

Simulated pods run no code, so a service that selects them refuses connections. A service of type ExternalName, or one
without a selector and with manually written endpoints, can refer to a server outside the simulation.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from batkube.api.requests.webhooks.calls import WebhookRequest
from batkube.cluster.store import Key, KubeObject, Store
from batkube.kernel.fidelity import FidelityNote, FidelityNotes

_SIMULATED_SERVICE_NOTE = FidelityNote("api", "a webhook's service selects simulated pods, which refuse connections")
_ENDPOINT_SLICES = "endpointslices.discovery.k8s.io"


class WebhookEndpoint(NamedTuple):
    """The address to connect to, or the reason why there is none."""

    host: str
    port: int
    unreachable_reason: str = ""


class WebhookRequestBuilder:
    """Builds requests to webhooks."""

    def __init__(self, store: Store, notes: FidelityNotes) -> None:
        self._store = store
        self._notes = notes

    def build(self, client: KubeObject, body: bytes, timeout_s: int) -> WebhookRequest:
        """Return the request to the webhook of a `clientConfig`; the timeout is also sent as a query parameter."""
        authorities = _decode_ca_bundle(client.get("caBundle"))
        query = f"?timeout={timeout_s}s"
        if client.get("url"):
            host, port, reason = _address_of(client["url"])
            return WebhookRequest(f"{client['url']}{query}", host, port, host, authorities, body, timeout_s, reason)
        service = client["service"]
        name, port = f"{service['name']}.{service['namespace']}.svc", service.get("port", 443)
        endpoint = self._resolve_service(service["namespace"], service["name"], port)
        url = f"https://{name}:{port}{service.get('path') or '/'}{query}"
        return WebhookRequest(
            url, endpoint.host, endpoint.port, name, authorities, body, timeout_s, endpoint.unreachable_reason
        )

    def _resolve_service(self, namespace: str, name: str, port: int) -> WebhookEndpoint:
        service = self._store.get("services", Key(f"{namespace}/{name}"))
        if service is None:
            return WebhookEndpoint("", 0, f'service "{name}" not found')
        spec = service["spec"]
        if spec.get("type") == "ExternalName":
            return WebhookEndpoint(spec["externalName"], port)
        service_port = next((each for each in spec.get("ports") or () if each["port"] == port), None)
        if service_port is None:
            return WebhookEndpoint("", 0, f'no service port {port} found for service "{name}"')
        for endpoint, number in self._ready_endpoints(namespace, name, service_port.get("name", "")):
            if (endpoint.get("targetRef") or {}).get("kind") != "Pod":
                return WebhookEndpoint(endpoint["addresses"][0], number)
            self._notes.add(_SIMULATED_SERVICE_NOTE, example=f"{namespace}/{name}")
            return WebhookEndpoint("", 0, f"dial tcp {endpoint['addresses'][0]}:{number}: connect: connection refused")
        return WebhookEndpoint("", 0, f'no endpoints available for service "{name}"')

    def _ready_endpoints(self, namespace: str, name: str, port_name: str) -> list[tuple[dict[str, Any], int]]:
        """Return the ready endpoints of a service, each with the port number of `port_name`."""
        ready = []
        for _, value in self._store.in_namespace(_ENDPOINT_SLICES, namespace):
            labels = value["metadata"].get("labels") or {}
            if labels.get("kubernetes.io/service-name") != name:
                continue
            ports = [each for each in value.get("ports") or () if (each.get("name") or "") == port_name]
            for endpoint in value.get("endpoints") or ():
                if ports and (endpoint.get("conditions") or {}).get("ready", True):
                    ready.append((endpoint, ports[0]["port"]))
        return ready


def _address_of(url: str) -> WebhookEndpoint:
    """Return the address in a URL; kube-apiserver finds an invalid port only when it dials (Go: net.Dial)."""
    parts = urlsplit(url)
    host, number = parts.hostname or "", parts.netloc.rpartition("@")[2].rpartition("]")[2].partition(":")[2]
    try:
        return WebhookEndpoint(host, parts.port or 443)
    except ValueError:
        return WebhookEndpoint(host, 0, f"dial tcp: address {number}: invalid port")


def _decode_ca_bundle(bundle: str | None) -> str:
    """Return a `caBundle` as PEM; an undecodable one becomes a text that no certificate parser accepts."""
    try:
        return base64.b64decode(bundle or "").decode()
    except (binascii.Error, UnicodeDecodeError):
        return "no certificate"
