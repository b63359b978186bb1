"""What is special about one built-in kind, gathered from the modules that know it.

Kubernetes has the same in pkg/apis/GROUP (defaults, validation), pkg/registry/GROUP/KIND (strategy, warnings) and
pkg/printers (columns). Every group has a table of its kinds; `catalogue` puts them together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from batkube.api.groups.context import Context
from batkube.api.groups.strategy import DEFAULT, Strategy
from batkube.api.printing.printers import Cells
from batkube.api.validation.problems import Problems
from batkube.api.validation.rules import Rules
from batkube.cluster.store import KubeObject

Fill = Callable[[dict[str, Any]], None]
"""Fills in what a client left open."""

Prepare = Callable[[dict[str, Any], Context], None]
PrepareUpdate = Callable[[dict[str, Any], dict[str, Any], Context], None]
"""Resets what clients may not change; takes the new object and the old one."""

Authorize = Callable[[Mapping[str, Any], Mapping[str, Any] | None, Context, Problems], None]
"""Tells what is wrong with an object for reasons outside of it; takes the new object and the old one, if any."""

Warn = Callable[[Mapping[str, Any]], list[str]]
WarnOfChange = Callable[[Mapping[str, Any], Mapping[str, Any]], list[str]]


def of_any_change(warn: Warn) -> WarnOfChange:
    """Warn of a changed object as of a new one."""
    return lambda value, _: warn(value)


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """One built-in kind. Where it says nothing, it does what most kinds do."""

    #: What is filled in, by version.
    defaults: Mapping[str, Fill] = {}
    strategy: Strategy = DEFAULT
    #: What is reset beyond what the strategy says, on creation and, by sub-resource, on a change.
    prepare: Prepare | None = None
    prepare_update: Mapping[str, PrepareUpdate] = {}
    #: How objects are judged; None for those of which only the metadata is looked at.
    rules: Rules | None = None
    #: What is asked before the rules, of the few kinds for which other objects matter.
    authorize: Authorize | None = None
    #: What fills the columns; None for those of which name and creation are printed.
    cells: Cells | None = None
    #: Returns the conditions of a printed row (only pods have any).
    row_conditions: Callable[[KubeObject], list[dict[str, str]] | None] | None = None
    #: By what the rows of a list are sorted, if not left as they come (only FlowSchemas are).
    row_order: Callable[[KubeObject], Any] | None = None
    #: What the creator of a valid object is told, and by sub-resource who changes one.
    warn: Warn | None = None
    warn_update: Mapping[str, WarnOfChange] = {}
