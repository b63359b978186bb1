"""Preconditions of deletions."""

from __future__ import annotations

from tests.api.verbs.storage.config_maps import CONFIG_MAPS, config_map

from conformance.direct import Direct


def test_a_deletion_checks_the_preconditions_in_its_query(direct: Direct) -> None:
    direct.ask("POST", CONFIG_MAPS, config_map("a"))

    assert direct.ask("DELETE", f"{CONFIG_MAPS}/a", query={"uid": "another"}).status == 409
    assert direct.ask("DELETE", f"{CONFIG_MAPS}/a", query={"resourceVersion": "1"}).status == 409
    assert direct.ask("DELETE", f"{CONFIG_MAPS}/a").status == 200
