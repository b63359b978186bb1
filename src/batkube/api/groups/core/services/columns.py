"""Cells of Services (Kubernetes: pkg/printers/internalversion/printers.go)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.printing.ages import UNKNOWN, age
from batkube.api.printing.cell_texts import NONE, format_labels, load_balancer_addresses
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant


def service_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a Service."""
    spec = value.get("spec", {})
    cluster_ips = spec.get("clusterIPs") or (NONE,)
    return [
        value["metadata"].get("name", ""),
        spec.get("type", ""),
        cluster_ips[0],
        _external_address(spec, value.get("status", {})),
        ",".join(_port_text(port) for port in spec.get("ports") or ()) or NONE,
        age(value, now),
        format_labels(spec.get("selector")),
    ]


def _external_address(spec: Mapping[str, Any], status: Mapping[str, Any]) -> str:
    external = ",".join(spec.get("externalIPs") or ())
    match spec.get("type"):
        case "ClusterIP" | "NodePort":
            return external or NONE
        case "LoadBalancer":
            return ",".join(filter(None, (load_balancer_addresses(status), external))) or "<pending>"
        case "ExternalName":
            return str(spec.get("externalName", ""))
    return UNKNOWN


def _port_text(port: Mapping[str, Any]) -> str:
    number, node_port, protocol = port.get("port", 0), port.get("nodePort", 0), port.get("protocol", "")
    return f"{number}:{node_port}/{protocol}" if node_port > 0 else f"{number}/{protocol}"
