"""Strategies of volumes and claims. Kubernetes: pkg/registry/core/persistentvolume{,claim}/strategy.go."""

from __future__ import annotations

from typing import Any

from batkube.api.groups.kind_model.context import StrategyContext
from batkube.kernel.instants import rfc3339

#: What a claim may be filled from when it says so in the older of the two fields.
_DATA_SOURCES = (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot"))


def prepare_volume_create(volume: dict[str, Any], context: StrategyContext) -> None:
    """A new volume is pending since now."""
    volume["status"] = {"phase": "Pending", "lastPhaseTransitionTime": rfc3339(context.now)}


def prepare_volume_status_update(volume: dict[str, Any], old: dict[str, Any], context: StrategyContext) -> None:
    """Note when the phase changed, if it did."""
    status, before = volume.setdefault("status", {}), old.get("status") or {}
    new, live = status.get("lastPhaseTransitionTime"), before.get("lastPhaseTransitionTime")
    if status.get("phase") != before.get("phase"):
        if new is None or new == live:
            status["lastPhaseTransitionTime"] = rfc3339(context.now)
    elif new is None and live is not None:
        status["lastPhaseTransitionTime"] = live


def prepare_claim_create(claim: dict[str, Any], _context: StrategyContext) -> None:
    """A new claim is pending; both ways to say what it is filled from agree."""
    claim["status"] = {"phase": "Pending"}
    spec = claim["spec"]
    _drop_unsupported_sources(spec, {})
    _sync_data_sources(spec)


def prepare_claim_update(claim: dict[str, Any], old: dict[str, Any], _context: StrategyContext) -> None:
    """Both ways to say what a claim is filled from agree after a change too; what was taken before may stay."""
    _drop_unsupported_sources(claim["spec"], old["spec"])
    _sync_data_sources(claim["spec"])


def _drop_unsupported_sources(spec: dict[str, Any], before: dict[str, Any]) -> None:
    reference = spec.get("dataSourceRef")
    if reference is not None and reference.get("namespace") and before.get("dataSourceRef") is None:
        del spec["dataSourceRef"]
        reference = None
    source = spec.get("dataSource")
    if source is not None and reference is None and before.get("dataSource") is None:
        known = (source.get("apiGroup") or "", source.get("kind", "")) in _DATA_SOURCES
        if not known:
            del spec["dataSource"]


def _sync_data_sources(spec: dict[str, Any]) -> None:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None and reference is None:
        spec["dataSourceRef"] = dict(source)
    elif reference is not None and source is None and not reference.get("namespace"):
        spec["dataSource"] = {name: value for name, value in reference.items() if name != "namespace"}
