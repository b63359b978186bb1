"""Services, aspect by aspect."""

from __future__ import annotations

from collections.abc import Mapping

from batkube.api.groups.core.services import columns, defaults, strategy, validation, warnings
from batkube.api.groups.kind import Kind, of_any_change
from batkube.api.groups.strategy import APART, Strategy

#: What is special about each kind, by its name in the store.
KINDS: Mapping[str, Kind] = {
    "services": Kind(
        defaults={"v1": defaults.fill_service},
        strategy=Strategy(keeps=APART, created_by_update=True),
        prepare=strategy.create_service,
        prepare_update={"": strategy.update_service},
        rules=validation.SERVICE_RULES,
        cells=columns.service_cells,
        warn=warnings.of_service,
        warn_update={"": of_any_change(warnings.of_service), "status": of_any_change(warnings.of_load_balancer)},
    ),
}
