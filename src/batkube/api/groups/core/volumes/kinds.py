"""PersistentVolumes and PersistentVolumeClaims."""

from __future__ import annotations

from collections.abc import Mapping

from batkube.api.groups.core.volumes import claim_validation, columns, defaults, strategy, validation, warnings
from batkube.api.groups.kind_model.kind import Kind, create_warnings_on_update
from batkube.api.groups.kind_model.strategy import WITH_STATUS

#: The kinds with special behaviour, by storage name.
KINDS: Mapping[str, Kind] = {
    "persistentvolumeclaims": Kind(
        defaults={"v1": defaults.set_persistent_volume_claim_defaults},
        strategy=WITH_STATUS,
        prepare_create=strategy.prepare_claim_create,
        prepare_update={"": strategy.prepare_claim_update},
        rules=claim_validation.PERSISTENT_VOLUME_CLAIM_RULES,
        cells=columns.persistent_volume_claim_cells,
        warnings_on_create=warnings.claim_warnings,
        warnings_on_update={"": create_warnings_on_update(warnings.claim_warnings)},
    ),
    "persistentvolumes": Kind(
        defaults={"v1": defaults.set_persistent_volume_defaults},
        strategy=WITH_STATUS,
        prepare_create=strategy.prepare_volume_create,
        prepare_update={"status": strategy.prepare_volume_status_update},
        rules=validation.PERSISTENT_VOLUME_RULES,
        cells=columns.persistent_volume_cells,
        warnings_on_create=warnings.persistent_volume_warnings,
        warnings_on_update={"": create_warnings_on_update(warnings.persistent_volume_warnings)},
    ),
}
