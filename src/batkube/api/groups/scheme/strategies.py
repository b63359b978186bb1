"""Strategies: reset fields that clients cannot set or change, and count generations.

Every write runs through this between admission and validation. Most of it is the same for all kinds and expressed in a
`Strategy`: the status is cleared on creation and changed through its own subresource only, and changes of the spec
increment `metadata.generation`. A few kinds have functions of their own, too.
"""

from __future__ import annotations

from typing import Any

from batkube.api.decoding.objects import zero
from batkube.api.groups.kind_model.context import StrategyContext
from batkube.api.groups.kind_model.strategy import Path, Strategy
from batkube.api.groups.scheme.catalogue import kind_of
from batkube.cluster.kinds import Resource

#: Kinds whose creator, an agent, sets the status: it is not cleared on creation.
_STATUS_ON_CREATE = ("nodes",)


def strategy_of(storage: str) -> Strategy:
    """Return the strategy of a kind by its storage name."""
    return kind_of(storage).strategy


def prepare_create(resource: Resource, obj: dict[str, Any], context: StrategyContext) -> None:
    """Reset fields that clients cannot set on creation; name, uid and creationTimestamp are already set.

    May raise Failure: a service may request an address that is in use.
    """
    storage = resource.storage
    kind = kind_of(storage)
    strategy = kind.strategy
    if strategy.has_generation:
        obj["metadata"]["generation"] = 1
    if ("status",) in strategy.protected_fields.get("", ()) and storage != "pods" and storage not in _STATUS_ON_CREATE:
        obj["status"] = zero(resource.schema.fields["status"].schema)
    if kind.prepare_create is not None:
        kind.prepare_create(obj, context)
    for path in strategy.disabled_fields:
        _drop_field(obj, path)


def prepare_update(
    resource: Resource, new: dict[str, Any], old: dict[str, Any], context: StrategyContext, subresource: str = ""
) -> None:
    """Reset fields that a write to `subresource` cannot change, and increment the generation if the spec changed.

    Before the call, `new` must have the generation of `old`.
    """
    kind = kind_of(resource.storage)
    strategy = kind.strategy
    for path in strategy.protected_fields.get(subresource, ()):
        _restore_field(new, old, path)
    special = kind.prepare_update.get(subresource)
    if special is not None:
        special(new, old, context)
    for path in strategy.disabled_fields:
        _drop_field(new, path)
    if subresource != "status" and any(
        _value_at(new, path) != _value_at(old, path) for path in strategy.generation_fields
    ):
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


def default_propagation(resource: Resource) -> str:
    """Return the default deletion propagation: Background, Orphan, or Unsupported."""
    return strategy_of(resource.storage).default_propagation


def deletion_grace_s(resource: Resource, obj: dict[str, Any], requested_s: int | None) -> int | None:
    """Return the grace period of a deletion in seconds, or None if the kind has none.

    Only pods are deleted gracefully: scheduled ones, with the requested grace period or their own (Kubernetes:
    podStrategy.CheckGracefulDelete).
    """
    if resource.storage != "pods":
        return None
    spec = obj["spec"]
    if not spec.get("nodeName") or (obj.get("status") or {}).get("phase") in ("Failed", "Succeeded"):
        return 0
    period_s = spec.get("terminationGracePeriodSeconds") if requested_s is None else requested_s
    return 0 if period_s is None else 1 if period_s < 0 else int(period_s)


def _value_at(obj: dict[str, Any], path: Path) -> Any:  # noqa: ANN401 - any JSON
    value: Any = obj
    for name in path:
        value = value.get(name) if value else None
    return value or None


def _restore_field(new: dict[str, Any], old: dict[str, Any], path: Path) -> None:
    """Copy the field at `path` from `old` to `new`; for metadata, everything but managedFields."""
    *parents, name = path
    for parent in parents:
        old = old.get(parent) or {}
        if parent not in new and name not in old:
            return
        new = new.setdefault(parent, {})
    if name == "metadata":
        managed = new["metadata"].get("managedFields")
        new["metadata"] = dict(old["metadata"])
        if managed:
            new["metadata"]["managedFields"] = managed
    elif name in old:
        new[name] = old[name]
    else:
        new.pop(name, None)


def _drop_field(value: Any, path: Path) -> None:  # noqa: ANN401 - any JSON
    """Remove the field at `path`, in all items for `*`."""
    name, *rest = path
    if value is None:
        return
    if name == "*":
        for element in value.values() if isinstance(value, dict) else value:
            _drop_field(element, tuple(rest))
    elif rest:
        _drop_field(value.get(name), tuple(rest))
    else:
        value.pop(name, None)
