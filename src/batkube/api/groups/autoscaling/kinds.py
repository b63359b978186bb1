"""Autoscalers and scales, aspect by aspect."""

from __future__ import annotations

from collections.abc import Mapping

from batkube.api.groups.autoscaling import columns, defaults, validation
from batkube.api.groups.kind import Kind
from batkube.api.groups.strategy import APART, Strategy

#: What is special about each kind, by its name in the store.
KINDS: Mapping[str, Kind] = {
    "horizontalpodautoscalers.autoscaling": Kind(
        defaults={"v1": defaults.fill_autoscaler_v1, "v2": defaults.fill_autoscaler_v2},
        strategy=Strategy(
            keeps=APART, disabled=tuple(("spec", "behavior", way, "tolerance") for way in ("scaleUp", "scaleDown"))
        ),
        rules=validation.HORIZONTAL_POD_AUTOSCALER_RULES,
        cells=columns.autoscaler_cells,
    ),
    "scales.autoscaling": Kind(
        cells=columns.scale_cells,
    ),
}
