"""How a webhook is reached: by a URL, or by a service that leads to somebody who really listens.

Kubernetes: apiserver/pkg/util/webhook/client.go and util/proxy/proxy.go (ResolveEndpoint). The pods of a simulated
service do not run, so nobody listens there; a service of type ExternalName, or one without a selector whose endpoints
somebody has written, leads out of the simulation.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from batkube.api.requests.webhooks.calls import WebhookRequest
from batkube.cluster.store import Key, KubeObject, Store
from batkube.kernel.fidelity import FidelityNote, FidelityNotes

_SIMULATED_SERVICE_NOTE = FidelityNote("api", "a webhook's service leads to simulated pods, where nobody answers")
_ENDPOINT_SLICES = "endpointslices.discovery.k8s.io"


class WebhookEndpoint(NamedTuple):
    """Where to connect to, or why that cannot be."""

    host: str
    port: int
    unreachable_reason: str = ""


class WebhookRequestBuilder:
    """Makes questions for webhooks."""

    def __init__(self, store: Store, notes: FidelityNotes) -> None:
        self._store = store
        self._notes = notes

    def build(self, client: KubeObject, body: bytes, timeout_s: int) -> WebhookRequest:
        """Return the question to the webhook of a `clientConfig`, which is told how long it has."""
        authorities = _decode_ca_bundle(client.get("caBundle"))
        query = f"?timeout={timeout_s}s"
        if client.get("url"):
            parts = urlsplit(client["url"])
            host, port = parts.hostname or "", parts.port or 443
            return WebhookRequest(f"{client['url']}{query}", host, port, host, authorities, body, timeout_s)
        service = client["service"]
        name, port = f"{service['name']}.{service['namespace']}.svc", service.get("port", 443)
        place = self._resolve_service(service["namespace"], service["name"], port)
        url = f"https://{name}:{port}{service.get('path') or '/'}{query}"
        return WebhookRequest(url, place.host, place.port, name, authorities, body, timeout_s, place.unreachable_reason)

    def _resolve_service(self, namespace: str, name: str, port: int) -> WebhookEndpoint:
        service = self._store.get("services", Key(f"{namespace}/{name}"))
        if service is None:
            return WebhookEndpoint("", 0, f'service "{name}" not found')
        spec = service["spec"]
        if spec.get("type") == "ExternalName":
            return WebhookEndpoint(spec["externalName"], port)
        wanted = next((each for each in spec.get("ports") or () if each["port"] == port), None)
        if wanted is None:
            return WebhookEndpoint("", 0, f'no service port {port} found for service "{name}"')
        for endpoint, number in self._ready_endpoints(namespace, name, wanted.get("name", "")):
            if (endpoint.get("targetRef") or {}).get("kind") != "Pod":
                return WebhookEndpoint(endpoint["addresses"][0], number)
            self._notes.add(_SIMULATED_SERVICE_NOTE, example=f"{namespace}/{name}")
            return WebhookEndpoint("", 0, f"dial tcp {endpoint['addresses'][0]}:{number}: connect: connection refused")
        return WebhookEndpoint("", 0, f'no endpoints available for service "{name}"')

    def _ready_endpoints(self, namespace: str, name: str, port_name: str) -> list[tuple[dict[str, Any], int]]:
        """Return the ready endpoints of a service, each with the number of a port."""
        found = []
        for _, value in self._store.in_namespace(_ENDPOINT_SLICES, namespace):
            labels = value["metadata"].get("labels") or {}
            if labels.get("kubernetes.io/service-name") != name:
                continue
            ports = [each for each in value.get("ports") or () if (each.get("name") or "") == port_name]
            for endpoint in value.get("endpoints") or ():
                if ports and (endpoint.get("conditions") or {}).get("ready", True):
                    found.append((endpoint, ports[0]["port"]))
        return found


def _decode_ca_bundle(bundle: str | None) -> str:
    """Return the authorities of a `caBundle`."""
    try:
        return base64.b64decode(bundle or "").decode()
    except (binascii.Error, UnicodeDecodeError):
        return "no certificate"
