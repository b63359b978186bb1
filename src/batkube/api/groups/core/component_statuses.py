"""ComponentStatuses, which have columns and no other special behaviour."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.groups.kind_model.kind import Kind
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant


def component_status_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a ComponentStatus."""
    name = value["metadata"].get("name", "")
    for condition in value.get("conditions") or ():
        if condition.get("type") == "Healthy":
            word = "Healthy" if condition.get("status") == "True" else "Unhealthy"
            return [name, word, condition.get("message", ""), condition.get("error", "")]
    return [name, "Unknown", "", ""]


#: The kinds with special behaviour, by storage name.
KINDS: Mapping[str, Kind] = {
    "componentstatuses": Kind(
        cells=component_status_cells,
    ),
}
