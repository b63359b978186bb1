"""Strategies: what clients may not set or change, and what the server keeps count of.

Every write to an object passes here between admission and validation. Most of it is the same for all kinds and said in
a `Strategy`: a status is cleared on creation and changed through its own sub-resource only, changes of the
specification are counted in `metadata.generation`. A few kinds do more, in functions of their own.
"""

from __future__ import annotations

from typing import Any

from batkube.api.decoding.objects import zero
from batkube.api.groups.kind_model.context import StrategyContext
from batkube.api.groups.kind_model.strategy import Path, Strategy
from batkube.api.groups.scheme.catalogue import kind_of
from batkube.cluster.kinds import Resource

#: Kinds whose status comes with the object itself, from the agent that creates it: it is not cleared on creation.
_STATUS_ON_CREATE = ("nodes",)


def strategy_of(storage: str) -> Strategy:
    """Return the strategy of a kind by its name in the store."""
    return kind_of(storage).strategy


def prepare_create(resource: Resource, obj: dict[str, Any], context: StrategyContext) -> None:
    """Reset what clients may not set on creation; name, uid and creation time are in place already.

    May raise Failure: a service can ask for an address that is taken.
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
    """Reset what a write to `subresource` may not change, and count the generation of `old` on where it must.

    The generation of `new` is that of `old` before the call.
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
    """Return what becomes of the dependents of a deleted object: Background, Orphan, or Unsupported."""
    return strategy_of(resource.storage).default_propagation


def deletion_grace_s(resource: Resource, obj: dict[str, Any], requested_s: int | None) -> int | None:
    """Return for how many seconds a deleted object lingers, or None if objects of its kind never do.

    Only pods end gracefully: those that run somewhere, for as long as asked for or as they ask themselves
    (Kubernetes: podStrategy.CheckGracefulDelete).
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
    """Put what `old` has at `path` into `new`; of the metadata all but who manages which field."""
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
    """Take out what is at `path`, wherever `*` leads."""
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
