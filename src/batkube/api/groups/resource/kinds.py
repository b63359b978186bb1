"""The kinds of the group resource.k8s.io."""

from __future__ import annotations

from collections.abc import Mapping

from batkube.api.groups.kind_model.kind import Kind
from batkube.api.groups.kind_model.strategy import PROTECTED_FIELDS_AND_METADATA, SPEC, Strategy
from batkube.api.groups.resource import columns, defaults, strategy, validation

#: Without `distinctAttribute` of constraints, which kube-apiserver intends to drop but keeps.
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
#: The kinds with special behaviour, by storage name.
KINDS: Mapping[str, Kind] = {
    "deviceclasses.resource.k8s.io": Kind(
        strategy=Strategy(
            generation_fields=(SPEC,), has_generation=True, disabled_fields=(("spec", "extendedResourceName"),)
        ),
        rules=validation.DEVICE_CLASS_RULES,
        cells=columns.name_and_age_cells,
    ),
    "devicetaintrules.resource.k8s.io": Kind(
        cells=columns.device_taint_cells,
    ),
    "resourceclaims.resource.k8s.io": Kind(
        defaults={"v1": defaults.set_resource_claim_defaults},
        strategy=Strategy(
            protected_fields=PROTECTED_FIELDS_AND_METADATA,
            disabled_fields=(
                *(("spec", *path) for path in _CLAIM_DISABLED),
                ("status", "allocation", "allocationTimestamp"),
                *_CLAIM_STATUS_DISABLED,
                ("status", "devices", "*", "shareID"),
            ),
        ),
        prepare_update={"status": strategy.drop_deallocated_device_statuses},
        rules=validation.RESOURCE_CLAIM_RULES,
        authorize=strategy.authorize_claim,
        cells=columns.resource_claim_cells,
    ),
    "resourceclaimtemplates.resource.k8s.io": Kind(
        defaults={"v1": defaults.set_resource_claim_template_defaults},
        strategy=Strategy(disabled_fields=tuple(("spec", "spec", *path) for path in _CLAIM_DISABLED)),
        rules=validation.RESOURCE_CLAIM_TEMPLATE_RULES,
        authorize=strategy.authorize_template,
        cells=columns.name_and_age_cells,
    ),
    "resourceslices.resource.k8s.io": Kind(
        strategy=Strategy(generation_fields=(SPEC,), has_generation=True, disabled_fields=_SLICE_DISABLED),
        rules=validation.RESOURCE_SLICE_RULES,
        cells=columns.resource_slice_cells,
    ),
}
