"""Owner references."""

from __future__ import annotations

from tests.api.verbs.storage.config_maps import CONFIG_MAPS, config_map

from conformance.direct import MERGE, Direct


def test_duplicate_owner_references_are_removed(direct: Direct) -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "u"}
    created = direct.ask("POST", CONFIG_MAPS, config_map("a", ownerReferences=[owner, owner]))
    patch = {"metadata": {"ownerReferences": [owner, {**owner, "name": "y"}, owner]}}
    patched = direct.ask("PATCH", f"{CONFIG_MAPS}/a", patch, content_type=MERGE)

    assert created.body["metadata"]["ownerReferences"] == [owner]
    assert patched.body["metadata"]["ownerReferences"] == [owner, {**owner, "name": "y"}]
