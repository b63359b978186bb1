"""The responses to /version, /healthz, /livez, /readyz and /metrics."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from batkube.api.requests.messages import TEXT, Response
from batkube.kernel.errors import Bug

#: The checks that kube-apiserver lists with ?verbose; here they always pass.
_CHECKS = (
    "ping",
    "log",
    "etcd",
    "poststarthook/start-apiserver-admission-initializer",
    "poststarthook/generic-apiserver-start-informers",
    "poststarthook/priority-and-fairness-config-consumer",
    "poststarthook/priority-and-fairness-filter",
    "poststarthook/storage-object-count-tracker-hook",
    "poststarthook/start-apiextensions-informers",
    "poststarthook/start-apiextensions-controllers",
    "poststarthook/crd-informer-synced",
    "poststarthook/start-system-namespaces-controller",
    "poststarthook/start-cluster-authentication-info-controller",
    "poststarthook/start-kube-apiserver-identity-lease-controller",
    "poststarthook/start-kube-apiserver-identity-lease-garbage-collector",
    "poststarthook/start-legacy-token-tracking-controller",
    "poststarthook/start-service-ip-repair-controllers",
    "poststarthook/rbac/bootstrap-roles",
    "poststarthook/scheduling/bootstrap-system-priority-classes",
    "poststarthook/priority-and-fairness-config-producer",
    "poststarthook/bootstrap-controller",
    "poststarthook/start-kubernetes-service-cidr-controller",
    "poststarthook/start-kube-aggregator-informers",
    "poststarthook/apiservice-status-local-available-controller",
    "poststarthook/apiservice-status-remote-available-controller",
    "poststarthook/apiservice-registration-controller",
    "poststarthook/apiservice-discovery-controller",
    "poststarthook/kube-apiserver-autoregistration",
    "autoregister-completion",
    "poststarthook/apiservice-openapi-controller",
    "poststarthook/apiservice-openapiv3-controller",
)


def version_info(kubernetes: str) -> dict[str, Any]:
    """Return the response to /version for the imitated Kubernetes version."""
    major, minor, _ = kubernetes.removeprefix("v").split(".")
    previous = str(int(minor) - 1)
    return {
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": previous,
        "gitVersion": f"v{kubernetes.removeprefix('v')}",
        "gitCommit": "batkube",
        "gitTreeState": "clean",
        "buildDate": "2000-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "python",
        "platform": "linux/amd64",
    }


def health(name: str, check: str, query: dict[str, list[str]]) -> Response | None:
    """Return the response to /healthz, /livez or /readyz (`name`), or to one check below it; None if it is unknown."""
    checks = _checks(name)
    if check:
        return Response(200, b"ok", TEXT) if check in checks else None
    if "verbose" not in query:
        return Response(200, b"ok", TEXT)
    excluded = query.get("exclude", [])
    lines = [f"[+]{each} excluded: ok" if each in excluded else f"[+]{each} ok" for each in checks]
    return Response(200, "\n".join([*lines, f"{name} check passed", ""]).encode(), TEXT)


def _checks(name: str) -> tuple[str, ...]:
    if name == "readyz":
        return (*_CHECKS[:3], "etcd-readiness", "informer-sync", *_CHECKS[3:], "shutdown")
    if name in ("healthz", "livez"):
        return _CHECKS
    raise Bug(f"unknown health path: {name}")


def check_paths() -> list[str]:
    """Return the path of every health check."""
    names = ("healthz", "livez", "readyz")
    return [f"/{name}{below}" for name in names for below in ("", *(f"/{check}" for check in _checks(name)))]


_MAX_SERIES = 1000
"""Maximal number of counted series. Clients can request arbitrary resources; further ones share a series `other`."""


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class RequestCounters:
    """Counts requests for /metrics."""

    def __init__(self) -> None:
        self._requests: dict[tuple[str, str, int], int] = {}

    def count(self, verb: str, resource: str, code: int) -> None:
        """Count one handled request."""
        key = (verb, resource, code)
        if key not in self._requests and len(self._requests) >= _MAX_SERIES:
            key = ("other", "other", code)
        self._requests[key] = self._requests.get(key, 0) + 1

    def prometheus_text(self, gauges: Iterable[tuple[str, str, float]]) -> bytes:
        """Return all metrics in Prometheus' text format; `gauges` are (name, help, value)."""
        lines = [
            "# HELP batkube_apiserver_requests_total Requests answered, by verb, resource and status code.",
            "# TYPE batkube_apiserver_requests_total counter",
        ]
        for (verb, resource, code), number in sorted(self._requests.items()):
            labels = f'verb="{_escaped(verb)}",resource="{_escaped(resource)}",code="{code}"'
            lines.append(f"batkube_apiserver_requests_total{{{labels}}} {number}")
        for name, text, value in gauges:
            lines += [f"# HELP {name} {text}", f"# TYPE {name} gauge", f"{name} {value:g}"]
        return ("\n".join(lines) + "\n").encode()
