"""StorageVersions and StorageVersionMigrations, which have columns and no other special behaviour."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.groups.kind_model.kind import Kind
from batkube.api.printing.ages import age
from batkube.api.printing.cell_texts import UNSET, join_first_three
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant


def storage_version_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a StorageVersion."""
    status = value.get("status", {})
    servers = [
        f"{part.get('apiServerID', '')}={part.get('encodingVersion', '')}"
        for part in status.get("storageVersions") or ()
    ]
    common = status.get("commonEncodingVersion", UNSET)
    return [value["metadata"].get("name", ""), common, join_first_three(servers), age(value, now)]


def storage_version_migration_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a StorageVersionMigration."""
    resource = value.get("spec", {}).get("resource", {})
    parts = (resource.get(field, "") for field in ("resource", "version", "group"))
    return [value["metadata"].get("name", ""), ".".join(parts)]


#: The kinds with special behaviour, by storage name.
KINDS: Mapping[str, Kind] = {
    "storageversionmigrations.storagemigration.k8s.io": Kind(
        cells=storage_version_migration_cells,
    ),
    "storageversions.internal.apiserver.k8s.io": Kind(
        cells=storage_version_cells,
    ),
}
