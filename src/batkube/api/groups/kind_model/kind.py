"""The special behaviour of a built-in kind, collected from the modules that implement it.

Kubernetes has the same parts in pkg/apis/GROUP (defaults, validation), pkg/registry/GROUP/KIND (strategy, warnings) and
pkg/printers (columns). Every group has a table of its kinds; `scheme.catalogue` joins the tables.
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
"""Sets the defaults of an object."""

PrepareCreate = Callable[[dict[str, Any], StrategyContext], None]
PrepareUpdate = Callable[[dict[str, Any], dict[str, Any], StrategyContext], None]
"""Resets fields that clients cannot change; takes the new and the old object."""

Authorize = Callable[[Mapping[str, Any], Mapping[str, Any] | None, StrategyContext, Problems], None]
"""Reports errors that depend on more than the object; takes the new and the old object, if any."""

WarningsOnCreate = Callable[[Mapping[str, Any]], list[str]]
WarningsOnUpdate = Callable[[Mapping[str, Any], Mapping[str, Any]], list[str]]


def create_warnings_on_update(warn: WarningsOnCreate) -> WarningsOnUpdate:
    """Return the warnings of an update as those of a create."""
    return lambda value, _: warn(value)


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """A built-in kind. The defaults are the behaviour of most kinds."""

    #: The functions that set defaults, by version.
    defaults: Mapping[str, SetDefaults] = {}
    strategy: Strategy = DEFAULT
    #: Changes to an object beyond the strategy, on creation and, by subresource, on update.
    prepare_create: PrepareCreate | None = None
    prepare_update: Mapping[str, PrepareUpdate] = {}
    #: The validation; None if only the metadata is validated.
    rules: ValidationRules | None = None
    #: The check before validation, for the few kinds that depend on other objects.
    authorize: Authorize | None = None
    #: The cells of the kind's columns; None if only name and age are printed.
    cells: Cells | None = None
    #: Returns the conditions of a printed row (only pods have any).
    row_conditions: Callable[[KubeObject], list[dict[str, str]] | None] | None = None
    #: The sort key of a list's rows; None keeps their order (only FlowSchemas are sorted).
    row_order: Callable[[KubeObject], Any] | None = None
    #: The warnings for creating a valid object and, by subresource, for updating one.
    warnings_on_create: WarningsOnCreate | None = None
    warnings_on_update: Mapping[str, WarningsOnUpdate] = {}
