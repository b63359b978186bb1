"""The strategy of CustomResourceDefinitions; everything else about them is in `api.custom`."""

from __future__ import annotations

from collections.abc import Mapping

from batkube.api.groups.kind_model.kind import Kind
from batkube.api.groups.kind_model.strategy import PROTECTED_FIELDS, SPEC, with_generation

#: The kinds with special behaviour, by storage name.
KINDS: Mapping[str, Kind] = {
    "customresourcedefinitions.apiextensions.k8s.io": Kind(
        strategy=with_generation(SPEC, keeps=PROTECTED_FIELDS, unconditional=False),
    ),
}
