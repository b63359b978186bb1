"""The kinds of the group storage.k8s.io, aspect by aspect."""

from __future__ import annotations

from collections.abc import Mapping

from batkube.api.groups.kind import Kind, of_any_change
from batkube.api.groups.storage import columns, defaults, validation, warnings
from batkube.api.groups.strategy import FAR_APART, SPEC, Strategy

_CAREFUL = Strategy(unconditional=False)
#: What is special about each kind, by its name in the store.
KINDS: Mapping[str, Kind] = {
    "csidrivers.storage.k8s.io": Kind(
        defaults={"v1": defaults.fill_csi_driver},
        strategy=Strategy(
            counts=(SPEC,), unconditional=False, disabled=(("spec", "nodeAllocatableUpdatePeriodSeconds"),)
        ),
        rules=validation.CSIDRIVER_RULES,
        cells=columns.csi_driver_cells,
    ),
    "csinodes.storage.k8s.io": Kind(
        strategy=_CAREFUL,
        rules=validation.CSINODE_RULES,
        cells=columns.csi_node_cells,
    ),
    "csistoragecapacities.storage.k8s.io": Kind(
        strategy=_CAREFUL,
        rules=validation.CSISTORAGE_CAPACITY_RULES,
        warn=warnings.of_capacity,
        warn_update={"": of_any_change(warnings.of_capacity)},
    ),
    "storageclasses.storage.k8s.io": Kind(
        defaults={"v1": defaults.fill_storage_class},
        rules=validation.STORAGE_CLASS_RULES,
        cells=columns.storage_class_cells,
        warn=warnings.of_storage_class,
        warn_update={"": of_any_change(warnings.of_storage_class)},
    ),
    "volumeattachments.storage.k8s.io": Kind(
        defaults={"v1": defaults.fill_volume_attachment},
        strategy=Strategy(
            keeps=FAR_APART,
            unconditional=False,
            disabled=tuple(("status", name, "errorCode") for name in ("attachError", "detachError")),
        ),
        rules=validation.VOLUME_ATTACHMENT_RULES,
        cells=columns.volume_attachment_cells,
    ),
    "volumeattributesclasses.storage.k8s.io": Kind(
        rules=validation.VOLUME_ATTRIBUTES_CLASS_RULES,
        cells=columns.volume_attributes_class_cells,
    ),
}
