"""The kinds of the group autoscaling."""

from __future__ import annotations

from collections.abc import Mapping

from batkube.api.groups.autoscaling import columns, defaults, validation
from batkube.api.groups.kind_model.kind import Kind
from batkube.api.groups.kind_model.strategy import PROTECTED_FIELDS, Strategy

#: The kinds with special behaviour, by storage name.
KINDS: Mapping[str, Kind] = {
    "horizontalpodautoscalers.autoscaling": Kind(
        defaults={"v1": defaults.set_autoscaler_v1_defaults, "v2": defaults.set_autoscaler_v2_defaults},
        strategy=Strategy(
            protected_fields=PROTECTED_FIELDS,
            disabled_fields=tuple(("spec", "behavior", way, "tolerance") for way in ("scaleUp", "scaleDown")),
        ),
        rules=validation.HORIZONTAL_POD_AUTOSCALER_RULES,
        cells=columns.autoscaler_cells,
    ),
    "scales.autoscaling": Kind(
        cells=columns.scale_cells,
    ),
}
