"""Host ports of pods, and which of them exclude each other on a node."""

from __future__ import annotations

from typing import Any

import pytest

from batkube.cluster.pods.host_ports import HostPort, conflict, host_ports_of


def container(*ports: dict[str, Any], **more: object) -> dict[str, Any]:
    return {"name": "c", "ports": list(ports), **more}


def test_ports_of_containers_and_sidecars_count_but_not_those_of_other_init_containers() -> None:
    """An init container ends before the others start; kube-scheduler ignores its ports."""
    sidecar = container({"hostPort": 9090, "containerPort": 90}, restartPolicy="Always")
    pod = {
        "spec": {
            "containers": [container({"hostPort": 80, "containerPort": 8080}, {"containerPort": 81})],
            "initContainers": [container({"hostPort": 7000, "containerPort": 70}), sidecar],
        }
    }

    assert host_ports_of(pod) == [HostPort("", "TCP", 80), HostPort("", "TCP", 9090)]


@pytest.mark.parametrize(
    ("port", "other", "is_conflict"),
    [
        (HostPort("", "TCP", 80), HostPort("", "TCP", 80), True),
        (HostPort("", "TCP", 80), HostPort("", "TCP", 81), False),
        (HostPort("", "TCP", 80), HostPort("", "UDP", 80), False),
        (HostPort("127.0.0.1", "TCP", 80), HostPort("127.0.0.2", "TCP", 80), False),
        (HostPort("127.0.0.1", "TCP", 80), HostPort("127.0.0.1", "TCP", 80), True),
        (HostPort("127.0.0.1", "TCP", 80), HostPort("0.0.0.0", "TCP", 80), True),
        (HostPort("", "TCP", 80), HostPort("127.0.0.1", "TCP", 80), True),
    ],
)
def test_a_port_is_taken_per_protocol_and_address(port: HostPort, other: HostPort, is_conflict: bool) -> None:
    assert conflict([port], [other]) is is_conflict
    assert conflict([other], [port]) is is_conflict


def test_every_pair_of_ports_of_two_pods_is_compared() -> None:
    ports = [HostPort("", "TCP", number) for number in (80, 443)]

    assert conflict(iter(ports), iter([HostPort("", "TCP", 8080), HostPort("", "TCP", 443)]))
