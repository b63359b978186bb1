"""Persistent volumes and claims, aspect by aspect."""

from __future__ import annotations

from collections.abc import Mapping

from batkube.api.groups.core.volumes import claim_validation, columns, defaults, strategy, validation, warnings
from batkube.api.groups.kind import Kind, of_any_change
from batkube.api.groups.strategy import WITH_STATUS

#: What is special about each kind, by its name in the store.
KINDS: Mapping[str, Kind] = {
    "persistentvolumeclaims": Kind(
        defaults={"v1": defaults.fill_persistent_volume_claim},
        strategy=WITH_STATUS,
        prepare=strategy.create_claim,
        prepare_update={"": strategy.update_claim},
        rules=claim_validation.PERSISTENT_VOLUME_CLAIM_RULES,
        cells=columns.persistent_volume_claim_cells,
        warn=warnings.of_claim,
        warn_update={"": of_any_change(warnings.of_claim)},
    ),
    "persistentvolumes": Kind(
        defaults={"v1": defaults.fill_persistent_volume},
        strategy=WITH_STATUS,
        prepare=strategy.create_volume,
        prepare_update={"status": strategy.update_volume_status},
        rules=validation.PERSISTENT_VOLUME_RULES,
        cells=columns.persistent_volume_cells,
        warn=warnings.of_volume,
        warn_update={"": of_any_change(warnings.of_volume)},
    ),
}
