"""Strategies of daemon sets. Kubernetes: pkg/registry/apps/daemonset/strategy.go."""

from __future__ import annotations

from typing import Any

from batkube.api.groups.context import Context
from batkube.api.groups.core.pods.strategy import drop_from_template
from batkube.kernel.numbers import int_of

#: Written into DaemonSets for clients older than the API group apps/v1.
_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


def create_daemon_set(daemon_set: dict[str, Any], _context: Context) -> None:
    """Number the template, beside the object."""
    drop_from_template(daemon_set)
    annotations = daemon_set["metadata"].setdefault("annotations", {})
    annotations[_TEMPLATE_GENERATION] = str(max(_number(annotations.get(_TEMPLATE_GENERATION)), 1))


def update_daemon_set(daemon_set: dict[str, Any], old: dict[str, Any], _context: Context) -> None:
    """Count changes of the template."""
    drop_from_template(daemon_set)
    keep_template_number(daemon_set, old, _context)


def keep_template_number(daemon_set: dict[str, Any], old: dict[str, Any], _context: Context) -> None:
    """Keep the number of the template, counted on where that has changed, whatever the client says of it."""
    number = _number((old["metadata"].get("annotations") or {}).get(_TEMPLATE_GENERATION))
    if daemon_set["spec"].get("template") != old["spec"].get("template"):
        number += 1
    metadata = daemon_set["metadata"]
    metadata["annotations"] = {**(metadata.get("annotations") or {}), _TEMPLATE_GENERATION: str(number)}


def _number(text: str | None) -> int:
    try:
        return int_of(text or "0") or 0
    except ValueError:
        return 0
