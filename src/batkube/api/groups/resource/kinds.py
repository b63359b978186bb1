"""The kinds of the group resource.k8s.io, aspect by aspect."""

from __future__ import annotations

from collections.abc import Mapping

from batkube.api.groups.kind import Kind
from batkube.api.groups.resource import columns, defaults, strategy, validation
from batkube.api.groups.strategy import FAR_APART, SPEC, Strategy

#: Not `distinctAttribute` of constraints, which the real server means to drop and keeps.
_CLAIM_DISABLED = (
    ("devices", "requests", "*", "exactly", "capacity"),
    ("devices", "requests", "*", "firstAvailable", "*", "capacity"),
)
_CLAIM_STATUS_DISABLED = tuple(
    ("status", "allocation", "devices", "results", "*", name)
    for name in ("bindingConditions", "bindingFailureConditions", "shareID", "consumedCapacity")
)
_SLICE_DISABLED = (
    ("spec", "sharedCounters"),
    ("spec", "perDeviceNodeSelection"),
    ("spec", "devices", "*", "capacity", "*", "requestPolicy"),
    *(
        ("spec", "devices", "*", name)
        for name in (
            "taints",
            "consumesCounters",
            "nodeName",
            "nodeSelector",
            "allNodes",
            "bindingConditions",
            "bindingFailureConditions",
            "bindsToNode",
            "allowMultipleAllocations",
        )
    ),
)
#: What is special about each kind, by its name in the store.
KINDS: Mapping[str, Kind] = {
    "deviceclasses.resource.k8s.io": Kind(
        strategy=Strategy(counts=(SPEC,), numbered=True, disabled=(("spec", "extendedResourceName"),)),
        rules=validation.DEVICE_CLASS_RULES,
        cells=columns.name_and_age,
    ),
    "devicetaintrules.resource.k8s.io": Kind(
        cells=columns.device_taint_cells,
    ),
    "resourceclaims.resource.k8s.io": Kind(
        defaults={"v1": defaults.fill_resource_claim},
        strategy=Strategy(
            keeps=FAR_APART,
            disabled=(
                *(("spec", *path) for path in _CLAIM_DISABLED),
                ("status", "allocation", "allocationTimestamp"),
                *_CLAIM_STATUS_DISABLED,
                ("status", "devices", "*", "shareID"),
            ),
        ),
        prepare_update={"status": strategy.forget_devices},
        rules=validation.RESOURCE_CLAIM_RULES,
        authorize=strategy.authorize_claim,
        cells=columns.resource_claim_cells,
    ),
    "resourceclaimtemplates.resource.k8s.io": Kind(
        defaults={"v1": defaults.fill_resource_claim_template},
        strategy=Strategy(disabled=tuple(("spec", "spec", *path) for path in _CLAIM_DISABLED)),
        rules=validation.RESOURCE_CLAIM_TEMPLATE_RULES,
        authorize=strategy.authorize_template,
        cells=columns.name_and_age,
    ),
    "resourceslices.resource.k8s.io": Kind(
        strategy=Strategy(counts=(SPEC,), numbered=True, disabled=_SLICE_DISABLED),
        rules=validation.RESOURCE_SLICE_RULES,
        cells=columns.resource_slice_cells,
    ),
}
