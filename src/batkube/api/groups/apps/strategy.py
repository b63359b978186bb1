"""Strategy of DaemonSets. Kubernetes: pkg/registry/apps/daemonset/strategy.go."""

from __future__ import annotations

from typing import Any

from batkube.api.groups.core.pods.strategy import prepare_workload_template
from batkube.api.groups.kind_model.context import StrategyContext
from batkube.kernel.numbers import parse_int

#: The annotation that keeps templateGeneration, which apps/v1 does not have.
_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


def prepare_daemon_set_create(daemon_set: dict[str, Any], _context: StrategyContext) -> None:
    """Set templateGeneration to 1."""
    prepare_workload_template(daemon_set)
    annotations = daemon_set["metadata"].setdefault("annotations", {})
    annotations[_TEMPLATE_GENERATION] = str(max(_template_generation(annotations.get(_TEMPLATE_GENERATION)), 1))


def prepare_daemon_set_update(daemon_set: dict[str, Any], old: dict[str, Any], _context: StrategyContext) -> None:
    """Increment templateGeneration if the template changes."""
    prepare_workload_template(daemon_set)
    preserve_template_generation(daemon_set, old, _context)


def preserve_template_generation(daemon_set: dict[str, Any], old: dict[str, Any], _context: StrategyContext) -> None:
    """Keep templateGeneration, or increment it if the template changes, regardless of the client's value."""
    number = _template_generation((old["metadata"].get("annotations") or {}).get(_TEMPLATE_GENERATION))
    if daemon_set["spec"].get("template") != old["spec"].get("template"):
        number += 1
    metadata = daemon_set["metadata"]
    metadata["annotations"] = {**(metadata.get("annotations") or {}), _TEMPLATE_GENERATION: str(number)}


def _template_generation(text: str | None) -> int:
    try:
        return parse_int(text or "0") or 0
    except ValueError:
        return 0
