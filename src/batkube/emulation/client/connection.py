"""Requests to a real cluster, as the user of a kubeconfig.

The `kubernetes` package reads the kubeconfig and authenticates (tokens, certificates, credential plugins, proxies).
Requests use its connection pool directly and return plain JSON: its generated class for each kind would cost more time
than the requests themselves.
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
from batkube.emulation.client.timed_responses import time_responses
from batkube.kernel.errors import InputError, RunFailed
from batkube.kernel.stopwatch import Stopwatch

#: The maximum number of concurrent requests, watches included.
CONNECTIONS = 24
_CONNECT_TIMEOUT_S, _READ_TIMEOUT_S = 10.0, 60.0
#: The maximum time and size of a response, and the size of an event of a watch: etcd's objects have 1.5 MiB at most.
_RESPONSE_TIMEOUT_S = 300.0
_MAX_RESPONSE_BYTES, _MAX_EVENT_BYTES = 512 << 20, 16 << 20
_CHUNK_BYTES = 65536
#: The timeout of a watch at the server, and the longer one after which a silent watch has failed.
_WATCH_TIMEOUT_S, _WATCH_READ_TIMEOUT_S = 240, 300.0


class ApiStatusError(RunFailed):
    """The server rejected a request (Kubernetes: metav1.Status with status Failure)."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        self.code = code
        self.reason = reason
        super().__init__(f"the cluster rejected the request: {message} ({code} {reason})")


class ClusterUnreachable(RunFailed):
    """The server did not respond."""


class InvalidResponse(RunFailed):
    """The server sent something that no Kubernetes API server sends."""


@contextlib.contextmanager
def expected_shape(source: str) -> Iterator[None]:
    """Raise InvalidResponse if the block fails because an object of the server lacks a field or has a wrong type."""
    try:
        yield
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
        msgspec.MsgspecError,
    ) as error:
        problem = f"{type(error).__name__}: {error}"
        raise InvalidResponse(f"{source} is not as a Kubernetes API server sends it ({problem})") from error


class ClusterConnection:
    """One cluster. Its methods may be called from several threads."""

    def __init__(self, kubeconfig: Path, context: str | None = None, *, request_s: float = _RESPONSE_TIMEOUT_S) -> None:
        """Connect with a context of the kubeconfig, or with its current one if `context` is None. Raises InputError.

        Each request but a watch may take `request_s`, and no more than five minutes.
        """
        configuration, pool = _connect(kubeconfig, context)
        self._configuration = configuration
        self._pool = pool
        self._request_s = min(request_s, _RESPONSE_TIMEOUT_S)
        #: The server's URL.
        self.url: str = str(configuration.host).rstrip("/")

    def get(self, path: str, **query: str | int) -> KubeObject:
        """Return the object or collection at `path`."""
        return _decode_object(path, self._request("GET", path, query))

    def get_bytes(self, path: str, **query: str | int) -> bytes:
        """Return the JSON at `path`, not decoded."""
        return self._request("GET", path, query)

    def create(self, path: str, body: Mapping[str, object]) -> KubeObject:
        """Create an object in the collection at `path` and return it as stored."""
        return _decode_object(path, self._request("POST", path, {}, msgspec.json.encode(body)))

    def replace(self, path: str, body: Mapping[str, object]) -> KubeObject:
        """Replace the object at `path` and return it as stored."""
        return _decode_object(path, self._request("PUT", path, {}, msgspec.json.encode(body)))

    def delete(self, path: str, **query: str | int) -> None:
        """Delete the object at `path`; ignore NotFound."""
        with contextlib.suppress(NotFoundError):
            self._request("DELETE", path, query)

    def is_ready(self) -> bool:
        """Return whether the server is ready (/readyz)."""
        response = self._send("GET", "/readyz", {}, None, _READ_TIMEOUT_S)
        response.close()
        return bool(response.status == 200)

    def exists(self, path: str) -> bool:
        """Return whether `path` exists."""
        try:
            self.get(path)
        except NotFoundError:
            return False
        return True

    def watch(self, path: str, **query: str | int) -> Iterator[bytes]:
        """Yield the lines of a watch on arrival, until the server ends it or the connection breaks.

        Kubernetes: staging/src/k8s.io/apimachinery/pkg/watch/streamwatcher.go.
        """
        from urllib3.exceptions import HTTPError, ReadTimeoutError

        response = self._send(
            "GET", path, {**query, "watch": "true", "timeoutSeconds": _WATCH_TIMEOUT_S}, None, _WATCH_READ_TIMEOUT_S
        )
        try:
            if response.status != 200:
                raise status_error(self._read(response, path), response.status)
            yield from _lines(_chunks(response))
        except ReadTimeoutError as error:
            raise ClusterUnreachable(f"{self.url}: {_cause(error)}") from error
        except (OSError, HTTPError):
            return
        finally:
            response.close()

    def _request(self, method: str, path: str, query: Mapping[str, str | int], body: bytes | None = None) -> bytes:
        response = self._send(method, path, query, body, min(_READ_TIMEOUT_S, self._request_s))
        try:
            data = self._read(response, path)
        finally:
            response.close()
        if response.status >= 300:
            raise status_error(data, response.status)
        return data

    def _read(self, response: Any, path: str) -> bytes:  # noqa: ANN401 - of urllib3
        """Return the body of a response; raise an error if it is too large or takes too long."""
        from urllib3.exceptions import HTTPError

        chunks, size, stopwatch = [], 0, Stopwatch()
        try:
            for chunk in _chunks(response):
                chunks.append(chunk)
                size += len(chunk)
                if size > _MAX_RESPONSE_BYTES:
                    raise InvalidResponse(f"{self.url}{path} is longer than {_MAX_RESPONSE_BYTES >> 20} MiB")
                if stopwatch.real_s > self._request_s:
                    raise ClusterUnreachable(f"{self.url}{path} was not complete after {self._request_s:g} s")
        except (OSError, HTTPError) as error:
            raise ClusterUnreachable(f"{self.url}{path}: {_cause(error)}") from error
        return b"".join(chunks)

    def _send(
        self, method: str, path: str, query: Mapping[str, str | int], body: bytes | None, read_timeout_s: float
    ) -> Any:  # noqa: ANN401
        from urllib3 import Timeout
        from urllib3.exceptions import HTTPError

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
                timeout=Timeout(connect=_CONNECT_TIMEOUT_S, read=read_timeout_s),
                preload_content=False,
                retries=False,
            )
        except HTTPError as error:
            raise ClusterUnreachable(f"{self.url} cannot be reached: {_cause(error)}") from error


class NotFoundError(ApiStatusError):
    """The object does not exist."""


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
        raise InputError(kubeconfig, problem="no such file", remedy="pass the kubeconfig of a cluster")
    configuration = client.Configuration()
    configuration.connection_pool_maxsize = CONNECTIONS
    try:
        load: Callable[..., None] = config.load_kube_config
        load(str(kubeconfig), context, client_configuration=configuration, persist_config=False)
    except (config.ConfigException, YAMLError) as error:
        message = " ".join(str(error).split())
        raise InputError(
            kubeconfig, problem=f"is not a valid kubeconfig: {message}", remedy="try it with kubectl"
        ) from error
    except Exception as error:  # The loader raises any exception for a file in another format.
        raise InputError(kubeconfig, problem="is not a kubeconfig", remedy="try it with kubectl") from error
    pool = client.ApiClient(configuration).rest_client.pool_manager
    time_responses(pool)
    return configuration, pool


def _decode_object(path: str, data: bytes) -> KubeObject:
    with expected_shape(path):
        content = msgspec.json.decode(data)
        if not isinstance(content, dict):
            raise TypeError("not an object")
    return content


def _cause(error: BaseException) -> str:
    """Return the root cause of a connection pool's error."""
    reason = getattr(error, "reason", None) or error
    return str(reason).rpartition("): ")[2]


def status_error(body: bytes, code: int = 0) -> ApiStatusError:
    """Return the error of a Status in JSON; `code` is that of the HTTP response, if it came as one."""
    try:
        status = json.loads(body)
        code = code or int(status.get("code", 0))
        reason, message = str(status.get("reason", "")), str(status.get("message", ""))
    except (AttributeError, RecursionError, TypeError, ValueError):
        reason, message = "", body[:200].decode(errors="replace").strip()
    return (NotFoundError if code == 404 else ApiStatusError)(code, reason, message)


def _chunks(response: Any) -> Iterator[bytes]:  # noqa: ANN401 - of urllib3
    """Yield the parts of a response as they arrive; content that is compressed unasked is not decoded."""
    while chunk := response.read1(_CHUNK_BYTES, decode_content=False):
        yield chunk


def _lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    partial = b""
    for chunk in chunks:
        *lines, partial = (partial + chunk).split(b"\n")
        yield from filter(None, lines)
        if len(partial) > _MAX_EVENT_BYTES:
            raise InvalidResponse(f"an event of a watch is longer than {_MAX_EVENT_BYTES >> 20} MiB")
