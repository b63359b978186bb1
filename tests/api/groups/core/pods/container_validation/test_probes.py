"""Validation of probes and lifecycle handlers (configure-liveness-readiness-startup-probes)."""

from __future__ import annotations

import pytest
from tests.api.groups.creation_errors import errors

POD, CONTAINER = "Pod/p", "spec.containers.0"


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ("livenessProbe.successThreshold", 2, "livenessProbe.successThreshold"),
        ("startupProbe.successThreshold", 2, "startupProbe.successThreshold"),
        ("livenessProbe.terminationGracePeriodSeconds", 0, "livenessProbe.terminationGracePeriodSeconds"),
        ("readinessProbe.terminationGracePeriodSeconds", 5, "readinessProbe.terminationGracePeriodSeconds"),
        ("livenessProbe.periodSeconds", -1, "livenessProbe.periodSeconds"),
        ("livenessProbe.httpGet.port", 65536, "livenessProbe.httpGet.port"),
        ("livenessProbe.httpGet.scheme", "FTP", "livenessProbe.httpGet.scheme"),
        ("readinessProbe.tcpSocket.port", "no_name", "readinessProbe.tcpSocket.port"),
        ("livenessProbe.exec", {"command": ["x"]}, "livenessProbe.httpGet"),
        ("lifecycle.postStart.exec.command", [], "lifecycle.postStart.exec.command"),
        ("lifecycle.preStop", {}, "lifecycle.preStop"),
    ],
)
def test_a_wrong_field_of_a_probe_is_reported(path: str, value: object, field: str) -> None:
    found = [where for where, _ in errors(POD, {f"{CONTAINER}.{path}": value})]

    assert found == [f"spec.containers[0].{field}"]


def test_only_a_readiness_probe_may_require_several_successes() -> None:
    assert errors(POD, {f"{CONTAINER}.readinessProbe.successThreshold": 7}) == []


def test_a_pre_stop_sleep_must_end_within_the_grace_period() -> None:
    """The pod has a grace period of 30 s."""
    assert errors(POD, {f"{CONTAINER}.lifecycle.preStop.sleep.seconds": 30}) == []
    [(field, message)] = errors(POD, {f"{CONTAINER}.lifecycle.preStop.sleep.seconds": 31})
    assert field == "spec.containers[0].lifecycle.preStop.sleep"
    assert "less than terminationGracePeriodSeconds (30)" in message
