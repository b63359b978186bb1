"""The kinds of the group storage.k8s.io."""

from __future__ import annotations

from collections.abc import Mapping

from batkube.api.groups.kind_model.kind import Kind, create_warnings_on_update
from batkube.api.groups.kind_model.strategy import PROTECTED_FIELDS_AND_METADATA, SPEC, Strategy
from batkube.api.groups.storage import columns, defaults, validation, warnings

_CONDITIONAL_UPDATE = Strategy(allow_unconditional_update=False)
#: The kinds with special behaviour, by storage name.
KINDS: Mapping[str, Kind] = {
    "csidrivers.storage.k8s.io": Kind(
        defaults={"v1": defaults.set_csi_driver_defaults},
        strategy=Strategy(
            generation_fields=(SPEC,),
            allow_unconditional_update=False,
            disabled_fields=(("spec", "nodeAllocatableUpdatePeriodSeconds"),),
        ),
        rules=validation.CSIDRIVER_RULES,
        cells=columns.csi_driver_cells,
    ),
    "csinodes.storage.k8s.io": Kind(
        strategy=_CONDITIONAL_UPDATE,
        rules=validation.CSINODE_RULES,
        cells=columns.csi_node_cells,
    ),
    "csistoragecapacities.storage.k8s.io": Kind(
        strategy=_CONDITIONAL_UPDATE,
        rules=validation.CSISTORAGE_CAPACITY_RULES,
        warnings_on_create=warnings.capacity_warnings,
        warnings_on_update={"": create_warnings_on_update(warnings.capacity_warnings)},
    ),
    "storageclasses.storage.k8s.io": Kind(
        defaults={"v1": defaults.set_storage_class_defaults},
        rules=validation.STORAGE_CLASS_RULES,
        cells=columns.storage_class_cells,
        warnings_on_create=warnings.storage_class_warnings,
        warnings_on_update={"": create_warnings_on_update(warnings.storage_class_warnings)},
    ),
    "volumeattachments.storage.k8s.io": Kind(
        defaults={"v1": defaults.set_volume_attachment_defaults},
        strategy=Strategy(
            protected_fields=PROTECTED_FIELDS_AND_METADATA,
            allow_unconditional_update=False,
            disabled_fields=tuple(("status", name, "errorCode") for name in ("attachError", "detachError")),
        ),
        rules=validation.VOLUME_ATTACHMENT_RULES,
        cells=columns.volume_attachment_cells,
    ),
    "volumeattributesclasses.storage.k8s.io": Kind(
        rules=validation.VOLUME_ATTRIBUTES_CLASS_RULES,
        cells=columns.volume_attributes_class_cells,
    ),
}
