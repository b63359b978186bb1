"""ConfigMaps in the namespace `default`."""

from __future__ import annotations

from typing import Any

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def config_map(name: str, **metadata: object) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}
