"""Objects after server-side apply."""

from __future__ import annotations

from typing import Any

from batkube.api.decoding.objects import decode
from batkube.api.managed_fields.server_side_apply import ApplyResult, apply_configuration
from batkube.cluster.kinds import KindTable, Resource
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant

TABLE = KindTable.builtin()
START = Instant(0)


def resource(plural: str, group: str = "", version: str = "v1") -> Resource:
    match = TABLE.resource(group, version, plural)
    assert match is not None
    return match


CONFIG_MAPS, DEPLOYMENTS, SERVICES = resource("configmaps"), resource("deployments", "apps"), resource("services")


def stored(outcome: ApplyResult) -> KubeObject:
    value = outcome.object
    return {**value, "metadata": {**value["metadata"], "uid": "u", "managedFields": outcome.entries}}


def apply(
    config: KubeObject,
    live: KubeObject | None = None,
    manager: str = "m1",
    kind: Resource = CONFIG_MAPS,
    **options: Any,  # noqa: ANN401 - passed on
) -> KubeObject:
    outcome = apply_configuration(config, live, kind, manager=manager, now=START, **options)
    if outcome.object is live:
        return stored(outcome)
    return stored(ApplyResult(decode(outcome.object, kind.schema).object, outcome.entries))
