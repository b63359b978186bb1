"""What is special about one built-in kind, gathered from the modules that know it.

Kubernetes has the same in pkg/apis/GROUP (defaults, validation), pkg/registry/GROUP/KIND (strategy, warnings) and
pkg/printers (columns). Every group has a table of its kinds; `catalogue` puts them together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from batkube.api.groups.kind_model.context import StrategyContext
from batkube.api.groups.kind_model.strategy import DEFAULT, Strategy
from batkube.api.printing.printers import Cells
from batkube.api.validation.problems import Problems
from batkube.api.validation.rules import ValidationRules
from batkube.cluster.store import KubeObject

SetDefaults = Callable[[dict[str, Any]], None]
"""Fills in what a client left open."""

PrepareCreate = Callable[[dict[str, Any], StrategyContext], None]
PrepareUpdate = Callable[[dict[str, Any], dict[str, Any], StrategyContext], None]
"""Resets what clients may not change; takes the new object and the old one."""

Authorize = Callable[[Mapping[str, Any], Mapping[str, Any] | None, StrategyContext, Problems], None]
"""Tells what is wrong with an object for reasons outside of it; takes the new object and the old one, if any."""

WarningsOnCreate = Callable[[Mapping[str, Any]], list[str]]
WarningsOnUpdate = Callable[[Mapping[str, Any], Mapping[str, Any]], list[str]]


def create_warnings_on_update(warn: WarningsOnCreate) -> WarningsOnUpdate:
    """Warn of a changed object as of a new one."""
    return lambda value, _: warn(value)


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """One built-in kind. Where it says nothing, it does what most kinds do."""

    #: What is filled in, by version.
    defaults: Mapping[str, SetDefaults] = {}
    strategy: Strategy = DEFAULT
    #: What is reset beyond what the strategy says, on creation and, by sub-resource, on a change.
    prepare_create: PrepareCreate | None = None
    prepare_update: Mapping[str, PrepareUpdate] = {}
    #: How objects are judged; None for those of which only the metadata is looked at.
    rules: ValidationRules | None = None
    #: What is asked before the rules, of the few kinds for which other objects matter.
    authorize: Authorize | None = None
    #: What fills the columns; None for those of which name and creation are printed.
    cells: Cells | None = None
    #: Returns the conditions of a printed row (only pods have any).
    row_conditions: Callable[[KubeObject], list[dict[str, str]] | None] | None = None
    #: By what the rows of a list are sorted, if not left as they come (only FlowSchemas are).
    row_order: Callable[[KubeObject], Any] | None = None
    #: What the creator of a valid object is told, and by sub-resource who changes one.
    warnings_on_create: WarningsOnCreate | None = None
    warnings_on_update: Mapping[str, WarningsOnUpdate] = {}
