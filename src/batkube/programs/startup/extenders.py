"""Scheduler extenders: HTTP services that kube-scheduler calls during scheduling.

Extenders run on real time. A scheduler that waits for one looks idle, so its clock would advance meanwhile. Requests
therefore go through the run's server, which forwards them and stops the clock until the response arrives: an extender
takes no virtual time.
"""

from __future__ import annotations

import http.client
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from batkube.api.requests.messages import JSON, TEXT, Request, Response
from batkube.kernel.errors import InputError

#: The path prefix of extenders on the run's server.
EXTENDERS_PATH = "/extenders/"
#: A request may contain every node in full.
MAX_REQUEST = 1 << 30


def extender_urls(configuration: Mapping[str, Any]) -> list[str]:
    """Return the URL of each extender in a configuration; "" for TLS extenders, which are called directly."""
    return [_plain_url(extender) for extender in configuration.get("extenders") or ()]


def _plain_url(extender: Mapping[str, Any]) -> str:
    url = str(extender.get("urlPrefix") or "")
    return url if urlsplit(url).scheme == "http" and not extender.get("enableHTTPS") else ""


def reject_binding_extenders(configuration: Mapping[str, Any], path: Path) -> None:
    """Reject an extender that binds pods: it would call the API while the clock waits for its response."""
    for number, extender in enumerate(configuration.get("extenders") or ()):
        if extender.get("bindVerb"):
            raise InputError(
                path,
                at=f"extenders[{number}].bindVerb",
                problem="an extender cannot bind pods in virtual time, because it does not use the run's clock",
                remedy="leave binding to the scheduler",
            )


class ExtenderProxy:
    """The extenders of a scheduler, numbered as in its configuration."""

    def __init__(self, urls: Sequence[str], patience_s: float) -> None:
        """`patience_s` is the timeout of a request, in real time."""
        self._urls = urls
        self._patience_s = patience_s

    def rewrite_configuration(self, configuration: Mapping[str, Any], server: str) -> dict[str, Any]:
        """Return a configuration that calls the extenders through `server`."""
        if not any(self._urls):
            return dict(configuration)
        extenders = [
            {**extender, "urlPrefix": f"{server}{EXTENDERS_PATH}{number}"} if url else extender
            for number, (extender, url) in enumerate(zip(configuration["extenders"], self._urls, strict=True))
        ]
        return {**configuration, "extenders": extenders}

    def forward(self, request: Request) -> Response:
        """Forward a request below `EXTENDERS_PATH`; return a gateway error if the extender does not respond."""
        number, _, verb = request.path.removeprefix(EXTENDERS_PATH).partition("/")
        url = self._urls[int(number)].rstrip("/")
        target = urlsplit(f"{url}/{quote(verb)}")
        headers = {"Content-Type": request.headers.get("content-type", JSON)}
        connection = http.client.HTTPConnection(target.hostname or "", target.port, timeout=self._patience_s)
        try:
            connection.request(request.method, target.path, request.body, headers)
            response = connection.getresponse()
            return Response(response.status, response.read(), response.getheader("Content-Type") or JSON)
        except (OSError, http.client.HTTPException) as problem:
            code = http.HTTPStatus.GATEWAY_TIMEOUT if isinstance(problem, TimeoutError) else http.HTTPStatus.BAD_GATEWAY
            return Response(code, f"{url}: {problem}\n".encode(), TEXT)
        finally:
            connection.close()
