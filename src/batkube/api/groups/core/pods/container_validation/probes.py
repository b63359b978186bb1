"""Validation of probes and lifecycle handlers (Kubernetes: pkg/apis/core/validation, validateHandler)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.validation.names import http_header, port_name, port_number
from batkube.api.validation.problems import Problems

_PROBE_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_LIFECYCLE_HANDLERS = ("exec", "httpGet", "tcpSocket", "sleep")
_SCHEMES = ("HTTP", "HTTPS")
_PROBE_NUMBERS = (
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
)


def check_port(port: int | str, path: str, problems: Problems) -> None:
    """Check a port number or port name."""
    wrong = port_name(port) if isinstance(port, str) else port_number(port)
    problems.all_invalid(path, port, wrong)


def check_probes(container: Mapping[str, Any], grace: int | None, path: str, problems: Problems) -> None:
    """Check the probes of a container."""
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if (probe := container.get(name)) is None:
            continue
        at = f"{path}.{name}"
        _check_probe(probe, grace, at, problems)
        if name != "readinessProbe":
            if (count := probe.get("successThreshold", 0)) != 1:
                problems.invalid(f"{at}.successThreshold", count, "must be 1")
        elif (seconds := probe.get("terminationGracePeriodSeconds")) is not None:
            detail = "must not be set for readinessProbes"
            problems.invalid(f"{at}.terminationGracePeriodSeconds", seconds, detail)


def _check_probe(probe: Mapping[str, Any], grace: int | None, path: str, problems: Problems) -> None:
    _check_handler(probe, _PROBE_HANDLERS, grace, path, problems)
    for field in _PROBE_NUMBERS:
        problems.not_negative(f"{path}.{field}", probe.get(field, 0))
    seconds = probe.get("terminationGracePeriodSeconds")
    if seconds is not None and seconds <= 0:
        problems.invalid(f"{path}.terminationGracePeriodSeconds", seconds, "must be greater than 0")


def check_lifecycle(lifecycle: Mapping[str, Any], grace: int | None, path: str, problems: Problems) -> None:
    """Check the postStart and preStop handlers."""
    for hook in ("postStart", "preStop"):
        if (handler := lifecycle.get(hook)) is not None:
            _check_handler(handler, _LIFECYCLE_HANDLERS, grace, f"{path}.{hook}", problems)


def _check_handler(
    handler: Mapping[str, Any], kinds: tuple[str, ...], grace: int | None, path: str, problems: Problems
) -> None:
    has_one = False
    for kind in kinds:
        if (action := handler.get(kind)) is None:
            continue
        if has_one:
            problems.forbidden(f"{path}.{kind}", "may not specify more than 1 handler type")
        else:
            has_one = True
            _check_action(kind, action, grace, f"{path}.{kind}", problems)
    if not has_one:
        problems.required(path, "must specify a handler type")


def _check_action(kind: str, action: Mapping[str, Any], grace: int | None, path: str, problems: Problems) -> None:
    if kind == "exec":
        if not action.get("command"):
            problems.required(f"{path}.command")
    elif kind == "httpGet":
        _check_http_get(action, path, problems)
    elif kind == "sleep":
        seconds = action.get("seconds", 0)
        if grace is not None and not 0 <= seconds <= grace:
            detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
            problems.invalid(path, seconds, detail)
    else:
        check_port(action.get("port", 0), f"{path}.port", problems)


def _check_http_get(action: Mapping[str, Any], path: str, problems: Problems) -> None:
    if not action.get("path"):
        problems.required(f"{path}.path")
    check_port(action.get("port", 0), f"{path}.port", problems)
    if (scheme := action.get("scheme", "")) not in _SCHEMES:
        problems.not_supported(f"{path}.scheme", scheme, _SCHEMES)
    for header in action.get("httpHeaders", ()):
        problems.all_invalid(f"{path}.httpHeaders", header.get("name", ""), http_header(header.get("name", "")))
