"""Requests to a real cluster, as the user of a kubeconfig.

The `kubernetes` package finds out who we are (tokens, certificates, plugins that are run for a token, proxies); the
requests are our own, on its pool of connections, because JSON as it is read is enough here and its classes for every
kind cost more time than the requests do.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec
from yaml import YAMLError

from batkube.cluster.store import KubeObject
from batkube.kernel.errors import InputError, RunFailed

#: How many requests may be under way at once, the watches among them.
CONNECTIONS = 24
_CONNECT_TIMEOUT_S, _READ_TIMEOUT_S = 10.0, 60.0
#: How long the server may keep a watch open; one that is silent for longer than that is lost.
_WATCH_TIMEOUT_S, _WATCH_READ_TIMEOUT_S = 240, 300.0


class ApiStatusError(RunFailed):
    """The server rejected a request (Kubernetes: metav1.Status with status Failure)."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        self.code = code
        self.reason = reason
        super().__init__(f"the cluster refused it: {message} ({code} {reason})")


class ClusterUnreachable(RunFailed):
    """The server did not respond."""


class ClusterConnection:
    """One cluster. Its methods may be called from several threads."""

    def __init__(self, kubeconfig: Path, context: str | None = None) -> None:
        """`context` is that of the kubeconfig to use instead of its current one. Raises InputError."""
        configuration, pool = _connect(kubeconfig, context)
        self._configuration = configuration
        self._pool = pool
        #: Where the server is.
        self.url: str = str(configuration.host).rstrip("/")

    def get(self, path: str, **query: str | int) -> KubeObject:
        """Return the object or collection at `path`."""
        content: KubeObject = msgspec.json.decode(self._request("GET", path, query))
        return content

    def get_bytes(self, path: str, **query: str | int) -> bytes:
        """Return the JSON that is at `path`, not decoded."""
        return self._request("GET", path, query)

    def create(self, path: str, body: Mapping[str, object]) -> KubeObject:
        """Create an object in the collection at `path` and return it as stored."""
        content: KubeObject = msgspec.json.decode(self._request("POST", path, {}, msgspec.json.encode(body)))
        return content

    def replace(self, path: str, body: Mapping[str, object]) -> KubeObject:
        """Replace the object at `path` and return it as stored."""
        content: KubeObject = msgspec.json.decode(self._request("PUT", path, {}, msgspec.json.encode(body)))
        return content

    def delete(self, path: str, **query: str | int) -> None:
        """Delete the object at `path`; ignore NotFound."""
        with contextlib.suppress(NotFoundError):
            self._request("DELETE", path, query)

    def is_ready(self) -> bool:
        """Return whether the server is ready (/readyz)."""
        return bool(self._send("GET", "/readyz", {}, None, _READ_TIMEOUT_S).status == 200)

    def exists(self, path: str) -> bool:
        """Return whether `path` exists."""
        try:
            self.get(path)
        except NotFoundError:
            return False
        return True

    def watch(self, path: str, **query: str | int) -> Iterator[bytes]:
        """Yield the lines of a watch, each as soon as it arrives, until the server ends it."""
        response = self._send(
            "GET", path, {**query, "watch": "true", "timeoutSeconds": _WATCH_TIMEOUT_S}, None, _WATCH_READ_TIMEOUT_S
        )
        try:
            if response.status != 200:
                raise _status_error(response.status, response.data)
            yield from _lines(response.stream(amt=65536, decode_content=True))
        except OSError as error:
            raise ClusterUnreachable(f"{self.url}: {error}") from error
        except _pool_errors() as error:
            raise ClusterUnreachable(f"{self.url}: {_cause(error)}") from error
        finally:
            response.close()

    def _request(self, method: str, path: str, query: Mapping[str, str | int], body: bytes | None = None) -> bytes:
        response = self._send(method, path, query, body, _READ_TIMEOUT_S)
        data: bytes = response.data
        if response.status >= 300:
            raise _status_error(response.status, data)
        return data

    def _send(self, method: str, path: str, query: Mapping[str, str | int], body: bytes | None, answer_s: float) -> Any:  # noqa: ANN401
        from urllib3 import Timeout

        url = f"{self.url}{path}?{urlencode(query)}" if query else self.url + path
        headers = {"Accept": "application/json", "Content-Type": "application/json", "User-Agent": "batkube"}
        for setting in self._configuration.auth_settings().values():
            headers[setting["key"]] = setting["value"]
        try:
            return self._pool.request(
                method,
                url,
                body=body,
                headers=headers,
                timeout=Timeout(connect=_CONNECT_TIMEOUT_S, read=answer_s),
                preload_content=answer_s == _READ_TIMEOUT_S,
                retries=False,
            )
        except _pool_errors() as error:
            raise ClusterUnreachable(f"{self.url} cannot be reached: {_cause(error)}") from error


class NotFoundError(ApiStatusError):
    """There is no such object."""


def _connect(kubeconfig: Path, context: str | None) -> tuple[Any, Any]:
    """Return the client's configuration and its pool of connections."""
    try:
        from kubernetes import client, config
    except ImportError as error:
        raise InputError(
            "a cluster's kubeconfig",
            problem="needs the Python client of Kubernetes, which is not installed",
            remedy="pip install 'batkube[emulate]'",
        ) from error
    if not kubeconfig.is_file():
        raise InputError(kubeconfig, problem="no such file", remedy="use the kubeconfig of a cluster")
    configuration = client.Configuration()
    configuration.connection_pool_maxsize = CONNECTIONS
    try:
        load: Callable[..., None] = config.load_kube_config
        load(str(kubeconfig), context, client_configuration=configuration, persist_config=False)
    except (config.ConfigException, YAMLError) as error:
        message = " ".join(str(error).split())
        raise InputError(
            kubeconfig, problem=f"is not a kubeconfig that can be used: {message}", remedy="try it with kubectl"
        ) from error
    except Exception as error:  # whatever a file of another kind makes the loader stumble over
        raise InputError(kubeconfig, problem="is not a kubeconfig", remedy="try it with kubectl") from error
    return configuration, client.ApiClient(configuration).rest_client.pool_manager


def _pool_errors() -> type[Exception]:
    from urllib3.exceptions import HTTPError

    return HTTPError


def _cause(error: BaseException) -> str:
    """Return the root cause of a connection pool's error."""
    reason = getattr(error, "reason", None) or error
    return str(reason).rpartition("): ")[2]


def _status_error(code: int, body: bytes) -> ApiStatusError:
    try:
        status = json.loads(body)
        reason, message = str(status.get("reason", "")), str(status.get("message", ""))
    except (ValueError, AttributeError):
        reason, message = "", body[:200].decode(errors="replace").strip()
    return (NotFoundError if code == 404 else ApiStatusError)(code, reason, message)


def _lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        yield from filter(None, whole)
