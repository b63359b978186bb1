"""Services."""

from __future__ import annotations

from collections.abc import Mapping

from batkube.api.groups.core.services import columns, defaults, strategy, validation, warnings
from batkube.api.groups.kind_model.kind import Kind, create_warnings_on_update
from batkube.api.groups.kind_model.strategy import PROTECTED_FIELDS, Strategy

#: The kinds with special behaviour, by storage name.
KINDS: Mapping[str, Kind] = {
    "services": Kind(
        defaults={"v1": defaults.set_service_defaults},
        strategy=Strategy(protected_fields=PROTECTED_FIELDS, allow_create_on_update=True),
        prepare_create=strategy.prepare_service_create,
        prepare_update={"": strategy.prepare_service_update},
        rules=validation.SERVICE_RULES,
        cells=columns.service_cells,
        warnings_on_create=warnings.service_warnings,
        warnings_on_update={
            "": create_warnings_on_update(warnings.service_warnings),
            "status": create_warnings_on_update(warnings.load_balancer_warnings),
        },
    ),
}
