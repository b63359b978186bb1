"""How definitions of custom resources are written; all else about them is in `api.custom`."""

from __future__ import annotations

from collections.abc import Mapping

from batkube.api.groups.kind import Kind
from batkube.api.groups.strategy import APART, SPEC, counted

#: What is special about each kind, by its name in the store.
KINDS: Mapping[str, Kind] = {
    "customresourcedefinitions.apiextensions.k8s.io": Kind(
        strategy=counted(SPEC, keeps=APART, unconditional=False),
    ),
}
