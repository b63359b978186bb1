"""Strategies of PersistentVolumes and claims: pkg/registry/core/persistentvolume{,claim}/strategy.go."""

from __future__ import annotations

from typing import Any

from batkube.api.groups.kind_model.context import StrategyContext
from batkube.kernel.instants import rfc3339

#: The kinds that the older field `dataSource` may refer to.
_DATA_SOURCES = (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot"))


def prepare_volume_create(volume: dict[str, Any], context: StrategyContext) -> None:
    """Set the phase Pending and its transition time."""
    volume["status"] = {"phase": "Pending", "lastPhaseTransitionTime": rfc3339(context.now)}


def prepare_volume_status_update(volume: dict[str, Any], old: dict[str, Any], context: StrategyContext) -> None:
    """Set the transition time if the phase changes."""
    status, before = volume.setdefault("status", {}), old.get("status") or {}
    new, live = status.get("lastPhaseTransitionTime"), before.get("lastPhaseTransitionTime")
    if status.get("phase") != before.get("phase"):
        if new is None or new == live:
            status["lastPhaseTransitionTime"] = rfc3339(context.now)
    elif new is None and live is not None:
        status["lastPhaseTransitionTime"] = live


def prepare_claim_create(claim: dict[str, Any], _context: StrategyContext) -> None:
    """Set the phase Pending, and synchronize `dataSource` and `dataSourceRef`."""
    claim["status"] = {"phase": "Pending"}
    spec = claim["spec"]
    _drop_unsupported_sources(spec, {})
    _sync_data_sources(spec)


def prepare_claim_update(claim: dict[str, Any], old: dict[str, Any], _context: StrategyContext) -> None:
    """Synchronize `dataSource` and `dataSourceRef`; an old value may stay."""
    _drop_unsupported_sources(claim["spec"], old["spec"])
    _sync_data_sources(claim["spec"])


def _drop_unsupported_sources(spec: dict[str, Any], before: dict[str, Any]) -> None:
    reference = spec.get("dataSourceRef")
    if reference is not None and reference.get("namespace") and before.get("dataSourceRef") is None:
        del spec["dataSourceRef"]
        reference = None
    source = spec.get("dataSource")
    if source is not None and reference is None and before.get("dataSource") is None:
        is_supported = (source.get("apiGroup") or "", source.get("kind", "")) in _DATA_SOURCES
        if not is_supported:
            del spec["dataSource"]


def _sync_data_sources(spec: dict[str, Any]) -> None:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None and reference is None:
        spec["dataSourceRef"] = dict(source)
    elif reference is not None and source is None and not reference.get("namespace"):
        spec["dataSource"] = {name: value for name, value in reference.items() if name != "namespace"}
