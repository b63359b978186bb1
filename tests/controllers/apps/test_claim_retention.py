"""Retention policies of the claims of StatefulSets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.controllers.apps.test_stateful_sets import READY_S, names, stateful_set

if TYPE_CHECKING:
    from conftest import Cluster


@pytest.mark.parametrize(
    ("when_deleted", "when_scaled", "after_scaling", "after_deletion"),
    [
        ("Retain", "Retain", ["data-db-0", "data-db-1"], ["data-db-0", "data-db-1"]),
        ("Delete", "Retain", ["data-db-0", "data-db-1"], []),
        ("Retain", "Delete", ["data-db-0"], ["data-db-0"]),
        ("Delete", "Delete", ["data-db-0"], []),
    ],
)
def test_the_retention_policy_deletes_claims_with_the_set_or_on_scale_down(
    world: Cluster, when_deleted: str, when_scaled: str, after_scaling: list[str], after_deletion: list[str]
) -> None:
    """A deleted pod that is recreated keeps its claim under every policy."""
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    policy = {"whenDeleted": when_deleted, "whenScaled": when_scaled}
    body = stateful_set(world, 2, volumeClaimTemplates=[claim], persistentVolumeClaimRetentionPolicy=policy)
    world.create("statefulsets.apps", body)
    world.run(3 * READY_S)

    def claims() -> list[str]:
        return sorted(key.removeprefix("default/") for key in world.store.all("persistentvolumeclaims"))

    first = world.get("persistentvolumeclaims", "default/data-db-1")["metadata"]["uid"]
    world.delete("pods", "default/db-1")
    world.run(60)
    assert names(world) == ["db-0", "db-1"]
    assert world.get("persistentvolumeclaims", "default/data-db-1")["metadata"]["uid"] == first
    world.change("statefulsets.apps", "default/db", replicas=1)
    world.run(60)
    assert (names(world), claims()) == (["db-0"], after_scaling)
    world.delete("statefulsets.apps", "default/db")
    world.run(60)
    assert (names(world), claims()) == ([], after_deletion)
